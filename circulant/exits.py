"""How the command line ends: exit codes, what is said of an error, and standard streams that fail nobody."""
import io
import os
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, NamedTuple

import click

from circulant.sim.cosim import SimulationError
from circulant.sim.files.files import Irregular
from circulant.sim.refusal import Refusal, TimingMissed, ToolError, unusable

__all__ = ["DEBUG", "FAILED", "INTERRUPTED", "MISSED", "REFUSED", "WRONG", "End", "code_of", "end_of",
           "interruptible", "steady_streams"]

WRONG, REFUSED, FAILED, MISSED, INTERRUPTED = 1, 2, 3, 4, 130
"""Exit codes: the circuit is wrong; the input is refused; a tool, the disk or the program failed; a bitstream would be
too slow for its clock; interrupted."""

DEBUG = "CIRCULANT_DEBUG"
"""Environment variable: when it is set, the traceback of an unexpected error is shown."""


SAME_SECONDS = 1.0
"""Time within which signals count as one: `timeout` and a terminal that closes send theirs twice."""


class End(NamedTuple):
    """An exit code, and what is said on stderr."""

    code: int
    words: str


def code_of(error: BaseException) -> int:
    """The exit code of an error."""
    error = _meant(error)
    if isinstance(error, SimulationError):
        return WRONG
    if isinstance(error, Refusal | click.ClickException):
        return REFUSED
    if isinstance(error, TimingMissed):
        return MISSED
    return INTERRUPTED if isinstance(error, KeyboardInterrupt | click.Abort) else FAILED


def end_of(error: BaseException) -> End:
    """The message and exit status of an error.

    The traceback of an unexpected one goes to stderr where CIRCULANT_DEBUG is set, and else into a file.
    """
    error = _meant(error)
    code = code_of(error)
    if isinstance(error, click.ClickException):
        error.show(shown := io.StringIO())
        return End(code, shown.getvalue().rstrip("\n"))
    if code == INTERRUPTED:
        return End(code, str(error) or "Interrupted; what earlier steps wrote stays usable.")
    return End(code, str(error) if isinstance(error, Refusal | SimulationError | ToolError) else _unexpected(error))


def _meant(error: BaseException) -> BaseException:
    """The error that a user is told of: one of a file is a refusal or the machine's."""
    if isinstance(error, click.Abort | SystemExit) and error.__context__ is not None:
        error = error.__context__  # click turns interruptions, EOFErrors and broken pipes into these.
    if isinstance(error, Irregular):
        return Refusal(f"{error.path} must be a file that can be read, but {error}; give another")
    if isinstance(error, OSError) and error.errno is not None:
        return unusable(error.filename2 or error.filename or "A file", error)
    return error


def _unexpected(error: BaseException) -> str:
    what = " ".join(f"{type(error).__name__}: {error}".removesuffix(": ").split())
    what = what if len(what) <= 300 else f"{what[:300]}…"
    trace = "".join(traceback.format_exception(error))
    if os.environ.get(DEBUG):
        return f"{trace}circulant failed unexpectedly ({what}); please report it with the traceback above"
    where = f"run it again with {DEBUG}=1 to see the traceback, and report it with that"
    with suppress(OSError):
        handle, name = tempfile.mkstemp(prefix="circulant-error-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(trace)
        where = f"please report it with the traceback in {name}"
    return f"circulant failed unexpectedly ({what}); {where}"


@contextmanager
def interruptible() -> Iterator[None]:
    """A block that SIGINT, SIGTERM and SIGHUP interrupt as Ctrl-C does, so that it ends its children and leaves nothing
    behind; SIGINT also in a background job, whose shell has it ignored, and SIGHUP not under nohup.
    """
    last = -SAME_SECONDS

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal last
        if time.monotonic() - last < SAME_SECONDS:
            return
        last = time.monotonic()
        raise KeyboardInterrupt

    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if threading.current_thread() is threading.main_thread() \
        else ()
    before = {each: signal.getsignal(each) for each in signals}
    for each, handler in before.items():
        if each == signal.SIGINT or handler != signal.SIG_IGN:
            signal.signal(each, interrupt)
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler or signal.SIG_DFL)


class _Outlet(io.FileIO):
    """A stream's end that drops what nobody reads any more, so that a command ends as it would have."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            self._drop()
            return len(data)
        except OSError as error:
            self._drop()  # What stays in the buffer would fail again when the interpreter ends.
            error.filename = "Standard output" if self.fileno() == 1 else "Standard error"
            raise

    def _drop(self) -> None:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, self.fileno())
        os.close(null)


def steady_streams() -> None:
    """Let closed descriptors be /dev/null, a reader that went away be none, and unknown characters question marks.

    Streams that are no files, as those of a test, stay as they are.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:  # Else the first file that is opened would take its place, also in every child.
            null = os.open(os.devnull, os.O_RDWR)
            if null != number:
                os.dup2(null, number)
                os.close(null)
            os.set_inheritable(number, True)
    sys.stdin = sys.stdin or os.fdopen(0, encoding="utf-8", closefd=False)
    for number, name in ((1, "stdout"), (2, "stderr")):
        stream = getattr(sys, name)
        if stream is getattr(sys, f"__{name}__"):
            outlet = io.BufferedWriter(_Outlet(number, "w", closefd=False))
            setattr(sys, name, io.TextIOWrapper(outlet, encoding=stream.encoding if stream else "utf-8",
                                                errors="replace", line_buffering=number == 2 or outlet.raw.isatty()))
