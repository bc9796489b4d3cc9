"""Files for a full flow, beside the netlist: constraints, a configuration for LibreLane, a script for SiliconCompiler,
stubs of macros and hints for their placement. Placement and routing themselves are not run here: OpenROAD cannot be
had from pip.
"""
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from circulant.boards.asic.cells.catalogue import Known
from circulant.boards.asic.cells.library import Library
from circulant.boards.asic.macros import Macro
from circulant.boards.asic.memories import Memory
from circulant.boards.asic.power.energy import UTILISATION
from circulant.boards.asic.timing import constraints
from circulant.sim.files.writing import atomic_text

__all__ = ["handover", "lef", "placement"]

_SCRIPT = '''\
"""Placement and routing of {top} with SiliconCompiler: python {file}"""
from siliconcompiler import ASIC, Design
from siliconcompiler.targets import {target}


def main():
    design = Design("{top}")
    design.set_dataroot("here", __file__)
    with design.active_dataroot("here"), design.active_fileset("rtl"):
        design.set_topmodule("{top}")
        design.add_file("netlist.v")
    with design.active_dataroot("here"), design.active_fileset("sdc"):
        design.add_file("design.sdc")
    project = ASIC(design)
    project.add_fileset(["rtl", "sdc"])
    {target}(project)
    project.constraint.area.set_density({density})
    project.run()
    project.summary()


if __name__ == "__main__":
    main()
'''

_TARGETS = {"sky130hd": "skywater130_demo", "sg13g2": "ihp130_demo", "asap7": "asap7_demo"}


def handover(out: Path, library: Library, known: Known, top: str, *, mhz: float, areas: Mapping[str, float],
             memories: Sequence[Memory], macros: Mapping[str, Macro]) -> None:
    """Write the files into ``out``."""
    atomic_text(out / "design.sdc", constraints(mhz))
    hints = placement(sum(areas.values()), memories, macros)
    if hints:
        atomic_text(out / "macro_placement.cfg",
                    "".join(f"{name} {x:.2f} {y:.2f} N\n" for name, x, y in hints))
        atomic_text(out / "macros.lef", lef(memories, macros, known))
    if known.pdk:
        config = {"DESIGN_NAME": top, "VERILOG_FILES": ["dir::netlist.v"], "CLOCK_PORT": "clk",
                  "CLOCK_PERIOD": round(1e3 / mhz, 4), "PNR_SDC_FILE": "dir::design.sdc",
                  "SIGNOFF_SDC_FILE": "dir::design.sdc", "PDK": known.pdk, "STD_CELL_LIBRARY": known.cells,
                  "FP_CORE_UTIL": round(100 * UTILISATION), "PL_TARGET_DENSITY_PCT": round(100 * UTILISATION) + 5,
                  "SYNTH_ELABORATE_ONLY": True,
                  **({"MACRO_PLACEMENT_CFG": "dir::macro_placement.cfg", "EXTRA_LEFS": ["dir::macros.lef"]}
                     if hints else {})}
        atomic_text(out / "librelane.json", json.dumps(config, indent=1) + "\n")
    if library.name in _TARGETS:
        atomic_text(out / "siliconcompiler_flow.py", _SCRIPT.format(
            top=top, file="siliconcompiler_flow.py", target=_TARGETS[library.name], density=round(100 * UTILISATION)))


def lef(memories: Sequence[Memory], macros: Mapping[str, Macro], known: Known) -> str:
    """Stubs of memory macros as LEF 5.8, under the names that the netlist has for them: a square of the macro's area,
    signal pins in a row at its lower edge, supplies as strips at both sides, all else blocked on that layer.

    A stub stands for a macro while a floorplan is made; the vendor's LEF takes its place.
    """
    power, ground = known.supplies
    blocks = []
    for memory in {each.module: each for each in memories if each.macro}.values():
        names = [(f"{port}[{n}]" if len(bits) > 1 else port, "OUTPUT" if port == "rd_data" else "INPUT")
                 for port, bits in memory.ports.items() for n in range(len(bits))]
        side = math.sqrt(macros[memory.macro].area)
        step = side / (len(names) + 4)
        strips = ((power, "POWER", step), (ground, "GROUND", side - 2 * step))
        pins = [_pin(name, way, "CLOCK" if name.endswith("_clk") else "SIGNAL", known.layer,
                     (step * (at + 2.25), 0.0, step * (at + 2.75), step)) for at, (name, way) in enumerate(names)]
        pins += [_pin(name, "INOUT", use, known.layer, (x, 0.0, x + step, side)) for name, use, x in strips]
        blocks.append(f"MACRO {memory.module}\n  CLASS BLOCK ;\n  ORIGIN 0 0 ;\n  SIZE {side:.3f} BY {side:.3f} ;\n"
                      f"{''.join(pins)}  OBS\n    LAYER {known.layer} ;\n      RECT {2.25 * step:.3f} {2 * step:.3f} "
                      f"{side - 2.25 * step:.3f} {side:.3f} ;\n  END\nEND {memory.module}\n")
    return 'VERSION 5.8 ;\nBUSBITCHARS "[]" ;\nDIVIDERCHAR "/" ;\n' + "".join(blocks) + "END LIBRARY\n"


def _pin(name: str, way: str, use: str, layer: str, corners: tuple[float, ...]) -> str:
    return (f"  PIN {name}\n    DIRECTION {way} ;\n    USE {use} ;\n    PORT\n      LAYER {layer} ;\n        RECT "
            f"{' '.join(f'{each:.3f}' for each in corners)} ;\n    END\n  END {name}\n")


def placement(total: float, memories: Sequence[Memory], macros: Mapping[str, Macro]) -> list[tuple[str, float, float]]:
    """Names of macros with places of their lower left corners, in µm: along the lower edge of the core, row over row,
    the largest first, so that the cells have the rest in one piece."""
    side = math.sqrt(total / UTILISATION)
    found, x, y, tallest = [], 0.0, 0.0, 0.0
    for memory in sorted((memory for memory in memories if memory.macro), key=lambda each: -macros[each.macro].area):
        extent = math.sqrt(macros[memory.macro].area)
        if x and x + extent > side:
            x, y, tallest = 0.0, y + tallest, 0.0
        found.append((memory.instance, x, y))
        x, tallest = x + extent, max(tallest, extent)
    return found
