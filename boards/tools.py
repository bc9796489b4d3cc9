"""Open tools as processes: where they are, what to install when they are not, what they say when they fail."""
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from circulant.sim.refusal import Refusal, ToolError

__all__ = ["find", "run"]


def find(*names: str) -> str:
    """The first of the programs that is installed, beside this Python or on the PATH.

    Raises:
        Refusal: when none is; the first one is then taken for the name of its Python package.
    """
    for name in names:
        for path in (str(Path(sys.executable).parent), None):
            found = shutil.which(name, path=path)
            if found:
                return found
    raise Refusal(f"{names[0]} must be installed, but is neither beside {sys.executable} nor on the PATH; "
                  f"install it: pip install {names[0]} 'wasmtime<48'")


def run(command: Sequence[str], *, folder: Path) -> str:
    """Run a tool in ``folder``; returns all that it says.

    Raises:
        ToolError: when it fails, with its own words.
    """
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        errors = re.findall(r"ERROR:.*", done.stdout) or done.stdout.splitlines()[-5:]
        raise ToolError(f"{Path(command[0]).name} failed with exit code {done.returncode}: {' '.join(errors)}")
    return done.stdout
