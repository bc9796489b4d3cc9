"""Designs in C, compiled and called as a user's program does."""
import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from circulant.hw.c import CDesign

STRICT = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]


class Compiled:
    """The public functions of a design, called as a user's C program calls them."""

    def __init__(self, design: CDesign, folder: Path) -> None:
        design.write(folder)
        wrapper = (f'#include "{design.name}.c"\n'
                   f"uint32_t state_bytes(void) {{ return (uint32_t)sizeof({design.name}_state); }}\n")
        (folder / "wrapper.c").write_text(wrapper)
        subprocess.run(["gcc", *STRICT, "-O1", "-shared", "-fPIC", "-o", "it.so", "wrapper.c"], cwd=folder, check=True)
        self._library, self._design = ctypes.CDLL(str(folder / "it.so")), design
        self.input, self.output = (np.dtype(design.manifest[port]["type"][:-2]) for port in ("input", "output"))
        self.outputs = design.manifest["output"]["elements"]

    def state(self) -> np.ndarray:
        """A state that was never written."""
        return np.full(self._library.state_bytes(), 0x55, np.uint8)

    def call(self, function, state, *arguments):
        self._library[f"{self._design.name}_{function}"](
            *(a.ctypes.data_as(ctypes.c_void_p) if isinstance(a, np.ndarray) else a for a in (state, *arguments)))

    def step(self, state, x, *, wanted=True):
        """The output of one step, or None where it is not wanted."""
        y = np.empty(self.outputs, self.output) if wanted else None
        self.call("step", state, x.astype(self.input), y)
        return y

    def run(self, state, x, results=1):
        """The outputs of a sequence."""
        y = np.empty((results, self.outputs), self.output)
        self.call("run", state, np.ascontiguousarray(x, self.input), len(x), y)
        return y


@pytest.fixture
def compiled(tmp_path):
    """From a design to its functions."""
    return lambda design: Compiled(design, tmp_path / design.name)


@pytest.fixture
def make():
    """Runs make in a folder and gives exit status and output; skips where a tool is missing."""
    def run(folder, *arguments, needs=("make", "gcc")):
        if missing := [tool for tool in needs if shutil.which(tool) is None]:
            pytest.skip(f"{' and '.join(missing)} must be on PATH for this test")
        done = subprocess.run(["make", "-C", str(folder), *arguments], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    return run
