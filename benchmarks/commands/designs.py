"""Commands that measure generated designs under Verilator: cycles, seconds, and other generators beside them."""
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from benchmarks import chips as several
from benchmarks import cost, designs, families, stacks
from benchmarks.commands.group import as_json, main, note, show
from benchmarks.resume import CHIPS


@main.command("generation", epilog="Example: python -m benchmarks generation --design lstm-k8 --json -")
@click.option("--design", "names", multiple=True, type=click.Choice(list(designs.DESIGNS)),
              default=tuple(designs.DESIGNS), show_default=True, help="May be repeated.")
@click.option("--against", type=click.Path(path_type=Path, dir_okay=False, exists=True), metavar="FILE",
              help="The JSON of another checkout: exit 1 where a network, an image, a plan or cycles are others.")
@as_json
def _generation(path: str | None, names: tuple[str, ...], against: Path | None) -> None:
    """Hashes that tell whether a design has changed."""
    figures = designs.measure(names, note=note)
    show(figures, path)
    if against is not None and (changed := designs.differences(figures, json.loads(against.read_text("utf-8")))):
        click.echo("\n".join(["Designs that differ:", *changed]), err=True)
        raise SystemExit(1)


@main.command("chips", epilog="Example: python -m benchmarks chips --work 2 --json -")
@click.option("--work", "works", multiple=True, type=click.IntRange(1, len(several.WORKS)),
              help="Only this one, by its number; may be given several times.")
@click.option("--simulate/--predict", default=True, show_default=True, help="Build and simulate, or plan only.")
@click.option("--bits", default=64, show_default=True, help="Of a word of a link.")
@click.option("--latency", default=20, show_default=True, help="Cycles of a link.")
@as_json
def _chips(path: str | None, **options: Any) -> None:
    """Networks over several chips: what the search finds, predicted and under Verilator, and the papers' baselines;
    what has been played is kept in build/chips.jsonl, and a design of the same bytes is not played again."""
    figures = several.measure(**options, kept=CHIPS, note=note)
    show(dict(figures), path)
    if any(row["mismatches"] for row in figures["rows"]):
        raise SystemExit(1)


@main.command("stacks", epilog="Example: python -m benchmarks stacks --levels 6 --predict --json -")
@click.option("--shape", "shapes", multiple=True, type=click.IntRange(1, len(stacks.PAPERS)),
              help="Only this one, by its number; may be given several times.")
@click.option("--papers", is_flag=True, help="The layers of ESE, C-LSTM, E-RNN and what else has aims, held or missed.")
@click.option("--block", "blocks", multiple=True, type=int, help="Block size; else 8 and 16, or those with aims.")
@click.option("--multipliers", default=2760, show_default=True, help="Budget; that of the papers' XCKU060.")
@click.option("--levels", default=4, show_default=True, help="Of logic between two registers.")
@click.option("--objective", type=click.Choice(["throughput", "auto", "latency", "area"]), default="throughput",
              show_default=True, help="An array for each layer, one for all, or whichever is better.")
@click.option("--streams", default=1, show_default=True, help="Interleaved sequences.")
@click.option("--beats", "beat_blocks", default=1, show_default=True, help="Blocks a cycle; 0: the best.")
@click.option("--simulate/--predict", default=True, show_default=True, help="Build and simulate, or plan only.")
@click.option("--steps", default=stacks.STEPS, show_default=True, help="Of each sequence that is played.")
@click.option("--chart", is_flag=True, help="Only draw when each layer has the array that they share.")
@as_json
def _stacks(path: str | None, chart: bool, **options: Any) -> None:
    """Stacks of LSTMs and GRUs with published cycles: period and latency, predicted and under Verilator."""
    known = stacks.PAPERS if options["papers"] else stacks.SHAPES
    if beyond := [number for number in options["shapes"] if number > len(known)]:
        raise click.BadParameter(f"It must be from 1 to {len(known)}, not {beyond[0]}.", param_hint="--shape")
    if chart:
        few = {name: options[name] for name in ("multipliers", "levels", "objective")}
        for number in options["shapes"] or range(1, len(known) + 1):
            for block in options["blocks"] or (8, 16):
                click.echo("\n".join(stacks.gantt(known[number - 1], block, **few)))
        return
    figures = stacks.measure(**options, note=note)
    show(figures, path)
    if any(each.get("mismatches") for each in figures["stacks"]):
        raise SystemExit(1)


@main.command("cost", epilog="Example: python -m benchmarks cost --json -")
@as_json
def _cost(path: str | None) -> None:
    """Instructions of the generated C beside a dense loop's, and time of an image beside onnxruntime."""
    found = cost.measure(note)
    show(asdict(found), path, "cost", cost.table(found))


@main.command("families", epilog="Example: python -m benchmarks families --shape tcn-3x128 --block 8 --json -")
@click.option("--shape", "names", multiple=True, type=click.Choice(list(families.FAMILIES)), help="May be repeated.")
@click.option("--block", "blocks", multiple=True, type=int, default=(8, 16), show_default=True, help="Block size.")
@click.option("--multipliers", default=2760, show_default=True, help="Budget.")
@click.option("--levels", default=6, show_default=True, help="Of logic between two registers.")
@click.option("--simulate/--predict", default=True, show_default=True, help="Build and play, or plan only.")
@as_json
def _families(path: str | None, **options: Any) -> None:
    """Perceptrons, temporal convolutions and WaveNet with published cycles: period and latency under Verilator."""
    show(asdict(families.measure(**options, note=note)), path)
