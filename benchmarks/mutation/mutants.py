"""Mutants of generated Verilog, drawn and planted by Yosys (`mutate`), all of them in one text.

Each inverts a bit of a port of a cell, or sets it, or inverts it where another bit of the port is 0 or 1. Cells are
operators, multiplexers, registers with enables and resets, ports of memories, and instances of modules. Modules that
are a memory and nothing else, which have parameters, stay as they are: they read an image when a simulation begins.
"""
import random
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.formal.netlist import CHOICE
from benchmarks.formal.tools import yosys

__all__ = ["Mutant", "fixed", "planted", "schemata", "selected"]

CHOSEN = "circulant_chosen"
"""Number of the mutant that is alive: a wire of the whole circuit, and an input of the modules in it."""

DRAWN = """\
read_verilog -sv top.v
hierarchy -top {top}
proc
opt_dff
opt_expr -mux_undef
opt_clean
write_rtlil top.il
{drawn}
"""

SHARES = {"EN": 0.12, "SRST": 0.1, "S": 0.1, "": 0}
"""Shares of the mutants by port: enables, resets and selections, few bits among those of words; the rest is of any."""

PLANTED = f"""\
read_rtlil top.il
script chosen
delete -port {{top}}/{CHOSEN}
write_verilog -noattr mutants.v
"""

OTHERS = re.compile(r"-port (?:CLK|clk) |-cell \$memrd\S* -port EN ")
"""Clocks, which all proofs here take to be one; and an enable that a port without a clock does not have."""

MEMORY = re.compile(r"^(module \w+ #\(.*?^\);\n)(.*?^endmodule\n)", re.MULTILINE | re.DOTALL)

ALIVE = re.compile(rf"^  assign (\S+) = {CHOSEN} == 16'h(\w+);", re.MULTILINE)


@dataclass(frozen=True)
class Mutant:
    """A change of one bit.

    Parameters:
        number: from 1 on; 0 is the circuit as it is.
        kind: of `mutate`: "inv", "const0", "const1", "cnot0", "cnot1".
        place: cell, port and bit, and the wire at it where it has a name.
    """

    number: int
    kind: str
    module: str
    place: str

    def __str__(self) -> str:
        return f"{self.kind} in {self.module}, {self.place}"


def planted(verilog: str, top: str, count: int, seed: int) -> tuple[list[Mutant], str]:
    """So many mutants, drawn, and the Verilog with all of them, for `fixed`, `schemata` and `selected`."""
    memories = [match[0] for match in MEMORY.finditer(verilog)]
    with tempfile.TemporaryDirectory(prefix="circulant-mutants-") as temporary:
        folder = Path(temporary)
        (folder / "top.v").write_text(MEMORY.sub(r"(* blackbox *) \1endmodule\n", verilog))
        drawn = "\n".join(f"mutate -list {2 * count} -seed {seed} {f'-port {port} ' * bool(port)}-o drawn{port}"
                          for port in SHARES)
        yosys(DRAWN.format(top=top, drawn=drawn), folder, "drawn")
        found = {port: [line for line in (folder / f"drawn{port}").read_text().splitlines() if not OTHERS.search(line)]
                 for port in SHARES}
        few = (line for port, share in SHARES.items() for line in found[port][:round(share * count)])
        lines = [*dict.fromkeys([*few, *found[""]])][:count]
        random.Random(seed).shuffle(lines)  # So that those played before an interruption are a sample of all.
        (folder / "chosen").write_text("\n".join(
            line.replace("mutate", f"mutate -ctrl {CHOSEN} 16 {n}", 1) for n, line in enumerate(lines, 1)))
        text = yosys(PLANTED.format(top=top), folder, "mutants.v").read_text()
    return [_read(n, line) for n, line in enumerate(lines, 1)], "\n".join([text, *memories])


def _read(number: int, line: str) -> Mutant:
    said = dict(re.findall(r"-(\w+) (\S+)", line.partition(" -src ")[0]))
    cell = re.sub(r"top\.v:|auto\$[^$]*:", "", said["cell"].replace("proc_memwr$", "memwr$"))
    place = f"{cell} {said['port']}[{said['portbit']}]"
    place += f" by [{said['ctrlbit']}]" if "ctrlbit" in said else ""
    place += f" at {said['wire']}[{said['wirebit']}]" if "wire" in said else ""
    return Mutant(number, said["mode"], said["module"], place)


def fixed(text: str, alive: int) -> str:
    """The Verilog in which the mutant of that number is alive, or none where it is 0."""
    return ALIVE.sub(lambda match: f"  assign {match[1]} = 1'b{int(match[2], 16) == alive:d};", text)


def schemata(text: str) -> str:
    """The same in which ``+mutant=N`` chooses."""
    wire = f"  wire [15:0] {CHOSEN};\n"  # An input, which has such a line as well, is declared just before.
    return re.sub(rf"(?<!  input \[15:0\] {CHOSEN};\n){re.escape(wire)}", f"""\
  reg [15:0] {CHOSEN};
  initial if (!$value$plusargs("mutant=%d", {CHOSEN})) {CHOSEN} = 0;
""", text)


def selected(text: str) -> str:
    """The same in which an instance of a module without contents, `CHOICE` and its number, chooses each."""
    numbers = [int(match[2], 16) for match in ALIVE.finditer(text)]
    modules = "".join(f"(* blackbox *)\nmodule {CHOICE}{n} (output y);\nendmodule\n" for n in numbers)
    return modules + ALIVE.sub(lambda m: f"  {CHOICE}{int(m[2], 16)} choose_{int(m[2], 16)} (.y({m[1]}));", text)
