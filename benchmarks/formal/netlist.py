"""Netlists of Verilog as Yosys writes them: gates of one bit, registers, and whole memories."""
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from pathlib import Path

from benchmarks.formal.tools import yosys
from circulant.boards.yosys_json import Module

__all__ = ["CHOICE", "Box", "Gate", "Memory", "Netlist", "netlist", "sides"]

SCRIPT = """\
read_verilog -sv text
hierarchy -top {top}
proc
flatten
opt_clean
memory_collect
memory_nordff
opt -nodffe -nosdff
dffunmap
techmap t:* t:$mem_v2 %d t:$dff %d {boxes}
techmap t:$fa t:$lcu
opt -nodffe -nosdff
aigmap
opt_clean
write_json netlist.json
"""

CHOICE = "circulant_choice_"
"""Modules without contents, each with an output ``y`` of one bit that is free."""

Bit = int
"""A net of one bit; 0 and 1 are the constants."""


@dataclass(frozen=True)
class Gate:
    """An AND of two nets, or where ``b`` is None the inverse of one."""

    y: Bit
    a: Bit
    b: Bit | None


@dataclass(frozen=True)
class Memory:
    """A memory that is read without a clock edge.

    Parameters:
        reads: addresses and data of each port that reads.
        writes: addresses, data, and an enable for each bit, of each port that writes; a later port wins.
        contents: of each word its bits, the lowest first, "x" where it has none.
        name: its path.
    """

    width: int
    depth: int
    reads: tuple[tuple[tuple[Bit, ...], tuple[Bit, ...]], ...]
    writes: tuple[tuple[tuple[Bit, ...], tuple[Bit, ...], tuple[Bit, ...]], ...]
    contents: tuple[str, ...]
    name: str = ""


@dataclass(frozen=True)
class Box:
    """A multiplier that is not looked into: what it gives depends on what it takes, and on nothing else."""

    takes: tuple[Bit, ...]
    gives: tuple[Bit, ...]


Cell = Gate | Box | tuple[Memory, int]
"""A gate, a multiplier, or one of the reading ports of a memory."""


@dataclass(frozen=True)
class Netlist:
    """A flat circuit of one clock.

    Parameters:
        inputs, outputs: nets by port.
        registers: what each one holds, and what it holds next.
        cells: in an order in which each comes behind those that it needs.
        words: registers that belong together.
        choices: what the modules `CHOICE` and a name give, of all their instances.
    """

    inputs: dict[str, tuple[Bit, ...]]
    outputs: dict[str, tuple[Bit, ...]]
    registers: tuple[tuple[Bit, Bit], ...]
    memories: tuple[Memory, ...]
    cells: tuple[Cell, ...]
    words: tuple[tuple[Bit, ...], ...] = ()
    choices: dict[str, tuple[Bit, ...]] = field(default_factory=dict)


def netlist(text: str, top: str, *, images: Sequence[Path] = (), boxes: bool = False) -> Netlist:
    """The netlist of a circuit.

    Parameters:
        images: of memories, which the text names.
        boxes: whether multipliers stay whole.
    """
    with tempfile.TemporaryDirectory(prefix="circulant-netlist-") as temporary:
        folder = Path(temporary)
        for image in images:
            (folder / image.name).write_bytes(image.read_bytes())
        (folder / "text").write_text(text)
        yosys(SCRIPT.format(top=top, boxes="t:$mul %d" if boxes else ""), folder, "netlist.json")
        design = json.loads((folder / "netlist.json").read_text())["modules"][top]
    return _read(design)


def _read(design: Module) -> Netlist:
    def nets(bits: Sequence[int | str]) -> tuple[Bit, ...]:
        return tuple(bit + 2 if isinstance(bit, int) else int(bit == "1") for bit in bits)  # "x" is as good as 0.

    cells: list[Cell] = []
    registers: list[tuple[Bit, Bit]] = []
    memories: list[Memory] = []
    words: list[tuple[Bit, ...]] = []
    choices: dict[str, tuple[Bit, ...]] = {}
    for cell in design["cells"].values():
        at = {port: nets(bits) for port, bits in cell["connections"].items()}
        kind = cell["type"]
        if kind == "$_AND_":
            cells.append(Gate(at["Y"][0], at["A"][0], at["B"][0]))
        elif kind == "$_NOT_":
            cells.append(Gate(at["Y"][0], at["A"][0], None))
        elif kind in ("$dff", "$_DFF_P_"):
            registers += zip(at["Q"], at["D"], strict=True)
            words.append(at["Q"])
        elif kind == "$mem_v2":
            memories.append(_memory(cell["parameters"], at))
            cells += [(memories[-1], n) for n in range(len(memories[-1].reads))]
        elif kind == "$mul":
            cells.append(Box((*at["A"], *at["B"]), at["Y"]))
        elif kind.startswith(CHOICE):
            name = kind.removeprefix(CHOICE)
            choices[name] = (*choices.get(name, ()), *at["y"])
        elif kind != "$scopeinfo":
            raise RuntimeError(f"A cell of the type {kind} has no meaning here yet")
    ports = {name: (port["direction"], nets(port["bits"])) for name, port in design["ports"].items()}
    return Netlist({name: bits for name, (way, bits) in ports.items() if way == "input"},
                   {name: bits for name, (way, bits) in ports.items() if way == "output"},
                   registers=tuple(registers), memories=tuple(memories), cells=_ordered(cells),
                   words=tuple(words), choices=choices)


def _memory(parameters: dict[str, str], at: dict[str, tuple[Bit, ...]]) -> Memory:
    width, depth, abits, reads, writes = (int(parameters[name], 2) for name in (
        "WIDTH", "SIZE", "ABITS", "RD_PORTS", "WR_PORTS"))
    assert "1" not in parameters["RD_CLK_ENABLE"] and int(parameters["OFFSET"], 2) == 0
    init = parameters["INIT"][::-1] if set(parameters["INIT"]) - {"x"} else "x" * (width * depth)
    return Memory(
        width, depth,
        tuple((at["RD_ADDR"][n * abits:][:abits], at["RD_DATA"][n * width:][:width]) for n in range(reads)),
        tuple((at["WR_ADDR"][n * abits:][:abits], at["WR_DATA"][n * width:][:width], at["WR_EN"][n * width:][:width])
              for n in range(writes)),
        tuple(init[n * width:(n + 1) * width] for n in range(depth)), name=parameters["MEMID"].lstrip("\\"))


def sides(cell: Cell) -> tuple[tuple[Bit, ...], tuple[Bit, ...]]:
    """Nets that a cell needs, and that it drives."""
    if isinstance(cell, Gate):
        return (cell.a, *(() if cell.b is None else (cell.b,))), (cell.y,)
    if isinstance(cell, Box):
        return cell.takes, cell.gives
    memory, port = cell
    return memory.reads[port]


def _ordered(cells: Sequence[Cell]) -> tuple[Cell, ...]:
    drives = {bit: n for n, cell in enumerate(cells) for bit in sides(cell)[1]}
    graph = {n: {drives[bit] for bit in sides(cell)[0] if bit in drives} for n, cell in enumerate(cells)}
    return tuple(cells[n] for n in TopologicalSorter(graph).static_order())
