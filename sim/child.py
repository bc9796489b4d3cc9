"""Child programs: each has a time limit, and ends together with everything that it started."""
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from circulant.sim.refusal import ToolError

__all__ = ["QUESTION_SECONDS", "overdue", "run"]

QUESTION_SECONDS = 60.0
"""Limit of a program that is only asked for its version or the like."""


def run(command: Sequence[str | Path], *, step: str, seconds: float, folder: Path | None = None,
        environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run a program to its end; returns exit status, standard output and standard error.

    Whatever ends this call early ends the program and its children.

    Parameters:
        step: what it is at and with which file, as in "compiling designs/top.v".
        seconds: its limit of time.

    Raises:
        ToolError: when it cannot be started, or has not ended in time.
    """
    name = Path(command[0]).name
    try:
        process = subprocess.Popen([str(word) for word in command], cwd=folder, env=environment, text=True,
                                   errors="replace", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, start_new_session=True)
    except OSError as error:
        raise ToolError(f"{name} must start for {step}, but it does not ({error.strerror}); check that "
                        f"{command[0]} can be executed") from None
    with process:
        try:
            said, complained = process.communicate(timeout=seconds)
        except BaseException as error:  # Its children may go on where it has ended itself, so the group is ended.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                raise overdue(name, step, seconds) from None
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, said, complained)


def overdue(name: str, step: str, seconds: float, said: str = "") -> ToolError:
    """The error of a program that had to be ended.

    Parameters:
        said: its last line, if it is of any use.
    """
    return ToolError(f"{name} must end within {seconds:.0f} s, but it was still at work on {step}"
                     f"{f' ({said})' if said else ''} and was stopped; check whether the machine is overloaded, or the "
                     "input larger than it should be")
