"""The process that compiles or simulates: cocotb's runner works on the environment and on the current folder of its
process, so it gets one of its own."""
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from circulant.sim import child
from circulant.sim.files import temporaries

__all__ = ["complaint", "main", "run"]

POLL_SECONDS = 0.1
LINE = 200
TOOL = {"build": "Verilator", "test": "The simulator under cocotb", "drive": "The simulator"}


def run(action: str, specification: Mapping[str, Any], *, folder: Path, log: Path, environment: Mapping[str, str],
        poll: Callable[[], object], step: str, seconds: float) -> int:
    """Run cocotb's runner in ``folder``, everything it says in ``log``; returns the exit status.

    Whatever ends this call early, an exception of ``poll`` or an interrupt, ends the whole process group.

    Parameters:
        action: "build", "test" or "drive".
        specification: arguments of the runner's ``build`` or ``test``, or of `subprocess.run`.
        poll: called a few times a second; returns anything that changes while there is progress.
        step: what it is at and with which file.
        seconds: for how long there may be no progress.

    Raises:
        ToolError: when there was none for that long.
    """
    with temporaries.folder() as temporary, log.open("w") as output:
        file = temporary / "specification.json"
        file.write_text(json.dumps(specification))
        command = [sys.executable, "-c", "from circulant.sim.cosim import worker; worker.main()", action, str(file)]
        seen, since = None, time.monotonic()
        # A compiler that is killed leaves its temporary files: they go with the folder.
        around = {**environment, "TMPDIR": str(folder), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        with child.started(command, step=step, folder=folder, stdout=output, stderr=subprocess.STDOUT,
                           environment=around) as process:
            while True:
                try:
                    return process.wait(POLL_SECONDS)
                except subprocess.TimeoutExpired:
                    before, seen = seen, poll()
                    if seen != before:
                        since = time.monotonic()
                    if time.monotonic() - since > seconds:
                        raise child.overdue(TOOL[action], step, seconds, last_line(log)) from None


def last_line(log: Path) -> str:
    """The end of a log, without its folder: what its process was at."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()] or [""]
    return lines[-1].replace(f"{log.parent}/", "")[-LINE:]


def complaint(log: Path) -> str:
    """The line of a log that tells most about a failure, without the folder of the log."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    chosen = [line for line in lines if line.startswith("%Error")][:1] or [line for line in lines if "Error: " in line]
    return (chosen or lines or ["it said nothing"])[-1].replace(f"{log.parent}/", "")


def main() -> None:
    """The worker itself: the runner's method, or "drive" for the simulator's own program, and the file of its arguments
    are those of the command line."""
    action, specification = sys.argv[1:]
    arguments = json.loads(Path(specification).read_text())
    if action == "drive":
        sys.exit(subprocess.run(**arguments, check=False).returncode)
    from cocotb_tools.runner import get_runner

    getattr(get_runner("verilator"), action)(**arguments)
