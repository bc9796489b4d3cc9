"""The command line of the benchmarks: measure, then show as a table for people and, if wanted, as JSON."""
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from functools import wraps
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from benchmarks import (
    alternatives,
    asic,
    boards,
    campaign,
    chips,
    cost,
    designs,
    digits,
    estimate,
    families,
    fuzz,
    logic,
    mutation,
    proofs,
    results,
    size,
    soak,
    stacks,
    synthesis,
    users,
)
from benchmarks.experiments import EXPERIMENTS, FOLDER
from benchmarks.formal import shapes
from benchmarks.records import KEPT
from benchmarks.resume import CHIPS
from circulant.boards.asic.cells.catalogue import known
from circulant.sim.files.writing import atomic_bytes
from circulant.sim.refusal import Refusal

__all__ = ["main"]

Figures = Mapping[str, Any]
"""The name of a benchmark, a table for people, and figures for machines."""


class _Refused(click.ClickException):
    exit_code = 2


class _Benchmarks(click.Group):
    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except Refusal as refusal:
            raise _Refused(str(refusal)) from None


@click.group(cls=_Benchmarks, epilog="Example: python -m benchmarks digits --json -",
             context_settings={"show_default": True})
def main() -> None:
    """Measure the figures of the README and of docs/results.md."""


def note(text: str) -> None:
    """A line about the progress, on standard error."""
    click.echo(text, err=True)


def command(name: str, example: str = "", failed: Callable[[Any], Any] = lambda figures: False
            ) -> Callable[[Callable[..., Figures | None]], click.Command]:
    """A command that shows the figures that a function returns: as a table and, with --json, for machines.

    Parameters:
        example: options that the help shows.
        failed: whether figures say that something is wrong, so that the exit code is 1.
    """
    def made(measure: Callable[..., Figures | None]) -> click.Command:
        @main.command(name, epilog=f"Example: python -m benchmarks {' '.join([name, *example.split()])} --json -")
        @click.option("--json", "path", type=click.Path(dir_okay=False, allow_dash=True), metavar="FILE",
                      help="Write the figures as JSON; - is standard output, and the table then goes to standard "
                           "error.")
        @wraps(measure)
        def run(path: str | None, **options: Any) -> None:
            figures = measure(**options)
            if figures is None:
                return
            table = Table("figure", "value", title=figures["benchmark"], title_justify="left")
            for figure, value in figures["table"].items():
                table.add_row(figure, value)
            Console(stderr=path == "-").print(table)
            if path is not None:
                with click.open_file(path, "w", encoding="utf-8") as file:
                    json.dump(figures, file, indent=1)
                    file.write("\n")
            if failed(figures):
                raise SystemExit(1)

        return run

    return made


def several(option: str, name: str, choices: Iterable[str]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """An option that may be repeated; without it all are chosen."""
    chosen = tuple(choices)
    return click.option(option, name, multiple=True, type=click.Choice(chosen), help="May be repeated.", default=chosen)


FILE = click.Path(path_type=Path, dir_okay=False, exists=True)
"""A file that is there."""


@command("fuzz", failed=lambda found: (
    found["failed"] or found["paces"]["faults"] or found["tracebacks"] or found["hangs"]))
@click.option("--networks", default=200, help="Random networks, golden against C.")
@click.option("--hardware", default=40, help="Of them, against Verilog in both simulators.")
@click.option("--shared", default=200,
              help="Others on shared arrays, planned against measured cycles; outcomes are kept in build/paces.jsonl.")
@click.option("--graphs", default=20,
              help="Others whose branches cross, with several inputs and outputs, under random stalls on each port.")
@click.option("--files", default=300, help="Damaged files.")
@click.option("--first", default=0, help="First seed.")
def _fuzz(**options: Any) -> Figures:
    """Random networks, golden against C and Verilog, their plans against measured cycles, and damaged files: exact or
    refused, and nothing else."""
    return fuzz.measure(**options, note=note)


@command("mutation", "--design digits-gru --count 300", lambda found: any(
    row["offered_and_proved"] for row in found["designs"].values()))
@several("--design", "names", mutation.DESIGNS)
@click.option("--count", default=300, help="Mutants of each design.")
@click.option("--seed", default=0, help="Of their choice.")
@click.option("--prove/--no-prove", default=True, help="Try proofs about survivors; kept ones count anyway.")
@click.option("--offered", default=0, help="Mutants that were caught, and must not be proved.")
def _mutation(names: tuple[str, ...], **options: Any) -> Figures:
    """Faults planted in generated Verilog, and how many of them the checker of `circulant simulate` finds."""
    return mutation.measure(names, **options, note=note)


@command("shapes", "--design lenet5")
@several("--design", "names", designs.DESIGNS)
def _shapes(names: tuple[str, ...]) -> Figures:
    """Shapes of the stream units in designs, each of which `make prove` proves (docs/measured/stream-shapes.json)."""
    return shapes.measure(names, note=note)


@command("soak", "--design digits-gru --words 10000", lambda found: found["mismatches"])
@several("--design", "names", soak.SOAKED)
@click.option("--words", default=1_000_000, help="Of all designs together.")
@click.option("--seed", default=1, help="Of samples, stalls and resets.")
@click.option("--seconds", default=float("inf"), help="After which no further round begins.")
def _soak(names: tuple[str, ...], **options: Any) -> Figures:
    """Designs under Verilator with random stalls and resets, each word against the golden model."""
    return soak.measure(names, **options, note=note)


@command("proofs")
def _proofs() -> Figures:
    """Proofs of stream units in each shape, and of memories that are written within their words; goes on where it
    stopped."""
    return proofs.measure(note)


@command("size")
def _size() -> Figures:
    """Lines of Python in each folder, and words of documentation."""
    return size.measure()


@command("users", "--user spotter", lambda found: found["failed"])
@several("--user", "names", users.USERS)
def _users(names: tuple[str, ...]) -> Figures:
    """Users in a fresh environment with the wheel alone, from an empty folder: minutes to each milestone."""
    return asdict(users.measure(names, note))


@command("estimate", "--no-routes")
@click.option("--no-routes", "routes", flag_value=False, default=True, help="Leave the clocks out, which take most of "
              "the time.")
@click.option("--kept", type=FILE, metavar="FILE",
              help="Take the clocks of these earlier figures for what is not routed again.")
def _estimate(**options: Any) -> Figures:
    """Estimates against what Yosys found (docs/measured/logic.json) and what nextpnr reaches."""
    return estimate.measure(**options, note=note)


@command("synthesis", "--no-levels")
@click.option("--levels/--no-levels", default=True,
              help="Map the logic too, and count the look-up tables on the longest path.")
@click.option("--point", "chosen", multiple=True, type=click.IntRange(1, len(synthesis.POINTS)),
              help="Only this one, by its number; may be given several times.")
@click.option("--fewer", is_flag=True, help="Two designs with fewer and fewer registers instead (hardware.levels).")
@click.option("--packed", is_flag=True, help="Three designs without and with two products in a DSP block instead.")
def _synthesis(levels: bool, chosen: tuple[int, ...], *, fewer: bool, packed: bool) -> Figures:
    """DSP blocks, block RAMs and levels of logic by Yosys, against the prediction."""
    points = [synthesis.POINTS[n - 1] for n in chosen] or synthesis.POINTS
    points = synthesis.FEWER if fewer else synthesis.PACKED if packed else points
    return synthesis.measure(points, levels=levels, note=note)


@command("logic", "--family ecp5")
@several("--family", "families", logic.FITTED)
@click.option("--only", multiple=True, metavar="KEY",
              help="Designs, such as 2 or 'images 0'; may be given several times.")
@click.option("--kept", type=FILE, metavar="FILE",
              help="Take the figures of other families, and of other designs, from this file.")
@click.option("--fit", "fits", is_flag=True, help="Fit the factors of hw/plan/families.py to the figures of --kept, "
              "and print them.")
def _logic(families: tuple[str, ...], only: tuple[str, ...], kept: Path | None, fits: bool) -> Figures | None:
    """Look-up tables and flip-flops by Yosys, against the estimate."""
    if not fits:
        return logic.measure(families, only=only, kept=kept, note=note)
    click.echo(json.dumps({family: logic.fit(family, kept or logic.LOGIC) for family in families}, indent=1))
    return None


@command("boards", "--design icebreaker-digits")
@several("--design", "names", boards.DESIGNS)
@click.option("--runs", type=click.Path(file_okay=False, exists=True), metavar="DIR",
              help="Folder of run folders with these names, whose designs and bitstreams are taken.")
def _boards(names: tuple[str, ...], runs: str | None) -> Figures:
    """The shipped designs for boards, all of which take hours: clock, cells, and how far their estimates are from it.
    """
    return boards.measure(names, runs=runs)


@command("asic")
@several("--design", "names", asic.NETWORKS)
@several("--library", "libraries", known())
@click.option("--runs", default="runs", type=click.Path(path_type=Path),
              help="Folder of run folders, whose networks are taken where they are there; else random weights.")
@click.option("--samples", default=2, help="Sequences for the activity; 0 computes no energy.")
@click.option("--kept", default="build/asic", type=click.Path(path_type=Path),
              help="Folder of netlists and of earlier measurements, from which a call goes on.")
@click.option("--levels", type=int, help="Of logic between two registers.  [default: 9 for sky130hd, else 6]")
def _asic(names: tuple[str, ...], libraries: tuple[str, ...], **options: Any) -> Figures:
    """Designs as standard cells of three libraries: area, clock, energy of an inference."""
    return asic.measure(names, libraries, **options, note=note)


@command("generation", "--design lstm-k8", lambda found: found["differences"])
@several("--design", "names", designs.DESIGNS)
@click.option("--against", type=FILE, metavar="FILE",
              help="The JSON of another checkout: exit 1 where a network, an image, a plan or cycles are others.")
def _generation(names: tuple[str, ...], against: Path | None) -> Figures:
    """Hashes that tell whether a design has changed."""
    found = designs.measure(names, note=note)
    changed = designs.differences(found, json.loads(against.read_text("utf-8"))) if against else []
    if changed:
        note("\n".join(["Designs that differ:", *changed]))
    return found | {"differences": changed}


@command("chips", "--work 2", lambda found: any(row["mismatches"] for row in found["rows"]))
@click.option("--work", "works", multiple=True, type=click.IntRange(1, len(chips.WORKS)),
              help="Only this one, by its number; may be given several times.")
@click.option("--simulate/--predict", default=True, help="Build and simulate, or plan only.")
@click.option("--bits", default=64, help="Of a word of a link.")
@click.option("--latency", default=20, help="Cycles of a link.")
def _chips(**options: Any) -> Figures:
    """Networks over several chips: what the search finds, predicted and under Verilator, and the papers' baselines;
    what has been played is kept in build/chips.jsonl, and a design of the same bytes is not played again."""
    return chips.measure(**options, kept=CHIPS, note=note)


@command("stacks", "--levels 6 --predict", lambda found: any(row.get("mismatches") for row in found["stacks"]))
@click.option("--shape", "shapes", multiple=True, type=click.IntRange(1, len(stacks.PAPERS)),
              help="Only this one, by its number; may be given several times.")
@click.option("--papers", is_flag=True, help="The layers of ESE, C-LSTM, E-RNN and what else has aims, held or missed.")
@click.option("--block", "blocks", multiple=True, type=int, help="Block size; else 8 and 16, or those with aims.")
@click.option("--multipliers", default=2760, help="Budget; that of the papers' XCKU060.")
@click.option("--levels", default=4, help="Of logic between two registers.")
@click.option("--objective", type=click.Choice(["throughput", "auto", "latency", "area"]), default="throughput",
              help="An array for each layer, one for all, or whichever is better.")
@click.option("--streams", default=1, help="Interleaved sequences.")
@click.option("--beats", "beat_blocks", default=1, help="Blocks a cycle; 0: the best.")
@click.option("--simulate/--predict", default=True, help="Build and simulate, or plan only.")
@click.option("--steps", default=stacks.STEPS, help="Of each sequence that is played.")
@click.option("--chart", is_flag=True, help="Only draw when each layer has the array that they share.")
def _stacks(chart: bool, **options: Any) -> Figures | None:
    """Stacks of LSTMs and GRUs with published cycles: period and latency, predicted and under Verilator."""
    known = stacks.PAPERS if options["papers"] else stacks.SHAPES
    if beyond := [number for number in options["shapes"] if number > len(known)]:
        raise click.BadParameter(f"It must be from 1 to {len(known)}, not {beyond[0]}.", param_hint="--shape")
    if not chart:
        return stacks.measure(**options, note=note)
    few = {name: options[name] for name in ("multipliers", "levels", "objective")}
    for number in options["shapes"] or range(1, len(known) + 1):
        for block in options["blocks"] or (8, 16):
            click.echo("\n".join(stacks.gantt(known[number - 1], block, **few)))
    return None


@command("cost")
def _cost() -> Figures:
    """Instructions of the generated C beside a dense loop's, and time of an image beside onnxruntime."""
    found = cost.measure(note)
    return {"benchmark": "cost", "table": cost.table(found), **asdict(found)}


@command("families", "--shape tcn-3x128 --block 8", lambda found: any(
    row.get("mismatches") for row in found["families"]))
@several("--shape", "names", families.FAMILIES)
@click.option("--block", "blocks", multiple=True, type=int, default=(8, 16), help="Block size.")
@click.option("--multipliers", default=2760, help="Budget.")
@click.option("--levels", default=6, help="Of logic between two registers.")
@click.option("--simulate/--predict", default=True, help="Build and play, or plan only.")
def _families(**options: Any) -> Figures:
    """Perceptrons, temporal convolutions and WaveNet with published cycles: period and latency under Verilator."""
    return families.measure(**options, note=note)


main.add_command(campaign.command)


@command("digits")
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Change a key of the experiment.")
def _digits(overrides: tuple[str, ...]) -> Figures:
    """The main job, from torch to Verilator."""
    return digits.measure(overrides)


@command("results", "--train --seeds 0 --only fsdd-gru")
@click.option("--train", "trains", is_flag=True, help="First train every row that is missing.")
@several("--only", "only", EXPERIMENTS)
@click.option("--seeds", default="0,1,2", help="Of --train.")
@click.option("--runs", default=FOLDER, type=click.Path(path_type=Path), help="Where the run folders are.")
@click.option("--kept", default=KEPT, type=click.Path(path_type=Path),
              help="Where the records of earlier trainings are kept.")
@click.option("--keep", "keeps", is_flag=True, help="Keep the records of the run folders there, too.")
@click.option("--write", "into", type=FILE, metavar="FILE",
              help="Replace the tables of this document, docs/results.md.")
def _results(trains: bool, only: tuple[str, ...], seeds: str, runs: Path, kept: Path, keeps: bool,
             into: Path | None) -> Figures:
    """Collect the shipped experiments' accuracies from their run folders beside their targets."""
    if trains:
        results.train(only, [int(seed) for seed in seeds.split(",")], runs, kept)
    if keeps:
        results.keep(runs, only, kept)
    found = results.collect(runs, only, kept)
    if into is not None:
        results.write(into, found)
    return {"benchmark": "results", "table": results.table(found), **found}


@command("alternatives", "--data images")
@several("--data", "names", alternatives.COMPARISONS)
@click.option("--picture", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Draw errors against both costs, for one --data.")
def _alternatives(names: tuple[str, ...], picture: Path | None) -> Figures:
    """Block-circulant matrices against dense, low-rank, pruned and Monarch ones, at equal cost: digits and images in
    noise. Figures are those of docs/measured/alternatives.csv."""
    if picture is not None and len(names) != 1:
        raise click.BadParameter("It is of one comparison; give one --data.", param_hint="--picture")
    found = {name: alternatives.collect(name) for name in names}
    if picture is not None:
        atomic_bytes(picture, alternatives.draw(names[0], found[names[0]]))
    lines = {line: said for name, rows in found.items() for line, said in alternatives.table(name, rows).items()}
    return {"benchmark": "alternatives", "table": lines, "rows": found}
