"""Netlists under Verilator and Icarus Verilog, which know nothing of what made them: their outputs against golden."""
from pathlib import Path

from circulant.sim.cosim import icarus, verify
from circulant.sim.document import Document
from circulant.sim.refusal import Refusal
from circulant.sim.vectors import Vectors

__all__ = ["able", "simulated"]


def able(simulator: str) -> None:
    """See that a simulator is there, before a mapping of minutes.

    Raises:
        Refusal: when it is not installed.
    """
    if simulator == "icarus" and not icarus.available():
        raise Refusal("The simulator icarus needs Icarus Verilog, but PATH has no iverilog; install it (on Debian: "
                      "apt-get install iverilog), or name verilator")


def simulated(out: str | Path, vectors: Vectors, simulator: str, *, samples: int) -> Document:
    """Play the first sequences of ``vectors`` into the netlist in ``out`` and its models of cells, and count words that
    differ from the golden model; what `circulant.boards.asic.flow.asic` wrote is read, not what it knows.

    Parameters:
        simulator: "icarus" or "verilator". Icarus Verilog starts registers with unknown values, and compiles a netlist
            of 200,000 cells in a minute; Verilator plays small ones with stalls and resets.

    Raises:
        Refusal, SimulationError, ToolError: as `circulant.sim.cosim.verify`.
    """
    folder, played = Path(out) / "simulation", vectors.first(samples)
    found = icarus.run(folder, played, stalls=False) if simulator == "icarus" else verify(folder, played, stalls=False)
    return {"simulator": simulator, "sequences": len(played), "words": found.words, "mismatches": found.mismatches}
