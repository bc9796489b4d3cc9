"""Child processes: each ends together with everything that it started, and with this process, whatever ends it."""
import atexit
import errno
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import IO

from circulant.sim.refusal import ToolError

__all__ = ["QUESTION_SECONDS", "end_with_parent", "overdue", "run", "started"]

QUESTION_SECONDS = 60.0
"""Limit of a program that is only asked for its version or the like."""

GUARD = Path(__file__).with_name("guard.py")

BEGIN = 'read -r told < "$0" && exec "$@"'
"""A shell that waits for a line before it becomes the program: it ends where this process ends first."""

_GUARDS: dict[int, subprocess.Popen[bytes]] = {}
"""The guard of this process, by its number: a fork of it gets one of its own."""

_LOCK = threading.Lock()


@contextmanager
def started(command: Sequence[str | Path], *, step: str, folder: Path | None = None,
            environment: Mapping[str, str] | None = None, stdin: int = subprocess.DEVNULL,
            stdout: int | IO[str] = subprocess.PIPE, stderr: int = subprocess.PIPE
            ) -> Iterator[subprocess.Popen[str]]:
    """A program in a group of processes of its own, which is killed where this block leaves it running or fails, and
    where this process is killed: it begins when the guard was told of its group.

    Parameters:
        step: what it is at and with which file, as in "compiling designs/top.v".

    Raises:
        ToolError: when it cannot be started.
    """
    _tell()
    file = Path(folder or "", command[0]) if len(Path(command[0]).parts) > 1 else command[0]
    if shutil.which(file, path=(environment or os.environ).get("PATH")) is None:
        reason = os.strerror(errno.EACCES if Path(file).exists() else errno.ENOENT)
        raise ToolError(f"{Path(command[0]).name} must start for {step}, but it does not ({reason}); check that "
                        f"{command[0]} can be executed")
    told, tell = os.pipe()
    process = subprocess.Popen(["/bin/sh", "-c", BEGIN, f"/dev/fd/{told}", *map(str, command)], cwd=folder,
                               env=environment, text=True, errors="replace", stdin=stdin, stdout=stdout, stderr=stderr,
                               start_new_session=True, pass_fds=[told])
    os.close(told)
    with process:
        whole = False
        try:
            with open(tell, "w") as line:
                _tell(f"+{process.pid}")
                line.write("told\n")
            yield process
            whole = process.poll() is not None
        finally:
            if not whole:  # Its children may go on where it has ended itself, so the group is ended.
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            _tell(f"-{process.pid}")


def run(command: Sequence[str | Path], *, step: str, seconds: float, folder: Path | None = None,
        environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run a program to its end; returns exit status, standard output and standard error.

    Parameters:
        step: as that of `started`.
        seconds: its limit of time.

    Raises:
        ToolError: when it cannot be started, or has not ended in time.
    """
    with started(command, step=step, folder=folder, environment=environment) as process:
        try:
            said, complained = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            raise overdue(Path(command[0]).name, step, seconds) from None
    return subprocess.CompletedProcess(list(map(str, command)), process.returncode, said, complained)


def overdue(name: str, step: str, seconds: float, said: str = "") -> ToolError:
    """The error of a program that had to be ended.

    Parameters:
        said: its last line, if it is of any use.
    """
    return ToolError(f"{name} must end within {seconds:.0f} s, but it was still at work on {step}"
                     f"{f' ({said})' if said else ''} and was stopped; check whether the machine is overloaded, or the "
                     "input larger than it should be")


def end_with_parent() -> None:
    """Let this process, one of `multiprocessing`, be killed when the one that started it ends."""
    if (parent := multiprocessing.parent_process()) is not None:
        threading.Thread(target=_follow, args=(parent,), daemon=True).start()


def _follow(parent: BaseProcess) -> None:
    parent.join()
    os.kill(os.getpid(), signal.SIGKILL)


def _tell(word: str = "") -> None:
    """Tell the guard of a group; the first call starts it, before there is a group that could be left. Where it cannot
    start, or was killed, all goes on without."""
    with _LOCK, suppress(OSError):
        if (guard := _GUARDS.get(os.getpid())) is None:
            guard = subprocess.Popen([sys.executable, "-I", "-S", str(GUARD)], cwd="/", stdin=subprocess.PIPE,
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, bufsize=0,
                                     start_new_session=True)
            _GUARDS[os.getpid()] = guard
            atexit.register(_dismiss, guard)
        assert guard.stdin is not None
        if word:
            guard.stdin.write(f"{word}\n".encode())


def _dismiss(guard: subprocess.Popen[bytes]) -> None:
    with guard:
        pass
