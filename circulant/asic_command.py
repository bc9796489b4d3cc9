"""The command ``circulant asic``: the design of a run as standard cells."""
from pathlib import Path

import click
from rich.console import Console

from circulant.arguments import JSON, RUNS, Number, say
from circulant.experiment import DEFAULT, load
from circulant.extras import extras
from circulant.progress import Bars
from circulant.run.integrity import played_of
from circulant.run.run_folder import Run, require

__all__ = ["asic"]


@click.command("asic", short_help="Map to standard cells: area, clock and energy",
               epilog="docs/asic.md describes method and figures, and what they leave out.")
@click.argument("folder", metavar="[RUN]", required=False, type=click.Path(path_type=Path, file_okay=False),
                default=RUNS / DEFAULT)
@click.option("--library", "names", multiple=True, metavar="NAME|FILE", help="sky130hd, sg13g2, asap7, or a "
              "liberty file (.lib, .gz, .xz); several files form one library.  [default: hardware.library, else "
              "sky130hd]")
@click.option("--corner", "corners", multiple=True, metavar="FILES", help="Liberty files of the same cells at another "
              "voltage, temperature or process, with commas between them; may be repeated.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
              help="Folder of netlist and figures.  [default: asic/LIBRARY in the run folder]")
@click.option("--mhz", type=Number(1, 10_000), metavar="MHZ", help="Target clock.  [default: that of the "
              "library; 100 for liberty files]")
@click.option("--clock-gating/--no-clock-gating", "gating", default=True, show_default=True,
              help="Give registers with an enable a clock gate.")
@click.option("--scan", is_flag=True, help="Put all flip-flops on a scan chain.")
@click.option("--macros", "table", type=click.Path(path_type=Path, dir_okay=False, exists=True), metavar="FILE",
              help="TOML table of memory macros.  [default: a model of OpenRAM's]")
@click.option("--macro-bits", "least", type=click.IntRange(1), metavar="N", help="Number of bits from which a memory "
              "becomes a macro of the model.  [default: 16384]")
@click.option("--rom-macro-bits", "least_rom", type=click.IntRange(1), metavar="N", help="The same of memories with "
              "fixed contents, which are gates below.  [default: 131072]")
@click.option("--samples", type=click.IntRange(0), default=4, show_default=True, metavar="N",
              help="Sequences of the test set that are simulated for the energy; 0 computes no energy.")
@click.option("--rate", type=Number(0, min_open=True), metavar="N", help="Inferences a second, for the mean "
              "power at this rate and clock.")
@click.option("--simulator", type=click.Choice(["icarus", "verilator"]),
              metavar="NAME", help="Also play these sequences under icarus or verilator, and compare every output.")
@click.option("--timing/--no-timing", "timed", default=True, show_default=True,
              help="Analyse the timing with OpenSTA.")
@JSON
def asic(folder: Path, names: tuple[str, ...], corners: tuple[str, ...], out: Path | None, mhz: float | None, *,
         gating: bool, scan: bool, table: Path | None, least: int | None, least_rom: int | None, samples: int,
         rate: float | None, timed: bool, simulator: str | None, as_json: bool) -> int:
    """Map the design of a run to standard cells with Yosys and ABC, analyse its timing with OpenSTA, simulate the
    netlist on test sequences, and compute its energy from the switching.

    Writes the netlist, models of its cells, constraints, and files for LibreLane and SiliconCompiler. Exits with 4 when
    the clock is not reached.

    \b
    Example:
      circulant asic runs/digits-gru --library sky130hd
      circulant asic runs/digits-gru --library cells_tt.lib --corner cells_ss.lib --mhz 5 --rate 10
    """
    with extras("circulant asic", "amaranth", "cocotb"):
        from circulant.boards.asic.cells.catalogue import corner, library
        from circulant.boards.asic.flow import asic as made_of
        from circulant.boards.asic.flow import lines
        from circulant.boards.asic.macros import LEAST, LEAST_ROM, model

    run = Run(folder, load(folder))
    require(run, "generate")
    vectors = played_of(run, require(run, "quantize"))[1] if samples else None
    own = run.experiment.hardware.library
    cells, known = library(names or (own if own != "none" else "sky130hd",))
    others = [corner(each) for each in corners]
    with Bars(Console(stderr=True)) as bars:
        made = made_of(run.one_chip(), out or run.path(f"asic/{cells.name}"), cells, known, mhz=mhz or known.mhz,
                       gating=gating, scan=scan, macros=model(
                           cells.gate_area, cells.voltage, least or LEAST, table, least_rom or LEAST_ROM),
                       vectors=vectors, samples=samples,
                       timed=timed, simulator=simulator or "", corners=others, rate=rate or 0.0, show=bars)
    figures = made.as_json()
    say(figures, as_json, *lines(figures))
    wrong = (made.power.activity.mismatches if made.power else 0) + (made.simulated or {}).get("mismatches", 0)
    return 1 if wrong else 0
