"""The command line: a command for a whole run, one for each of its steps, one that shows data sets, and sweeps."""
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from circulant import __version__
from circulant.boards.device import devices
from circulant.experiment import DEFAULT, FILE, load, shipped
from circulant.extras import extras
from circulant.progress import Bars, leads
from circulant.records import CHECKPOINT, Run
from circulant.sim import artifact
from circulant.sim.cosim import SimulationError
from circulant.sim.refusal import Refusal
from circulant.sweep.command import sweep

__all__ = ["main"]

RUNS = Path("runs")

STEPS = ("train", "quantize", "generate", "simulate", "reload", "report")

WRONG, REFUSED, INTERRUPTED = 1, 2, 130

PATIENCE = 30
"""Seconds that a process which says nothing leaves to the one that does."""


def main(arguments: list[str] | None = None) -> None:
    """The entry point. Exits with 0; 1 when the circuit is found wrong, 2 for a refusal, 130 when interrupted."""
    try:
        code = cli.main(arguments, prog_name="circulant", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        code = REFUSED
    except Refusal as refusal:
        _say(str(refusal))
        code = REFUSED
    except SimulationError as error:
        click.echo(str(error), err=True)
        code = WRONG
    except (KeyboardInterrupt, click.Abort) as stop:
        said = str(stop) or str(stop.__cause__ or "")  # click turns the one into the other.
        _say(said or "Interrupted; what earlier steps wrote stays usable.")
        code = INTERRUPTED
    except OSError as error:
        click.echo(f"{error.filename or 'A file'} cannot be used: {error.strerror}", err=True)
        code = REFUSED
    sys.exit(code or 0)


def _say(text: str) -> None:
    """A line on stderr; of several processes that train together, one says it for all."""
    if leads():
        click.echo(text, err=True)
    else:
        time.sleep(PATIENCE)  # The launcher stops all others as soon as one ends, so that is to be the one that speaks.


class InOrder(click.Group):
    """Lists its commands in the order in which they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(cls=InOrder, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="circulant %(version)s")
def cli() -> None:
    """From a torch model to a block-circulant network in verified Verilog.

    \b
    circulant run                        train, quantize, generate, simulate, report
    circulant run --set model.hidden=32  the same with a smaller network
    circulant report runs/digits-gru     one step, from the files of the one before
    circulant data fsdd                  what a data set holds
    circulant sweep recurrent            block sizes × widths × multipliers
    """


def step(short: str, doc: str, *examples: str, trains: bool = False, sized: bool = False
         ) -> Callable[[Callable[..., int]], click.Command]:
    """A command ``[EXPERIMENT] [--out DIR] [--set key=value …]`` whose function gets the run and the progress bars.

    Options of its own are added above it and given by their names; one that trains also gets ``resume``, and one that
    is ``sized`` takes --multipliers and --device, which are keys of the experiment.
    """

    def decorate(function: Callable[..., int]) -> click.Command:
        name = function.__name__
        resume = click.option("--resume", is_flag=True, help="Go on with the training that was interrupted here.")

        @cli.command(name, short_help=short, help="\n  ".join([f"{doc}\n\n\b\nExample:", *examples]),
                     epilog=f"EXPERIMENT is a shipped experiment ({', '.join(shipped())}), a .toml file or a run "
                            f"folder; every key of it stands in docs/experiment.md.")
        @click.argument("experiment", required=False)
        @click.option("--out", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
                      help=f"Run folder; without it {RUNS}/NAME, or EXPERIMENT where that is a run folder.")
        @click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE",
                      help="Change a key of the experiment, for instance hardware.multipliers=32; may be repeated.")
        def command(experiment: str | None, out: Path | None, overrides: tuple[str, ...], **own: Any) -> int:
            if sized:
                overrides += size(overrides, own.pop("multipliers"), own.pop("part"), own.get("target", "verilog"))
                overrides += ("hardware.argmax=true",) if own.pop("argmax") else ()
            run = find(name, experiment, out, overrides, resume=own.get("resume", False))
            with Bars(Console(stderr=True)) as bars:
                return function(run, bars, **own)

        for option in ([resume] if trains else []) + (SIZE if sized else []):
            command = option(command)
        return command

    return decorate


SIZE = [
    click.option("--device", "part", metavar="NAME", help=f"FPGA that the design must fit ({', '.join(devices())}), "
                 "with all of its multipliers unless a number is given."),
    click.option("--multipliers", type=int, metavar="N",
                 help="Real multipliers that the design may use; lanes, fold and order are chosen for the least time."),
    click.option("--argmax", is_flag=True, help="Let it give the class, the place of the largest output."),
]


def size(overrides: tuple[str, ...], multipliers: int | None, part: str | None, target: str) -> tuple[str, ...]:
    """What --multipliers and --device say, as ``key=value``.

    Raises:
        Refusal: when --set says it too, or nothing is built from multipliers.
    """
    if part is not None:
        part = {name.lower(): name for name in devices()}.get(part.lower(), part)
    given = {"hardware.multipliers": ("--multipliers", multipliers), "board.device": ("--device", part)}
    said = {override.partition("=")[0].strip() for override in overrides}
    for key, (option, value) in given.items():
        if value is not None and target != "verilog":
            raise Refusal(f"{option} must be left out with --target {target}, which has no multipliers to share out")
        if value is not None and key in said:
            raise Refusal(f"{option} and --set {key} must not both be given, as they say the same; leave one out")
    if part is not None and multipliers is None and "hardware.multipliers" not in said:
        given["hardware.multipliers"] = ("", 0)
    return tuple(f"{key}={value}" for key, (_, value) in given.items() if value is not None)


def find(command: str, source: str | None, out: Path | None, overrides: tuple[str, ...], resume: bool = False) -> Run:
    """The run that a command line means.

    A step after the first goes on with the experiment that the folder keeps, unless a file is named. So does any
    command that is given a folder and no EXPERIMENT. What resumes a training goes on with that of the checkpoint.

    Raises:
        Refusal: as `circulant.experiment.load`.
    """
    if out is None and source is not None and source not in shipped() and Path(source).is_dir():
        out = Path(source)
    kept = out or RUNS / (source or DEFAULT)
    continues = command in STEPS[1:] or (source is None and out is not None)
    unfinished = kept / CHECKPOINT
    if resume and (source is None or source in shipped() or Path(source) == kept) and (unfinished / FILE).exists():
        return Run(kept, load(unfinished, overrides))
    if continues and (source is None or source in shipped()) and (kept / FILE).exists():
        source = str(kept)
    experiment = load(source or DEFAULT, overrides)
    return Run(out or RUNS / experiment.name, experiment)


@step("All five steps", "Train, quantize, generate, simulate and report.",
      "circulant run digits-gru --set training.seed=1 --out runs/seed-1",
      "circulant run digits-gru --device LFE5U-85F --out runs/ecp5", trains=True, sized=True)
def run(this: Run, bars: Bars, resume: bool) -> int:
    from circulant import steps

    # An unfinished training of this very experiment is gone on with unasked, as its outcome is the same.
    steps.train(this, bars, resume=resume or None, exports=True)
    if not leads():
        return 0
    steps.quantize(this, bars)
    steps.generate(this, bars)
    simulated = steps.simulate(this, bars)
    figures = steps.report(this, bars)
    bars.close()
    _show(this, figures)
    return _verdict(simulated)


@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@step("What becomes of each part of the network",
      "Show what would become of each part of the experiment's network, with its block size and the waste of padding.",
      "circulant inspect mnist-lenet5 --set compression.block_size={fc1=64}")
def inspect(this: Run, bars: Bars, as_json: bool) -> int:
    from circulant import steps

    parts = steps.inspect(this, bars)
    bars.close()
    click.echo(json.dumps(parts.as_json(), indent=1, ensure_ascii=False) if as_json else str(parts))
    parts.require()
    if not parts.exportable:
        click.echo("It can be trained, but not be quantized: the golden model has no layer for what is only captured.",
                   err=True)
    return 0


@step("Torch: dense baseline, ADMM, projection, retraining",
      "Train the dense baseline, then the block-circulant network by ADMM, projection and retraining, or directly.",
      "circulant train digits-gru --set compression.block_size=4 --out runs/k4", trains=True)
def train(this: Run, bars: Bars, resume: bool) -> int:
    from circulant import steps

    done = steps.train(this, bars, resume=resume)
    if not leads():
        return 0
    bars.close()
    scores = done[done["metric"]]
    click.echo(f"{this.path('model.pt')}: {steps.words(done['metric'])} {scores['dense']:.2%} dense, "
               f"{scores['circulant']:.2%} block-circulant")
    return 0


@click.option("--like", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
              help="Take the formats of the network in this run folder, so that its circuit takes this one's weights.")
@step("Integers: the golden model and its test vectors",
      "Quantize the trained network into the golden model, and compute the test vectors of the whole test split.",
      "circulant quantize runs/digits-gru --set quantization.weight_bits=10",
      "circulant quantize runs/digits-gru --set quantization.budget=0.1")
def quantize(this: Run, bars: Bars, like: Path | None) -> int:
    from circulant import steps

    done = steps.quantize(this, bars, like=like)
    bars.close()
    _widths(done)
    click.echo(f"{this.path('network.json')}: {steps.words(done['metric'])} {done[done['metric']]['quantized']:.2%} "
               "quantized")
    return 0


@click.option("--target", type=click.Choice(["verilog", "c"]), default="verilog", show_default=True,
              help="Verilog in the folder hardware, or C99 for processors in the folder c.")
@step("Verilog and memory images, or C", "Generate Verilog and memory images, or C, from the golden model.",
      "circulant generate runs/digits-gru --multipliers 32",
      "circulant generate runs/digits-gru --device XC7Z020",
      "circulant generate runs/digits-gru --target c", sized=True)
def generate(this: Run, bars: Bars, target: str) -> int:
    from circulant import steps

    if target == "c":
        made = steps.generate_c(this, bars)["c"]
        bars.close()
        click.echo(f"{this.path('c')}: {made['table_bytes']:,} bytes of tables; `make -C {this.path('c')} test` runs "
                   "its self-test")
        return 0
    from circulant.schedule import closing

    hardware = steps.generate(this, bars)["hardware"]
    bars.close()
    click.echo(f"{this.path('hardware')}: {hardware['multipliers']:,} multipliers, "
               f"{hardware['memory_bits']:,} memory bits")
    click.echo(closing(hardware))
    return 0


@step("Verilator: every output bit against the golden model",
      "Simulate the Verilog under Verilator and compare every output bit with the golden model.",
      "circulant simulate runs/digits-gru")
def simulate(this: Run, bars: Bars) -> int:
    from circulant import steps

    simulated = steps.simulate(this, bars)
    bars.close()
    check = simulated["verification"]
    click.echo(f"{this.path('verification.json')}: {check['sequences']:,} sequences, {check['words']:,} words, "
               f"{check['mismatches']:,} mismatches")
    return _verdict(simulated)


@click.option("--network", type=click.Path(path_type=Path, file_okay=False), metavar="DIR", required=True,
              help="Run folder of the other network, which was quantized --like this one.")
@step("Words that load another network",
      "Make the words that load another network into a reloadable design, and check under Verilator that they do.",
      "circulant reload runs/digits-gru --network runs/seed-1")
def reload(this: Run, bars: Bars, network: Path) -> int:
    from circulant.reload import reload as words_of

    check = words_of(this, network, bars)["exchange"]
    bars.close()
    click.echo(f"{this.path('reload.bin')}: {check['words_written']:,} words; with one network and the other "
               f"{check['words_compared']:,} words of output and {check['values_compared']:,} of states compared, "
               f"{check['mismatches'] + check['wrong_values']:,} mismatches")
    return WRONG if check["mismatches"] or check["wrong_values"] else 0


@step("Every figure of the run, with pictures",
      "Collect every figure of the run into report.json, report.html and pictures.", "circulant report runs/digits-gru")
def report(this: Run, bars: Bars) -> int:
    from circulant import steps

    figures = steps.report(this, bars)
    bars.close()
    _show(this, figures)
    return 0


@cli.command("data", short_help="What a data set holds", epilog="Every data set and its options stand in docs/data.md.")
@click.argument("source", metavar="NAME")
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE",
              help="Change an option of the data set, for instance data.subset=100; may be repeated.")
@click.option("--picture", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Draw lengths and classes into this PNG.")
def show_data(source: str, overrides: tuple[str, ...], picture: Path | None) -> int:
    """Read a data set as training does, and show its sizes, shapes, lengths and classes.

    NAME is a data set, an .npz file of your own, or an experiment whose data are meant.

    \b
    Example:
      circulant data fsdd --set data.steps=80 --picture fsdd.png
    """
    from circulant import holdings

    options = holdings.options_of(source, overrides)
    with extras("circulant data"):
        from circulant import training
    with Bars(Console(stderr=True)) as bars:
        bars("reading data", 0, 0)
        data = training.load_data(**options, progress=bars)
    click.echo(holdings.words(holdings.figures(data)))
    if picture is not None:
        artifact.atomic_bytes(picture, holdings.picture(data))
        click.echo(picture)
    return 0


cli.add_command(sweep)


def _widths(done: dict[str, Any]) -> None:
    """What was picked, every tensor against its format, and which of them the calibration said nothing of."""
    from circulant.integers import picked_table, ranges_table

    console = Console(soft_wrap=not sys.stdout.isatty())
    if done["picking"]:
        console.print(picked_table(done["picking"]), ranges_table(done["ranges"]))
    if done["never"]:
        click.echo(f"The calibration never exercises {', '.join(done['never'])}: always zero, so that their formats "
                   "say nothing.", err=True)


def _show(this: Run, figures: dict[str, Any]) -> None:
    from circulant.report import summary

    Console(soft_wrap=not sys.stdout.isatty()).print(summary(figures))
    click.echo(this.path("report.html"))


def _verdict(simulated: dict[str, Any]) -> int:
    """The exit code of a verification; a mismatch is said on stderr."""
    check = simulated["verification"]
    if not check["mismatches"]:
        return 0
    first = check["first"]
    click.echo(f"{check['mismatches']} of {check['words_compared']} words differ from the golden model; the first: "
               f"sequence {first['sequence']}, step {first['step']}, word {first['word']}: "
               f"expected {first['expected']}, got {first['got']}", err=True)
    return WRONG
