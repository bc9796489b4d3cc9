"""Commands that measure training: accuracy, and time."""
from pathlib import Path

import click

from benchmarks import alternatives, campaign, digits, results
from benchmarks.commands.group import add, as_json, main, show
from benchmarks.experiments import EXPERIMENTS, FOLDER
from benchmarks.records import KEPT
from circulant.sim.files.writing import atomic_bytes

main.add_command(campaign.command)
add("digits", digits.measure, "The main job, from torch to Verilator.")


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
