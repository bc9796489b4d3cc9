"""Commands that measure training: accuracy, time, and the search for a design."""
from pathlib import Path
from typing import Any

import click

from benchmarks import (
    activations,
    alternatives,
    defaults,
    digits,
    explore,
    golden,
    quantization,
    results,
    training,
)
from benchmarks.commands.group import add, as_json, main, show
from benchmarks.experiments import EXPERIMENTS, FOLDER
from benchmarks.records import KEPT
from circulant.sim.files.writing import atomic_bytes

add("digits", digits.measure, "The main job, from torch to Verilator.")
add("training", training.measure, "An epoch of ADMM, and a block-circulant Linear, against the dense ones.")
add("activations", activations.measure, "Sigmoid and tanh in integers; draws docs/images/activations.png.")
add("golden", golden.measure, "Sequences per second of the golden model, and of its C.")


@main.command("defaults", epilog="Example: python -m benchmarks defaults --seeds 1 --epochs 8 --json -")
@click.option("--seeds", default=3, show_default=True, help="Trainings of each kind.")
@click.option("--epochs", default=defaults.EPOCHS, show_default=True, help="Of ADMM, and of retraining.")
@click.option("--set", "sets", multiple=True, type=click.Choice(list(defaults.SETS)), help="May be repeated.")
@as_json
def _defaults(path: str | None, seeds: int, epochs: int, sets: tuple[str, ...]) -> None:
    """Points lost by train_admm and train_direct with default settings, on small sets; goes on where it stopped."""
    show(defaults.measure(seeds=seeds, epochs=epochs, sets=sets or tuple(defaults.SETS),
                          note=lambda text: click.echo(text, err=True)), path)


@main.command("explore", epilog="Example: python -m benchmarks explore --json -")
@as_json
def _explore(path: str | None) -> None:
    """The exploration: points a second of the cost model, errors, overhead of a point, trainings, what was found."""
    figures = explore.measure()
    rows = {f"{name} {word}".strip(): ", ".join(f"{key} {its:,.4g}" for key, its in each.items())
            if isinstance(each, dict) else f"{each:,.6g}" for name, value in figures.items()
            for word, each in (value.items() if isinstance(value, dict) else [("", value)])}
    show(figures, path, "Exploration", rows)


@main.command("quantization", epilog="Example: python -m benchmarks quantization --json -")
@click.option("--network", "networks", multiple=True, metavar="NAME",
              help=f"Run folder or shipped experiment; may be repeated.  [default: {', '.join(quantization.NETWORKS)}]")
@click.option("--runs", default="runs", show_default=True, metavar="DIR", help="Folder of the run folders.")
@click.option("--budget", default=quantization.BUDGET, show_default=True, help="Points that may be lost.")
@click.option("--tuned", multiple=True, type=int, metavar="BITS",
              help=f"Weight width to fine-tune to, or 0 for none; may be repeated.  [default: {quantization.TUNED}]")
@click.option("--pick-on", type=click.Choice(["train", "test"]), default="train", show_default=True,
              help="Part of the data on which the loss is measured.")
@click.option("--pick-by", type=click.Choice(["margins", "metric"]),
              help="What the loss is.  [default: as the experiment]")
@click.option("--samples", type=int, help="Of that part; 0 for all.  [default: as the experiment]")
@click.option("--subset", default=0, show_default=True, help="Training and test samples to keep; 0 for all.")
@click.option("--margin", default=1.0, show_default=True, help="Factor on the distance from the unquantized outputs.")
@as_json
def _quantization(path: str | None, networks: tuple[str, ...], tuned: tuple[int, ...], **options: Any) -> None:
    """Widths picked within a budget against uniform 12 bits, and weights trained on 8, 6 and 4 bits."""
    widths = [bits for bits in tuned or quantization.TUNED if bits]
    show(quantization.measure(networks or quantization.NETWORKS, tuned=widths, **options), path)


@main.command("results", epilog="Example: python -m benchmarks results --train --seeds 0 --only fsdd-gru")
@click.option("--train", "trains", is_flag=True, help="First train every row that is missing.")
@click.option("--only", multiple=True, type=click.Choice(EXPERIMENTS), help="An experiment; may be repeated.")
@click.option("--seeds", default="0,1,2", show_default=True, help="Of --train.")
@click.option("--runs", default=FOLDER, type=click.Path(path_type=Path), show_default=True,
              help="Where the run folders are.")
@click.option("--kept", default=KEPT, type=click.Path(path_type=Path), show_default=True,
              help="Where the records of earlier trainings are kept.")
@click.option("--keep", "keeps", is_flag=True, help="Keep the records of the run folders there, too.")
@click.option("--write", "into", type=click.Path(path_type=Path, dir_okay=False, exists=True), metavar="FILE",
              help="Replace the tables of this document, docs/results.md.")
@as_json
def _results(path: str | None, trains: bool, only: tuple[str, ...], seeds: str, runs: Path, kept: Path, keeps: bool,
             into: Path | None) -> None:
    """Collect the shipped experiments' accuracies from their run folders beside their targets."""
    chosen = only or EXPERIMENTS
    if trains:
        results.train(chosen, [int(seed) for seed in seeds.split(",")], runs, kept)
    if keeps:
        results.keep(runs, chosen, kept)
    found = results.collect(runs, chosen, kept)
    if into is not None:
        results.write(into, found)
    show({"benchmark": "results", "table": results.table(found), **found}, path)


@main.command("alternatives", epilog="Example: python -m benchmarks alternatives --data images --json -")
@click.option("--data", "names", multiple=True, type=click.Choice(list(alternatives.COMPARISONS)),
              help="May be repeated.  [default: all]")
@click.option("--picture", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Draw errors against both costs, for one --data.")
@as_json
def _alternatives(path: str | None, names: tuple[str, ...], picture: Path | None) -> None:
    """Block-circulant matrices against dense, low-rank, pruned and Monarch ones, at equal cost: digits and images in
    noise. Figures are those of docs/measured/alternatives.csv."""
    if picture is not None and len(names) != 1:
        raise click.BadParameter("It is of one comparison; give one --data.", param_hint="--picture")
    found = {name: alternatives.collect(name) for name in names or alternatives.COMPARISONS}
    lines = {line: said for name, rows in found.items() for line, said in alternatives.table(name, rows).items()}
    if picture is not None:
        atomic_bytes(picture, alternatives.draw(names[0], found[names[0]]))
    show({"benchmark": "alternatives", "table": lines, "rows": found}, path)
