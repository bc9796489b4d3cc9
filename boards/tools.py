"""Open tools as processes: where they are, what to install when they are not, what they say when they fail."""
import importlib.metadata
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from circulant.sim import child
from circulant.sim.refusal import Refusal, ToolError

__all__ = ["YOSYS", "find", "run"]

YOSYS = (0, 70)
"""The oldest Yosys that is asked to synthesize, since its counts were tried: 0.40 lacks options, and 0.50 maps no
flip-flops in the steps of `circulant.boards.synthesis`."""

ANSWER_SECONDS = 900.0
"""Limit of a tool that is asked for its version: one in WebAssembly is compiled when it is called first."""

SECONDS = 8 * 3600.0
"""Limit of a tool: the papers' LSTM takes Yosys the better part of an hour."""


def find(*names: str, oldest: tuple[int, ...] = (), package: str = "") -> str:
    """The first of the programs that is installed, beside this Python or on the PATH.

    Parameters:
        oldest: version that it must have at least; older ones are passed over.
        package: Python package that brings it; as the first one is called where it is not given.

    Raises:
        Refusal: when none is, with the command that installs it.
    """
    old = []
    for name, program in _programs(names):
        version = _version(name, program) if oldest else ()
        if version >= oldest:
            return program
        old.append(f"{name} {_dotted(version) or 'without a version'} ({program})")
    wanted = f" in version {_dotted(oldest)} or newer" if oldest else ""
    found = f"only {' and '.join(dict.fromkeys(old))} was found" if old else \
        f"is neither beside {sys.executable} nor on the PATH"
    raise Refusal(f"{names[0]} must be installed{wanted}, but {found}; install it: pip install {package or names[0]} "
                  "'wasmtime<48'")


def _programs(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    for name in names:
        for path in (str(Path(sys.executable).parent), None):
            program = shutil.which(name, path=path)
            if program:
                yield name, program


def _version(name: str, program: str) -> tuple[int, ...]:
    """The version of the Python package that the program belongs to, else as it says itself; empty without one."""
    try:
        said = importlib.metadata.version(name) if Path(program).parent == Path(sys.executable).parent else ""
    except importlib.metadata.PackageNotFoundError:
        said = ""
    if not said:
        said = child.run([program, "-V"], step="telling its version", seconds=ANSWER_SECONDS).stdout
    version = re.search(r"(\d+)\.(\d+)", said)
    return tuple(map(int, version.groups())) if version else ()


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def run(command: Sequence[str], *, folder: Path, step: str = "", seconds: float = SECONDS) -> str:
    """Run a tool in ``folder``; returns all that it says.

    Parameters:
        step: what it is at and with which file; its arguments where nothing is given.
        seconds: its limit of time.

    Raises:
        ToolError: when it fails, with its own words, or exceeds its time.
    """
    done = child.run(command, step=step or " ".join(command[1:]), seconds=seconds, folder=folder)
    said = done.stdout + done.stderr
    if done.returncode:
        errors = re.findall(r"ERROR:.*", said) or said.splitlines()[-5:]
        raise ToolError(f"{Path(command[0]).name} failed with exit code {done.returncode}"
                        f"{f' at {step}' if step else ''}: {' '.join(errors)}")
    return said
