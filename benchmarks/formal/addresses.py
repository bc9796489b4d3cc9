"""Whether a design writes its memories within their words alone, whatever comes: IC3 over the registers that decide.

Data is free, as are products of multipliers and what memories hold that are written: what holds for any data holds for
that of the design. The first cycle is a reset. Registers without a reset hold anything until they are loaded; so does a
memory without an image, which is looked at from the cycle `LOADED` on, while one with an image is looked at from the
first cycle on. Words beyond the last one are read now and then, by registers that have not been loaded yet or whose
word is not used; that such words do not count is left to simulations with unknown values.
"""
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks.formal.check import proved
from benchmarks.formal.parts import RESET, parts
from benchmarks.formal.tools import abc, yosys
from circulant.sim.cosim.manifest import Manifest

__all__ = ["LOADED", "written"]

LOADED = 16
"""Cycles after which no register holds what it held at first, in the stages between a sequencer and an array's rows."""

MODULE = re.compile(r"^module (\w+) \(.*?^\);.*?^endmodule", re.MULTILINE | re.DOTALL)
WRITE = re.compile(r"^    if \(([^;]*?)\) (\w+)\[([^;]*?)\] <= ", re.MULTILINE)
OUTPUT = re.compile(r"^output (\d+) \d (.*)", re.MULTILINE)
"""An output in a map of Yosys: its number, and its wire."""

AGE = f"""\
  reg [4:0] circulant_age = 0;
  always @(posedge clk) if (circulant_age != {LOADED}) circulant_age <= circulant_age + 1;
"""
"""Counts the cycles up to `LOADED`."""

SCRIPT = """\
read_verilog -sv text
hierarchy -top {part}
delete -port {part}/o:*
proc
flatten
setattr -unset init w:* w:*circulant_age %d
expose w:*outside:*
memory_collect
delete t:$mem_v2 r:WR_PORTS>0 %i t:$mul
memory_nordff
memory_map
opt -nodffe -nosdff
techmap
setundef -undriven -anyseq
opt -full -nodffe -nosdff
dffunmap
aigmap
opt_clean
write_aiger -zinit -map outside.map outside.aig
"""


def written(manifest: Manifest, *, seconds: float = 20.0, note: Callable[[str], None] = lambda text: None
            ) -> dict[str, bool]:
    """By module and memory whether it is proved that no word beyond the last one is written: of the module by itself,
    whatever is around it, or else of a larger part of the circuit.

    Parameters:
        seconds: for a port, first for its address alone and then for the cycles in which it is enabled.
    """
    verilog = "".join(path.read_text() for path in manifest.verilog)
    found = dict[str, bool]()
    for module in MODULE.finditer(verilog):
        names = dict.fromkeys(f"{module[1]}.{memory}" for _, memory, _ in WRITE.findall(module[0]))
        beyond = {memory for _, memory, _, _ in _ports(module[0])}
        found |= {name: name.split(".")[1] not in beyond for name in names}
        for part in parts(verilog, module[1], manifest.top):
            if left := [name for name in names if not found[name]]:
                found |= _proved(verilog, part, left, manifest=manifest, seconds=seconds)
        for name in names:
            note(f"{name}: {'proved' if found[name] else 'not proved'}")
    return found


def _proved(verilog: str, part: str, memories: Sequence[str], *, manifest: Manifest, seconds: float) -> dict[str, bool]:
    """The same of all instances of some memories in a part; False where it has none."""
    reset = manifest.reset if part == manifest.top else RESET
    with tempfile.TemporaryDirectory(prefix="circulant-addresses-") as temporary:
        folder = Path(temporary)
        for image in manifest.images:
            (folder / image.name).write_bytes(image.read_bytes())
        (folder / "text").write_text(MODULE.sub(
            lambda module: _told(module, reset if module[1] == part else ""), verilog))
        yosys(SCRIPT.format(part=part), folder, "outside.aig")
        wires: dict[str, list[str]] = {}
        for number, wire in OUTPUT.findall((folder / "outside.map").read_text()):
            wires.setdefault(wire, []).append(number)

        def never(number: str) -> bool:
            way = f"cone -O {number}; scorr -C 10000; print_stats; pdr -nct -T {seconds:.0f}"
            return proved(abc(f"read outside.aig; {way}", folder, 3 * seconds))

        found = {name: [numbers for wire, numbers in wires.items() if f"outside:{name}:" in wire] for name in memories}
        return {name: bool(each) and all(any(map(never, numbers)) for numbers in each) for name, each in found.items()}


def _ports(module: str) -> Iterator[tuple[str, str, str, int]]:
    """Enable, memory, address, and the memory's last word, of each port whose address has values beyond that."""
    for enabled, memory, address in WRITE.findall(module):
        last = re.search(rf"\b{memory} \[0:(\d+)\]", module)
        width = re.search(rf"\b(?:input|reg|wire) (?:\[(\d+):0\] )?{re.escape(address)}\b", module)
        assert last is not None, f"{memory} must be declared with its words"
        if width is None or 1 << int(width[1] or 0) + 1 > int(last[1]) + 1:
            yield enabled, memory, address, int(last[1])


def _told(module: re.Match[str], reset: str) -> str:
    """A module with a wire for each port that writes a memory: bit 0 says that it is addressed beyond the last word,
    bit 1 that it is also enabled.

    Parameters:
        reset: the port that is 1 in the first cycle; empty for none.
    """
    head, body = module[0].split("\n);\n", 1)
    lines = AGE if "input clk" in head else ""
    if reset:
        head = head.replace(f"input {reset},", f"input free_{reset},")
        lines += f"  wire {reset} = free_{reset} | circulant_age == 0;\n"
    outside = ""
    for n, (enabled, memory, address, last) in enumerate(_ports(module[0])):
        since = 1 if re.search(rf"\$readmemh\([^)]*\b{memory}\b", body) else LOADED
        outside += (f"  wire [1:0] \\outside:{module[1]}.{memory}:{n}  = {{2{{circulant_age >= {since} & "
                    f"({address}) > {last}}}}} & {{{enabled}, 1'b1}};\n")
    return f"{head}\n);\n{lines}{body.removesuffix('endmodule')}{outside}endmodule"
