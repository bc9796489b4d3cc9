"""The process that compiles or simulates."""
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from circulant.sim import child

__all__ = ["complaint", "run"]

POLL_SECONDS = 0.1
LINE = 200


def run(command: Sequence[str], tool: str, *, folder: Path, log: Path, environment: Mapping[str, str],
        poll: Callable[[], object], step: str, seconds: float) -> int:
    """Run a program in ``folder``, everything it says in ``log``; returns the exit status.

    Whatever ends this call early, an exception of ``poll`` or an interrupt, ends the whole process group.

    Parameters:
        tool: the name of the program in an error.
        poll: called a few times a second; returns anything that changes while there is progress.
        step: what it is at and with which file.
        seconds: for how long there may be no progress.

    Raises:
        ToolError: when there was none for that long.
    """
    seen, since = None, time.monotonic()
    # A compiler that is killed leaves its temporary files: they go with the folder.
    around = {**environment, "TMPDIR": str(folder), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with log.open("w") as output, child.started(command, step=step, folder=folder, stdout=output,
                                                stderr=subprocess.STDOUT, environment=around) as process:
        while True:
            try:
                return process.wait(POLL_SECONDS)
            except subprocess.TimeoutExpired:
                before, seen = seen, poll()
                if seen != before:
                    since = time.monotonic()
                if time.monotonic() - since > seconds:
                    raise child.overdue(tool, step, seconds, last_line(log)) from None


def last_line(log: Path) -> str:
    """The end of a log, without its folder: what its process was at."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()] or [""]
    return lines[-1].replace(f"{log.parent}/", "")[-LINE:]


def complaint(log: Path) -> str:
    """The line of a log that tells most about a failure, without the folder of the log."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    chosen = [line for line in lines if line.startswith("%Error")][:1] or [line for line in lines if "Error: " in line]
    return (chosen or lines or ["it said nothing"])[-1].replace(f"{log.parent}/", "")
