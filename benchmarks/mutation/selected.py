"""The Verilog with all mutants for a proof: an instance of a module without contents chooses each."""
from collections.abc import Sequence

from benchmarks.formal.netlist import CHOICE
from benchmarks.mutation.mutants import Mutant, placed

__all__ = ["selected"]


def selected(verilog: str, planted: Sequence[Mutant]) -> str:
    """The Verilog in which `CHOICE` and its number choose a mutant."""
    def declared(mutant: Mutant) -> str:
        return (f"wire alive_{mutant.number};\n  "
                f"{CHOICE}{mutant.number} choose_{mutant.number} (.y(alive_{mutant.number}));")

    modules = "".join(f"(* blackbox *)\nmodule {CHOICE}{mutant.number} (output y);\nendmodule\n" for mutant in planted)
    return modules + placed(verilog, planted, alive=lambda mutant: f"alive_{mutant.number}", declared=declared)
