"""A simulated device: Verilator runs a design behind its UART, whose lines are a pseudo-terminal."""
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from circulant.boards.link.linked_design import LinkedDesign
from circulant.boards.synthesis import manifest
from circulant.hw.emit.target import VerilogTarget
from circulant.sim import child
from circulant.sim.cosim import toolchain
from circulant.sim.files import cache, temporaries
from circulant.sim.refusal import ToolError

__all__ = ["DIVISOR", "linked_verilog", "served"]

DIVISOR = 4
"""Cycles of a bit: as few as the UART bears, since every cycle is simulated."""

SERVE = Path(__file__).parent / "link" / "serve.cpp"
SECONDS = 1800.0
"""Limit of a compilation."""

ARGUMENTS = ("--cc", "--exe", "--build", "-O3", "--x-assign", "unique", "--x-initial", "unique", "-Wno-fatal",
             "--prefix", "Vlinked", "--top-module", "linked", "-o", "serve")


def linked_verilog(folder: str | Path, *, divisor: int = DIVISOR) -> str:
    """Verilog of a module ``linked`` with ports clk, rst, rx and tx, around the design in ``folder``.

    Raises:
        Refusal: when the folder holds no design.
    """
    described = manifest(folder)
    linked = LinkedDesign(described, divisor=divisor)
    text = (Path(folder) / described["verilog"][0]).read_text("utf-8")
    elsewhere = {described["top"]: linked.outputs, "circulant_rom": ("data",)}
    if re.search(r"^module circulant_ram\b", text, re.M):
        elsewhere["circulant_ram"] = ("r_data",)
    return VerilogTarget(elsewhere=elsewhere).convert(linked, "linked")


@contextmanager
def served(folder: str | Path) -> Iterator[str]:
    """The name of a pseudo-terminal behind which the design in ``folder`` is simulated, until the block ends.

    Raises:
        Refusal: when Verilator or the design is missing.
        ToolError: when the Verilog cannot be compiled, or the simulation does not begin.
    """
    program = _program(Path(folder))
    with child.started([program, str(DIVISOR)], step=f"simulating {folder}", folder=Path(folder),
                       stdin=subprocess.PIPE) as process:
        assert process.stdout is not None
        port = process.stdout.readline().strip()
        if not port:
            raise ToolError(f"The simulated device must say its port, but {program.name} ended; check that {folder} "
                            "holds the memory images of the design")
        yield port


def _program(folder: Path) -> Path:
    """The compiled simulation, kept under the hash of what it is made from."""
    tools = toolchain.find()
    described = manifest(folder)
    sources = {"linked.v": linked_verilog(folder), "serve.cpp": SERVE.read_text("utf-8"),
               "design.v": (folder / described["verilog"][0]).read_text("utf-8")}
    key = hashlib.sha256("\0".join([tools.fingerprint, *ARGUMENTS, *sources.values()]).encode()).hexdigest()
    store = cache.store("linked")
    entry = store / key
    if cache.damage(entry / "serve", program=True):
        with temporaries.folder(store) as work:
            for name, text in sources.items():
                (work / name).write_text(text, "utf-8")
            done = child.run([_verilator(tools), *ARGUMENTS, *sources], folder=work, environment=tools.environment(),
                             step=f"the simulation of {folder}", seconds=SECONDS)
            made = work / "obj_dir" / "serve"
            if done.returncode or not made.exists():
                raise ToolError(f"Verilator failed at the simulated device of {folder}: "
                                f"{(done.stderr or done.stdout).strip().splitlines()[-1:]}")
            entry.mkdir(exist_ok=True)
            sealed = work / "sealed"
            sealed.write_bytes(cache.sealed(made.read_bytes()))
            sealed.chmod(0o755)
            os.replace(sealed, entry / "serve")
    return entry / "serve"


def _verilator(tools: toolchain.Toolchain) -> str:
    return str(tools.root / "bin" / "verilator") if tools.root else str(shutil.which("verilator"))
