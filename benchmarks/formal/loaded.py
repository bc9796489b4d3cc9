"""Whether two versions of a part of a circuit give the same for all that their registers can be loaded with.

Registers and words of memories are zero at first, multipliers are gates, and a reset comes in the first cycle; after it
anything may come. So a sum that is wider than its terms need is known not to be so large: ABC merges signals that are
equal in every cycle (`scorr`; van Eijk 2000), and what is left is a matter of IC3.

What a register holds from before its first load is not considered: that such contents do not count, simulations with
unknown values show (``tests/test_four_state.py``).
"""
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.formal.parts import RESET
from benchmarks.formal.tools import abc, yosys

__all__ = ["same_when_loaded"]

SCRIPT = """\
read_verilog -sv {name}.v
hierarchy -top {part}
proc
flatten
opt_clean
memory -nordff
opt
rename {part} {name}
design -stash {name}
"""

MITER = """\
design -copy-from one one
design -copy-from other other
miter -equiv -flatten one other miter
hierarchy -top miter
techmap
setundef -init -zero
setundef -zero
opt -full -nodffe -nosdff
dffunmap
aigmap
opt_clean
write_aiger -zinit miter.aig
"""

BEGUN = f"""\
  reg begun = 1'b0;
  always @(posedge clk) begun <= 1'b1;
  wire {RESET} = {RESET}_later | ~begun;
"""


def same_when_loaded(one: str, other: str, part: str, images: Sequence[Path] = (), *, seconds: float = 10.0) -> bool:
    """Equality of all outputs in each cycle, if it is proved in that time.

    Parameters:
        one, other: Verilog of both versions.
        part: the name of the module.
        images: of memories, which the Verilog names.
    """
    with tempfile.TemporaryDirectory(prefix="circulant-loaded-") as temporary:
        folder, script = Path(temporary), ""
        for image in images:
            (folder / image.name).write_bytes(image.read_bytes())
        for name, verilog in (("one", one), ("other", other)):
            (folder / f"{name}.v").write_text(_reset_first(verilog, part))
            script += SCRIPT.format(name=name, part=part)
        try:
            yosys(script + MITER, folder, "miter.aig", seconds)
        except subprocess.TimeoutExpired:
            return False
        said = abc(f"read miter.aig; scorr -C 10000; pdr -T {seconds:.0f}; iprove", folder, 3 * seconds)
    return "Property proved" in said or "UNSATISFIABLE" in said  # The second where no register is left.


def _reset_first(verilog: str, part: str) -> str:
    """The Verilog in which a module takes a reset in the first cycle; one without a reset stays as it is."""
    return re.sub(rf"^(module {part}\([^;]*?)\b{RESET}\b([^;]*?\);\n(?:  .*\n)*?)  input {RESET};\n  wire {RESET};\n",
                  rf"\1{RESET}_later\2  input {RESET}_later;\n{BEGUN}", verilog, count=1, flags=re.MULTILINE)
