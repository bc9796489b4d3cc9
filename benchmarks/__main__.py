"""The command line of the benchmarks: measure, then show as a table for people and, if wanted, as JSON."""
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from benchmarks import (
    activations,
    asic,
    boards,
    cells,
    cnn,
    cnntable,
    designs,
    digits,
    estimate,
    explore,
    fuzz,
    golden,
    learned,
    logic,
    mutation,
    networks,
    peers,
    place,
    quantization,
    results,
    rnn,
    soak,
    stacks,
    synthesis,
    training,
    verification,
)
from benchmarks.alternatives import measure as alternatives
from benchmarks.alternatives import ways
from benchmarks.alternatives.rows import ROWS
from benchmarks.experiments import EXPERIMENTS, FOLDER
from benchmarks.formal import shapes
from benchmarks.records import KEPT
from circulant.boards.asic.cells.catalogue import known
from circulant.boards.placement import DEVICES
from circulant.sim.artifact import atomic_bytes
from circulant.sim.refusal import Refusal

_json = click.option(
    "--json", "path", type=click.Path(dir_okay=False, allow_dash=True), metavar="FILE",
    help="Write the figures as JSON; - is standard output, and the table then goes to standard error.")


@click.group(epilog="Example: python -m benchmarks digits --json -")
def main() -> None:
    """Measure the figures of the README and of docs/results.md."""


def _show(figures: dict[str, Any], path: str | None) -> None:
    table = Table("figure", "value", title=figures["benchmark"], title_justify="left")
    for figure, value in figures["table"].items():
        table.add_row(figure, value)
    Console(stderr=path == "-").print(table)
    if path is not None:
        with click.open_file(path, "w", encoding="utf-8") as file:
            json.dump(figures, file, indent=1)
            file.write("\n")


def _add(name: str, measure: Callable[[tuple[str, ...]], dict[str, Any]], summary: str) -> None:
    @main.command(name, help=summary, epilog=f"Example: python -m benchmarks {name} --json -")
    @click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Change a key of the experiment.")
    @_json
    def run(path: str | None, overrides: tuple[str, ...]) -> None:
        try:
            figures = measure(overrides)
        except Refusal as refusal:
            raise click.ClickException(str(refusal)) from None
        _show(figures, path)


_add("digits", digits.measure, "The main job, from torch to Verilator.")
_add("cells", cells.measure, "Recurrent cells of our own against torch's.")
_add("training", training.measure, "An epoch of ADMM, and a block-circulant Linear, against the dense ones.")
_add("activations", activations.measure, "Sigmoid and tanh in integers; draws docs/images/activations.png.")
_add("golden", golden.measure, "Sequences per second of the golden model, and of its C.")


@main.command("explore", epilog="Example: python -m benchmarks explore --json -")
@_json
def _explore(path: str | None) -> None:
    """The exploration: points a second of the cost model, errors, overhead of a point, trainings, what was found."""
    figures = explore.measure()
    table = Table("figure", "value", title="Exploration", title_justify="left")
    for name, value in figures.items():
        for word, each in value.items() if isinstance(value, dict) else [("", value)]:
            table.add_row(f"{name} {word}".strip(), f"{each:,.6g}")
    Console(stderr=path == "-").print(table)
    if path is not None:
        with click.open_file(path, "w", encoding="utf-8") as file:
            json.dump(figures, file, indent=1)
            file.write("\n")


@main.command("learned", epilog="Example: python -m benchmarks learned --seeds 1 --json -")
@click.option("--seeds", default=2, show_default=True, help="Trainings of each kind.")
@click.option("--task", "tasks", multiple=True, type=click.Choice(list(learned.TASKS)), help="May be repeated.")
@click.option("--picture", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Draw it, too.")
@_json
def _learned(path: str | None, seeds: int, tasks: tuple[str, ...], picture: Path | None) -> None:
    """Block sizes that are learned, against uniform ones and those of phase I, at equal weight bits."""
    figures = learned.measure(range(seeds), tasks or tuple(learned.TASKS))
    if picture is not None:
        learned.picture(figures, picture)
    _show(figures, path)


@main.command("fuzz", epilog="Example: python -m benchmarks fuzz --json -")
@click.option("--networks", default=200, show_default=True, help="Random networks, golden against C.")
@click.option("--hardware", default=40, show_default=True, help="Of them, against Verilog in both simulators.")
@click.option("--files", default=300, show_default=True, help="Damaged files.")
@click.option("--first", default=0, show_default=True, help="First seed.")
@_json
def _fuzz(path: str | None, **options: Any) -> None:
    """Random networks, golden against C and Verilog, and damaged files: exact or refused, and nothing else."""
    figures = fuzz.measure(**options, note=lambda text: click.echo(text, err=True))
    _show(figures, path)
    if figures["failed"] or figures["tracebacks"] or figures["hangs"]:
        raise SystemExit(1)


@main.command("generation", epilog="Example: python -m benchmarks generation --design lstm-k8 --json -")
@click.option("--design", "names", multiple=True, type=click.Choice([*designs.DESIGNS, "all"]),
              help=f"May be repeated.  [default: {', '.join(designs.TIMED)}]")
@click.option("--repeats", default=3, show_default=True, help="The median of so many is the time.")
@click.option("--plain", is_flag=True, help="With Amaranth's own functions alone, to see what ours save.")
@click.option("--against", type=click.Path(path_type=Path, dir_okay=False, exists=True), metavar="FILE",
              help="The JSON of another checkout: exit 1 where a network, an image, a plan or cycles are others.")
@_json
def _generation(path: str | None, names: tuple[str, ...], against: Path | None, **options: Any) -> None:
    """Seconds to generate some designs, and hashes that tell whether a design has changed."""
    chosen = tuple(designs.DESIGNS) if "all" in names else names or designs.TIMED
    figures = designs.measure(chosen, **options, note=lambda text: click.echo(text, err=True))
    _show(figures, path)
    if against is not None and (changed := designs.differences(figures, json.loads(against.read_text("utf-8")))):
        click.echo("\n".join(["Designs that differ:", *changed]), err=True)
        raise SystemExit(1)


@main.command("estimate", epilog="Example: python -m benchmarks estimate --json docs/measured/estimate.json")
@click.option("--no-routes", "routes", flag_value=False, default=True, help="Leave the clocks out, which take most of "
              "the time.")
@click.option("--kept", type=click.Path(path_type=Path, dir_okay=False, exists=True), metavar="FILE",
              help="Take the clocks of these earlier figures for what is not routed anew.")
@click.option("--fit", "fits", is_flag=True, help="Fit the factors of hw/foreseen.py to other designs, and print them.")
@_json
def _estimate(path: str | None, routes: bool, kept: Path | None, fits: bool) -> None:
    """Estimates against what Yosys found (docs/measured/logic.json) and what nextpnr reaches."""
    def note(text: str) -> None:
        click.echo(text, err=True)

    if fits:
        click.echo(json.dumps(estimate.fit(note), indent=1))
        return
    _show(estimate.measure(routes=routes, kept=kept, note=note), path)


@main.command("cnn", epilog="Example: python -m benchmarks cnn --model lenet5 --json -")
@click.option("--model", type=click.Choice(list(cnn.MODELS)), default="lenet5", show_default=True)
@click.option("--run", default=None, type=click.Path(exists=True, file_okay=False),
              help="A run folder, trained and quantized, in place of a short training.")
@click.option("--multipliers", default=342, show_default=True, help="Budget; the DSP blocks of CirCNN's Cyclone V.")
@click.option("--images", default=200, show_default=True, help="Of the test split, through the Verilog.")
@click.option("--epochs", default=2, show_default=True, help="Of training.")
@click.option("--subset", default=0, show_default=True, help="Training samples of these epochs; 0 for all.")
@click.option("--tested", default=0, show_default=True, help="Test samples of the accuracy; 0 for all.")
@click.option("--calibration", default=512, show_default=True, help="Images that the formats are fitted to.")
@click.option("--weights", default=None, type=click.Path(exists=True, dir_okay=False), help="Instead of training.")
@click.option("--seed", default=0, show_default=True)
@_json
def _cnn(path: str | None, **options: Any) -> None:
    """A network over images: accuracy, cycles of an image under Verilator, utilisation."""
    try:
        figures = cnn.measure(**options)
    except Refusal as refusal:
        raise click.ClickException(str(refusal)) from None
    _show(figures, path)


@main.command("cnn-table", epilog="Example: python -m benchmarks cnn-table docs/measured/cnn-*.json "
                                  "--write docs/results.md")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, dir_okay=False, exists=True))
@click.option("--write", "into", type=click.Path(path_type=Path, dir_okay=False, exists=True), metavar="FILE",
              help="Replace the table of this document, docs/results.md; else it is shown.")
def _cnn_table(files: tuple[Path, ...], into: Path | None) -> None:
    """The table of networks over images beside CirCNN's, from the JSON of `cnn`."""
    found = cnntable.load(files)
    if into is not None:
        cnntable.write(into, found)
    else:
        click.echo(cnntable.document(found))


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
@_json
def _quantization(path: str | None, networks: tuple[str, ...], tuned: tuple[int, ...], **options: Any) -> None:
    """Widths picked within a budget against uniform 12 bits, and weights trained on 8, 6 and 4 bits."""
    widths = [bits for bits in tuned or quantization.TUNED if bits]
    try:
        figures = quantization.measure(networks or quantization.NETWORKS, tuned=widths, **options)
    except Refusal as refusal:
        raise click.ClickException(str(refusal)) from None
    _show(figures, path)


_SHAPE = [
    click.option("--cell", type=click.Choice(["lstm", "gru"]), default="lstm", show_default=True,
                 help="An LSTM with peepholes, or torch's GRU."),
    click.option("--inputs", default=153, show_default=True),
    click.option("--hidden", default=1024, show_default=True),
    click.option("--projection", default=None, type=int, help="Of an LSTM; 0 for none.  [default: 512]"),
    click.option("--block", default=16, show_default=True, help="Block size."),
    click.option("--multipliers", default=2760, show_default=True, help="Budget; that of the papers' XCKU060."),
    click.option("--weight-bits", default=12, show_default=True),
    click.option("--activation-bits", default=16, show_default=True),
    click.option("--seed", default=0, show_default=True),
    _json,
]


def _recurrent(function: Callable[..., None]) -> Callable[..., None]:
    """The options of a recurrent layer."""
    for option in reversed(_SHAPE):
        function = option(function)
    return function


def _options(options: dict[str, Any]) -> dict[str, Any]:
    if options["projection"] is None:
        options["projection"] = 512 if options["cell"] == "lstm" else 0
    return options


@main.command("rnn", epilog="Example: python -m benchmarks rnn --cell lstm --block 8 --json -")
@click.option("--steps", default=24, show_default=True, help="Of a sequence.")
@click.option("--streams", default=3, show_default=True, help="Interleaved sequences of the second design.")
@_recurrent
def _rnn(path: str | None, **options: Any) -> None:
    """A recurrent layer at the papers' scale: cycles per step under Verilator, single stream and interleaved."""
    _show(rnn.measure(**_options(options)), path)


@main.command("stacks", epilog="Example: python -m benchmarks stacks --levels 6 --predict --json -")
@click.option("--shape", "shapes", multiple=True, type=click.IntRange(1, len(stacks.SHAPES)),
              help="Only this one, by its number; may be given several times.")
@click.option("--block", "blocks", multiple=True, type=int, default=(8, 16), show_default=True, help="Block size.")
@click.option("--multipliers", default=2760, show_default=True, help="Budget; that of the papers' XCKU060.")
@click.option("--levels", default=4, show_default=True, help="Of logic between two registers.")
@click.option("--objective", type=click.Choice(["throughput", "auto", "latency", "area"]), default="throughput",
              show_default=True, help="An array for each layer, one for all, or whichever is better.")
@click.option("--simulate/--predict", default=True, show_default=True, help="Build and simulate, or plan only.")
@click.option("--chart", is_flag=True, help="Only draw when each layer has the array that they share.")
@_json
def _stacks(path: str | None, chart: bool, **options: Any) -> None:
    """Stacks of LSTMs and GRUs with published cycles: period and latency, predicted and under Verilator."""
    if chart:
        few = {name: options[name] for name in ("multipliers", "levels", "objective")}
        for number in options["shapes"] or range(1, len(stacks.SHAPES) + 1):
            for block in options["blocks"]:
                click.echo("\n".join(stacks.gantt(stacks.SHAPES[number - 1], block, **few)))
        return
    figures = stacks.measure(**options, note=lambda text: click.echo(text, err=True))
    _show(figures, path)
    if any(each.get("mismatches") for each in figures["stacks"]):
        raise SystemExit(1)


@main.command("schedule", epilog="Example: python -m benchmarks schedule --picture docs/images/schedule-lstm-1024.png")
@click.option("--streams", default=1, show_default=True, help="Interleaved sequences.")
@click.option("--picture", type=click.Path(dir_okay=False), metavar="FILE", help="Draw the Gantt chart into this PNG.")
@_recurrent
def _schedule(path: str | None, picture: str | None, **options: Any) -> None:
    """When each unit of such a layer works on a step, as it is planned; nothing is generated."""
    figures, drawn = rnn.schedule(**_options(options))
    _show(figures, path)
    if picture is not None:
        atomic_bytes(picture, drawn)


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
@_json
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
    _show({"benchmark": "results", "table": results.table(found), **found}, path)


@main.command("alternatives", epilog="Example: python -m benchmarks alternatives --train --seeds 0 --json -")
@click.option("--train", "trains", is_flag=True, help="First train every row that is missing in the file of figures.")
@click.option("--only", multiple=True, type=click.Choice([row.label for row in ROWS]), metavar="ROW",
              help="A row, such as 'circulant k = 8 of 64'; may be repeated.")
@click.option("--seeds", default="0,1,2", show_default=True, help="Of --train.")
@click.option("--kept", default=alternatives.KEPT, type=click.Path(path_type=Path), show_default=True,
              help="The file of figures, to which --train adds.")
@_json
def _alternatives(path: str | None, trains: bool, only: tuple[str, ...], seeds: str, kept: Path) -> None:
    """Block-circulant matrices against dense, low-rank, pruned and Monarch ones, at equal cost, on digits in noise."""
    if trains:
        try:
            alternatives.train(kept, only, [int(seed) for seed in seeds.split(",")],
                               lambda line: click.echo(line, err=True))
        except Refusal as refusal:
            raise click.ClickException(str(refusal)) from None
    rows = alternatives.collect(kept)
    _show({"benchmark": "alternatives", "table": alternatives.table(rows), "rows": rows}, path)


@main.command("ways", epilog="Example: python -m benchmarks ways --train --seeds 0 --json -")
@click.option("--train", "trains", is_flag=True, help="First train every way that is missing in the file of figures.")
@click.option("--seeds", default="0,1,2", show_default=True, help="Of --train.")
@click.option("--kept", default=ways.KEPT, type=click.Path(path_type=Path), show_default=True,
              help="The file of figures, to which --train adds.")
@_json
def _ways(path: str | None, trains: bool, seeds: str, kept: Path) -> None:
    """Random start, dense start, stages and ADMM on the way to block-circulant weights, on digits in noise."""
    if trains:
        try:
            ways.train(kept, [int(seed) for seed in seeds.split(",")], lambda line: click.echo(line, err=True))
        except Refusal as refusal:
            raise click.ClickException(str(refusal)) from None
    rows = ways.collect(kept)
    _show({"benchmark": "ways", "table": ways.table(rows), "rows": rows}, path)


@main.command("synthesis", epilog="Example: python -m benchmarks synthesis --no-levels --json -")
@click.option("--levels/--no-levels", default=True, show_default=True,
              help="Map the logic too, and count the look-up tables on the longest path.")
@click.option("--point", "chosen", multiple=True, type=click.IntRange(1, len(synthesis.POINTS)),
              help="Only this one, by its number; may be given several times.")
@click.option("--fewer", is_flag=True, help="Two designs with fewer and fewer registers instead (hardware.levels).")
@_json
def _synthesis(path: str | None, levels: bool, chosen: tuple[int, ...], fewer: bool) -> None:
    """DSP blocks, block RAMs and levels of logic by Yosys, against the prediction."""
    points = synthesis.FEWER if fewer else [synthesis.POINTS[n - 1] for n in chosen] or synthesis.POINTS
    try:
        figures = synthesis.measure(points, levels=levels, note=lambda text: click.echo(text, err=True))
    except Refusal as refusal:
        raise click.ClickException(str(refusal)) from None
    _show(figures, path)


@main.command("logic", epilog="Example: python -m benchmarks logic --family ecp5 --json -")
@click.option("--family", "families", multiple=True, type=click.Choice(["ecp5", "xcu"]), default=("ecp5", "xcu"),
              show_default=True, help="May be given several times.")
@_json
def _logic(path: str | None, families: tuple[str, ...]) -> None:
    """Look-up tables and flip-flops by Yosys, against the estimate."""
    try:
        figures = logic.measure(families, note=lambda text: click.echo(text, err=True))
    except Refusal as refusal:
        raise click.ClickException(str(refusal)) from None
    _show(figures, path)


@main.command("asic", epilog="Example: python -m benchmarks asic --json -")
@click.option("--design", "names", multiple=True, type=click.Choice(asic.NETWORKS), default=asic.NETWORKS,
              show_default=True, help="May be repeated.")
@click.option("--library", "libraries", multiple=True, type=click.Choice(list(known())), default=list(known()),
              show_default=True, help="May be repeated.")
@click.option("--runs", default="runs", show_default=True, type=click.Path(path_type=Path),
              help="Folder of run folders, whose networks are taken where they are there; else random weights.")
@click.option("--samples", default=2, show_default=True, help="Sequences for the activity; 0 computes no energy.")
@click.option("--kept", default="build/asic", show_default=True, type=click.Path(path_type=Path),
              help="Folder of netlists and of what was measured before, from which a call goes on.")
@click.option("--levels", type=int, help="Of logic between two registers.  [default: 9 for sky130hd, else 6]")
@click.option("--clock-gating/--no-clock-gating", "gated", default=True, show_default=True,
              help="Generate with hardware.clock_gating.")
@click.option("--timing/--no-timing", "timed", default=True, show_default=True, help="Analyse the timing by OpenSTA.")
@_json
def _asic(path: str | None, names: tuple[str, ...], libraries: tuple[str, ...], **options: Any) -> None:
    """Designs as standard cells of three libraries: area, clock, energy of an inference."""
    try:
        figures = asic.measure(names, libraries, **options, note=lambda text: click.echo(text, err=True))
    except Refusal as refusal:
        raise click.ClickException(str(refusal)) from None
    _show(figures, path)


@main.command("mutation", epilog="Example: python -m benchmarks mutation --design digits-gru --count 300 --json -")
@click.option("--design", "names", multiple=True, type=click.Choice(mutation.DESIGNS), default=mutation.DESIGNS,
              show_default=True, help="May be repeated.")
@click.option("--count", default=300, show_default=True, help="Mutants of each design.")
@click.option("--seed", default=0, show_default=True, help="Of their choice.")
@click.option("--prove/--no-prove", default=True, show_default=True, help="Ask Yosys about survivors.")
@_json
def _mutation(path: str | None, names: tuple[str, ...], **options: Any) -> None:
    """Faults planted in generated Verilog, and how many of them the checker of `circulant simulate` finds."""
    _show(mutation.measure(names, **options, note=lambda text: click.echo(text, err=True)), path)


@main.command("shapes", epilog="Example: python -m benchmarks shapes --json docs/measured/stream-shapes.json")
@click.option("--design", "names", multiple=True, type=click.Choice(list(designs.DESIGNS)),
              default=tuple(designs.DESIGNS), show_default=True, help="May be repeated.")
@_json
def _shapes(path: str | None, names: tuple[str, ...]) -> None:
    """Shapes of the stream units in designs, each of which `make prove` proves."""
    _show(shapes.measure(names, note=lambda text: click.echo(text, err=True)), path)


@main.command("soak", epilog="Example: python -m benchmarks soak --design digits-gru --words 10000 --json -")
@click.option("--design", "names", multiple=True, type=click.Choice(list(soak.SOAKED)), default=tuple(soak.SOAKED),
              show_default=True, help="May be repeated.")
@click.option("--words", default=1_000_000, show_default=True, help="Of all designs together.")
@click.option("--seed", default=1, show_default=True, help="Of samples, stalls and resets.")
@click.option("--seconds", default=float("inf"), help="After which no further round begins.  [default: no limit]")
@_json
def _soak(path: str | None, names: tuple[str, ...], **options: Any) -> None:
    """Designs under Verilator with random stalls and resets, each word against the golden model."""
    figures = soak.measure(names, **options, note=lambda text: click.echo(text, err=True))
    _show(figures, path)
    if figures["mismatches"]:
        raise SystemExit(1)


@main.command("verification", epilog="Example: python -m benchmarks verification --json -")
@click.option("--networks", "drawn", default=60, show_default=True, help="Random networks.")
@click.option("--hardware", default=6, show_default=True, help="Of them, as Verilog in both simulators.")
@click.option("--files", default=200, show_default=True, help="Damaged files.")
@click.option("--mutants", default=300, show_default=True, help="Of each design; 0 for none.")
@click.option("--design", "designs", multiple=True, type=click.Choice(mutation.DESIGNS), default=mutation.DESIGNS,
              show_default=True, help="With mutants; may be repeated.")
@click.option("--simulated", default=5, show_default=True, help="Random networks whose words are counted.")
@click.option("--words", "soaked", default=1_000_000, show_default=True, help="Of designs under stalls and resets.")
@_json
def _verification(path: str | None, **options: Any) -> None:
    """Random networks, damaged files, mutants, words compared and proofs, in one record."""
    figures = verification.measure(**options, note=lambda text: click.echo(text, err=True))
    _show(figures, path)
    if figures["fuzz"]["failed"] or figures["hostile"]["tracebacks"] or figures["mismatches"]:
        raise SystemExit(1)


@main.command("networks", epilog="Example: python -m benchmarks networks --count 3 --json -")
@click.option("--count", default=30, show_default=True, help="Networks.")
@click.option("--first", default=0, show_default=True, help="Seed of the first one.")
@_json
def _networks(path: str | None, count: int, first: int) -> None:
    """Random networks as Verilog, bit by bit against their golden models."""
    _show(networks.measure(count=count, first=first, note=lambda text: click.echo(text, err=True)), path)


@main.command("peers", epilog="Example: python -m benchmarks peers --model perceptron --json -")
@click.option("--generator", "names", multiple=True, type=click.Choice([*peers.OURS, *peers.PEERS]),
              help="May be given several times.  [default: all]")
@click.option("--model", "models", multiple=True, type=click.Choice(list(peers.MODELS)),
              help="May be given several times.  [default: all]")
@click.option("--write", "into", type=click.Path(path_type=Path, dir_okay=False, exists=True), metavar="FILE",
              help="Replace the tables of this document, docs/peers.md.")
@_json
def _peers(path: str | None, names: tuple[str, ...], models: tuple[str, ...], into: Path | None) -> None:
    """Other generators on the same small models, each in an environment of its own."""
    figures = peers.measure(names, models, note=lambda text: click.echo(text, err=True))
    if into is not None:
        peers.write(into, figures)
    _show(figures, path)


@main.command("boards", epilog="Example: python -m benchmarks boards --design icebreaker-digits --json -")
@click.option("--design", "names", type=click.Choice(list(boards.DESIGNS)), multiple=True,
              help="One of them, in place of all, which take hours; may be repeated.")
@click.option("--runs", type=click.Path(file_okay=False, exists=True), metavar="DIR", default="",
              help="Folder of run folders with these names, whose designs and bitstreams are taken.")
@_json
def _boards(path: str | None, names: tuple[str, ...], runs: str) -> None:
    """The shipped designs for boards: clock, cells, and how far their estimates are from it."""
    _show(boards.measure(names, runs=runs), path)


@main.command("place", epilog="Example: python -m benchmarks place --json -")
@click.option("--device", type=click.Choice(list(DEVICES)), default="LFE5U-85F", show_default=True)
@click.option("--mhz", default=110.0, show_default=True, help="Clock that nextpnr is asked for.")
@click.option("--seed", default=1, show_default=True, help="Of nextpnr.")
@_json
def _place(path: str | None, **options: Any) -> None:
    """The engine with 14 lanes placed and routed on an ECP5: the clock that it reaches."""
    try:
        figures = place.measure(**options)
    except Refusal as refusal:
        raise click.ClickException(str(refusal)) from None
    _show(figures, path)


if __name__ == "__main__":
    try:
        main()
    except Refusal as refusal:
        sys.exit(f"Error: {refusal}")
