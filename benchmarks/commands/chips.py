"""Commands that measure by synthesis: cells, memories and clocks of FPGAs and ASICs, beside their estimates."""
import json
from pathlib import Path
from typing import Any

import click

from benchmarks import asic, boards, estimate, logic, synthesis
from benchmarks.commands.group import as_json, main, note, show
from circulant.boards.asic.cells.catalogue import known


@main.command("estimate", epilog="Example: python -m benchmarks estimate --json docs/measured/estimate.json")
@click.option("--no-routes", "routes", flag_value=False, default=True, help="Leave the clocks out, which take most of "
              "the time.")
@click.option("--kept", type=click.Path(path_type=Path, dir_okay=False, exists=True), metavar="FILE",
              help="Take the clocks of these earlier figures for what is not routed again.")
@as_json
def _estimate(path: str | None, routes: bool, kept: Path | None) -> None:
    """Estimates against what Yosys found (docs/measured/logic.json) and what nextpnr reaches."""
    show(estimate.measure(routes=routes, kept=kept, note=note), path)


@main.command("synthesis", epilog="Example: python -m benchmarks synthesis --no-levels --json -")
@click.option("--levels/--no-levels", default=True, show_default=True,
              help="Map the logic too, and count the look-up tables on the longest path.")
@click.option("--point", "chosen", multiple=True, type=click.IntRange(1, len(synthesis.POINTS)),
              help="Only this one, by its number; may be given several times.")
@click.option("--fewer", is_flag=True, help="Two designs with fewer and fewer registers instead (hardware.levels).")
@click.option("--packed", is_flag=True, help="Three designs without and with two products in a DSP block instead.")
@as_json
def _synthesis(path: str | None, levels: bool, chosen: tuple[int, ...], *, fewer: bool, packed: bool) -> None:
    """DSP blocks, block RAMs and levels of logic by Yosys, against the prediction."""
    points = [synthesis.POINTS[n - 1] for n in chosen] or synthesis.POINTS
    points = synthesis.FEWER if fewer else synthesis.PACKED if packed else points
    show(synthesis.measure(points, levels=levels, note=note), path)


@main.command("logic", epilog="Example: python -m benchmarks logic --family ecp5 --json -")
@click.option("--family", "families", multiple=True, type=click.Choice(list(logic.FITTED)), default=list(logic.FITTED),
              show_default=True, help="May be given several times.")
@click.option("--only", multiple=True, metavar="KEY",
              help="Designs, such as 2 or 'images 0'; may be given several times.")
@click.option("--kept", type=click.Path(path_type=Path, dir_okay=False, exists=True), metavar="FILE",
              help="Take the figures of other families, and of other designs, from this file.")
@click.option("--fit", "fits", is_flag=True, help="Fit the factors of hw/plan/families.py to the figures of --kept, "
              "and print them.")
@as_json
def _logic(path: str | None, families: tuple[str, ...], only: tuple[str, ...], kept: Path | None, fits: bool) -> None:
    """Look-up tables and flip-flops by Yosys, against the estimate."""
    if fits:
        click.echo(json.dumps({family: logic.fit(family, kept or logic.LOGIC) for family in families}, indent=1))
        return
    show(logic.measure(families, only=only, kept=kept, note=note), path)


@main.command("boards", epilog="Example: python -m benchmarks boards --design icebreaker-digits --json -")
@click.option("--design", "names", type=click.Choice(list(boards.DESIGNS)), multiple=True,
              help="One of them, instead of all, which take hours; may be repeated.")
@click.option("--runs", type=click.Path(file_okay=False, exists=True), metavar="DIR",
              help="Folder of run folders with these names, whose designs and bitstreams are taken.")
@as_json
def _boards(path: str | None, names: tuple[str, ...], runs: str | None) -> None:
    """The shipped designs for boards: clock, cells, and how far their estimates are from it."""
    show(boards.measure(names, runs=runs), path)


@main.command("asic", epilog="Example: python -m benchmarks asic --json -")
@click.option("--design", "names", multiple=True, type=click.Choice(asic.NETWORKS), default=asic.NETWORKS,
              show_default=True, help="May be repeated.")
@click.option("--library", "libraries", multiple=True, type=click.Choice(list(known())), default=list(known()),
              show_default=True, help="May be repeated.")
@click.option("--runs", default="runs", show_default=True, type=click.Path(path_type=Path),
              help="Folder of run folders, whose networks are taken where they are there; else random weights.")
@click.option("--samples", default=2, show_default=True, help="Sequences for the activity; 0 computes no energy.")
@click.option("--kept", default="build/asic", show_default=True, type=click.Path(path_type=Path),
              help="Folder of netlists and of earlier measurements, from which a call goes on.")
@click.option("--levels", type=int, help="Of logic between two registers.  [default: 9 for sky130hd, else 6]")
@as_json
def _asic(path: str | None, names: tuple[str, ...], libraries: tuple[str, ...], **options: Any) -> None:
    """Designs as standard cells of three libraries: area, clock, energy of an inference."""
    show(asic.measure(names, libraries, **options, note=note), path)
