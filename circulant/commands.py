"""The commands of a run: the whole of it, each of its steps, and what they say when they are done."""
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from circulant.arguments import say, step
from circulant.exits import WRONG
from circulant.inspection import inspected_file, is_model
from circulant.progress import Bars, leads
from circulant.run.run_folder import Run, StepRecord, scores
from circulant.sim.chips import FOLDER, partition_of
from circulant.sim.metrics import shown, words
from circulant.sim.refusal import Refusal

__all__ = ["COMMANDS"]

@step("Train, quantize, generate, simulate and report", "Train, quantize, generate, simulate and report.",
      "circulant run digits-gru --set training.seed=1 --out runs/seed-1",
      "circulant run digits-gru --device LFE5U-85F --out runs/ecp5", trains=True, sized=True)
def run(this: Run, bars: Bars, resume: bool, as_json: bool) -> int:
    from circulant.report import report as reports
    from circulant.run import steps

    # An unfinished training of this very experiment is gone on with unasked, as its outcome is the same.
    steps.train(this, bars, resume=resume or None, exports=True)
    if not leads():
        return 0
    steps.quantize(this, bars, executes=True)
    steps.generate(this, bars)
    simulated = steps.simulate(this, bars, trace=False)
    figures = reports.write(this, bars)
    bars.close()
    _show(this, figures, as_json)
    return _verdict(simulated)


def _of_file(source: str | None, shape: tuple[str, ...], output: str | None, *, as_json: bool) -> int | None:
    if source is None or not is_model(source):
        if shape or output is not None:
            raise Refusal("--shape and --output must come with an ONNX file or a FILE.py:NAME, as an experiment's data "
                          "says its shape; leave them out")
        return None
    return _say_parts(inspected_file(source, shape, output), as_json)


@click.option("--shape", multiple=True, metavar="N,…", help="Shape of a sample, without the batch, of a model without "
              "an experiment; of several inputs each.")
@click.option("--output", metavar="NAME", help="Output to keep, of an ONNX file with several.")
@step("Show how each part of the network is converted",
      "Show how each part of the experiment's network is converted, with its block size and the weights that padding "
      "wastes. In place of EXPERIMENT may stand an ONNX file, or a class in a Python file.",
      "circulant inspect mnist-lenet5 --set compression.block_size={fc1=64}",
      "circulant inspect net.onnx", "circulant inspect net.py:Net --shape 1,16,65", otherwise=_of_file)
def inspect(this: Run, bars: Bars, as_json: bool, **own: Any) -> int:
    from circulant.run import steps

    parts = steps.inspect(this, bars)
    bars.close()
    return _say_parts(parts, as_json)


def _say_parts(parts: Any, as_json: bool) -> int:
    say(parts.as_json(), as_json, str(parts))
    parts.require()
    if not parts.exportable:
        click.echo("It can be trained, but not be quantized: the golden model has no layer for what is only captured.",
                   err=True)
    return 0


@click.option("--find-rate", is_flag=True, help="Only search for a learning rate, by short trainings "
              "evaluated on held-out training samples.")
@step("Train the dense baseline, then the block-circulant network",
      "Train the dense baseline, then the block-circulant network by ADMM, projection and retraining, or directly.",
      "circulant train digits-gru --set compression.block_size=4 --out runs/k4",
      "circulant train digits-gru --find-rate --out runs/rates", trains=True)
def train(this: Run, bars: Bars, resume: bool, find_rate: bool, as_json: bool) -> int:
    from circulant.run import steps

    if find_rate:
        return _find_rate(this, bars, resume, as_json)
    ended = resume and steps.finished(this) is not None
    done = steps.train(this, bars, resume=resume)
    if not leads():
        return 0
    bars.close()
    if ended:
        click.echo(f"The training of {this.folder} is finished; there is nothing to resume", err=True)
    found, metric = scores(done), done["metric"]
    dense = f"{shown(metric, found['dense'])} dense" if "dense" in found else "no dense baseline"
    say({"file": this.path("model.pt"), **_without(done, "history")}, as_json,
        f"{this.path('model.pt')}: {words(metric)} {shown(metric, found['circulant'])} block-circulant, {dense}")
    return 0


def _find_rate(this: Run, bars: Bars, resume: bool, as_json: bool) -> int:
    from circulant import rates

    if resume:
        raise Refusal("--find-rate and --resume must not both be given, as a search of rates has no checkpoint; leave "
                      "one out")
    found = rates.find_rate(this, bars)
    if not leads():
        return 0
    bars.close()
    metric = found["metric"]
    lines = [f"{each['rate']:g}: " + (
        f"loss {each['loss']:.4f}, {words(metric)} {shown(metric, each[metric])}" if each["loss"] is not None else
        "the loss is not finite") for each in found["tried"]]
    chosen = rates.closing(found["tried"], found["held_out"], found["epochs"],
                           warm=bool(found["experiment"]["training"]["warmup_epochs"]))
    say(found, as_json, *lines, f"{this.path('rates.png')}: {chosen}")
    return 0


@click.option("--like", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
              help="Use the formats of the network in this run folder, so that its circuit can load these weights.")
@step("Make the golden model in integers, and its test vectors",
      "Quantize the trained network into the golden model, and compute test vectors of the whole test set.",
      "circulant quantize runs/digits-gru --set quantization.weight_bits=10",
      "circulant quantize runs/digits-gru --set quantization.budget=0.1")
def quantize(this: Run, bars: Bars, like: Path | None, as_json: bool) -> int:
    from circulant.run import steps

    done = steps.quantize(this, bars, like=like)
    bars.close()
    _widths(done, as_json)
    metric = done["metric"]
    say({"file": this.path("network.json"), **_without(done)}, as_json,
        f"{this.path('network.json')}: {words(metric)} {shown(metric, scores(done)['quantized'])} quantized")
    return 0


@click.option("--target", type=click.Choice(["verilog", "c"]), default="verilog", show_default=True,
              help="Write Verilog into the folder hardware, or C99 for processors into the folder c.")
@step("Generate Verilog and memory images, or C", "Generate Verilog and memory images, or C, from the golden model.",
      "circulant generate runs/digits-gru --multipliers 32",
      "circulant generate runs/digits-gru --device XC7Z020",
      "circulant generate runs/digits-gru --target c", sized=True)
def generate(this: Run, bars: Bars, target: str, as_json: bool) -> int:
    from circulant.run import steps

    if target == "c":
        made = steps.generate_c(this, bars)["c"]
        bars.close()
        say({"folder": this.path("c"), **made}, as_json,
            f"{this.path('c')}: {made['table_bytes']:,} bytes of tables; `make -C {this.path('c')} test` runs its "
            "self-test")
        return 0
    from circulant.boards.device import fit_of
    from circulant.report.gantt import closing, engines
    from circulant.run.divided import closing as over

    generated = steps.generate(this, bars)
    hardware, network = generated["hardware"], generated["hashes"]["network"]
    bars.close()
    if this.experiment.hardware.chips:
        made = partition_of(this.path(FOLDER), network)
        say({"folder": this.path(FOLDER), **made}, as_json, *over(made), str(this.path(FOLDER)))
        return 0
    fit = fit_of(this.experiment.board.device, hardware["resources"])
    blocks = f"{hardware['dsp_blocks']:,} DSP blocks, " if "dsp_blocks" in hardware else ""
    say({"folder": this.path("hardware"), **hardware, **({} if fit is None else {"device": fit.as_json()})}, as_json,
        f"{this.path('hardware')}: {hardware['multipliers']:,} multipliers, {blocks}{hardware['memory_bits']:,} memory "
        "bits",
        closing(hardware), *engines(hardware), *([] if fit is None else [str(fit)]))
    for doubt in [] if fit is None else fit.doubts:
        click.echo(f"Warning: {doubt}", err=True)
    return 0


@click.option("--trace", is_flag=True, help="On a mismatch, simulate again, name the first value inside the circuit "
              "that differs, and write all signals to divergence.fst.")
@step("Compare every output bit of the Verilog with the golden model",
      "Simulate the Verilog under Verilator and compare every output bit with the golden model.",
      "circulant simulate runs/digits-gru",
      "circulant simulate runs/digits-gru --set simulation.samples=20")
def simulate(this: Run, bars: Bars, trace: bool, as_json: bool) -> int:
    from circulant.run import steps

    simulated = steps.simulate(this, bars, trace=trace)
    bars.close()
    check = simulated["verification"]
    say({"file": this.path("verification.json"), **check}, as_json,
        f"{this.path('verification.json')}: {check['sequences']:,} sequences, {check['words']:,} words, "
        f"{check['mismatches']:,} mismatches")
    return _verdict(simulated)


@click.option("--network", type=click.Path(path_type=Path, file_okay=False), metavar="DIR", required=True,
              help="Run folder of the other network; quantize it with --like this run.")
@step("Write the words that load another network",
      "Write the words that load another network into a reloadable design, and check them under Verilator.",
      "circulant reload runs/digits-gru --network runs/seed-1")
def reload(this: Run, bars: Bars, network: Path, as_json: bool) -> int:
    from circulant.run.reload import reload as words_of

    check = words_of(this, network, bars)["exchange"]
    bars.close()
    say({"file": this.path("reload.bin"), **check}, as_json,
        f"{this.path('reload.bin')}: {check['words_written']:,} words; with one network and the other "
        f"{check['words_compared']:,} words of output and {check['values_compared']:,} of states compared, "
        f"{check['mismatches'] + check['wrong_values']:,} mismatches")
    return WRONG if check["mismatches"] or check["wrong_values"] else 0


@click.option("--mhz", type=float, metavar="MHZ",
              help="Clock for which the report states throughput and latency.  [default: that of the "
              "experiment, or of its device's family, or 100]")
@step("Collect every figure of the run, with pictures",
      "Collect every figure of the run into report.json, report.html and pictures.", "circulant report runs/digits-gru",
      "circulant report runs/digits-gru --mhz 200")
def report(this: Run, bars: Bars, mhz: float | None, as_json: bool) -> int:
    from circulant.report import report as reports

    figures = reports.write(this, bars, mhz)
    bars.close()
    _show(this, figures, as_json)
    return 0


COMMANDS = (run, inspect, train, quantize, generate, simulate, reload, report)
"""In the order in which they are used."""


def _without(record: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """A record but for these members and those that tie it to the run folder."""
    return {name: value for name, value in record.items() if name not in ("format", "version", "hash", "after", *names)}


def _widths(done: StepRecord, as_json: bool) -> None:
    """The bit widths picked, every tensor against its format, and tensors that the calibration never exercised."""
    from circulant.run.quantization import picked_table, ranges_table

    console = Console(soft_wrap=not sys.stdout.isatty())
    if done["picking"] and not as_json:
        console.print(picked_table(done["picking"]), ranges_table(done["ranges"]))
    if done["never"]:
        click.echo(f"The calibration never exercises {', '.join(done['never'])}: always zero, so that their formats "
                   "say nothing.", err=True)


def _show(this: Run, figures: Mapping[str, Any], as_json: bool) -> None:
    from circulant.report.summary import summary

    if not as_json:
        Console(soft_wrap=not sys.stdout.isatty()).print(summary(figures))
    say({"file": this.path("report.html"), **figures}, as_json, str(this.path("report.html")))


def _verdict(simulated: StepRecord) -> int:
    """The exit code of a verification; a mismatch is said on stderr."""
    check = simulated["verification"]
    if not check["mismatches"]:
        return 0
    first = check["first"]
    click.echo(f"{check['mismatches']} of {check['words_compared']} words differ from the golden model; the first: "
               f"sequence {first['sequence']}, step {first['step']}, word {first['word']}: "
               f"expected {first['expected']}, got {first['got']}", err=True)
    if "divergence" in check:
        found = check["divergence"]
        click.echo(found["text"] if found else "No value that is tapped differs: the fault is behind the last layer",
                   err=True)
    return WRONG
