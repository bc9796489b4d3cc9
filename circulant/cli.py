"""The command line: the commands of a run, one that shows data sets, and sweeps; and what the exit code says."""
import sys
import tempfile
import time
from collections import UserDict
from contextlib import suppress
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from circulant import __version__
from circulant.arguments import JSON, say
from circulant.completion import data_sets
from circulant.exits import end_of, interruptible, steady_streams
from circulant.extras import extras
from circulant.progress import Bars, leads
from circulant.sim.files import temporaries
from circulant.sim.files.writing import atomic_bytes

__all__ = ["main"]

PATIENCE = 30
"""Seconds that a process which says nothing leaves to the one that does."""


def main(arguments: list[str] | None = None) -> None:
    """The entry point. Exits with 0; 1 when the circuit is found wrong, 2 for a refusal, 3 when a tool, the disk or
    the program fails, 4 when a bitstream would be too slow, 130 when interrupted."""
    steady_streams()
    try:
        with interruptible():
            with suppress(OSError):
                temporaries.sweep(Path(tempfile.gettempdir()))
            code = cli.main(arguments, prog_name="circulant", standalone_mode=False) or 0
            sys.stdout.flush()
    except BaseException as error:
        if isinstance(error, SystemExit) and error.code == 0:  # The shell asked for completions, and has them.
            sys.exit(0)
        code, words = end_of(error)
        _say(words)
    sys.exit(code)


def _say(text: str) -> None:
    """A line on stderr, printed by one of several processes that train together."""
    if leads():
        click.echo(text, err=True)
    else:
        time.sleep(PATIENCE)  # The launcher stops all others as soon as one ends, so that is to be the one that speaks.


class OnDemand(UserDict[str, Any]):
    """Commands by name, each imported from ``module:attribute`` when it is asked for, so that none waits for what
    others need."""

    def __getitem__(self, name: str) -> click.Command:
        module, _, attribute = super().__getitem__(name).partition(":")
        found: click.Command = getattr(import_module(module), attribute)
        return found


COMMANDS = OnDemand({
    "new": "circulant.project:new",
    **{name: f"circulant.commands:{name}" for name in (
        "run", "inspect", "train", "quantize", "generate", "simulate", "reload", "report")},
    "build": "circulant.board_commands:build",
    "demo": "circulant.board_commands:demo",
    "asic": "circulant.asic_command:asic",
    "estimate": "circulant.estimate.command:estimate",
    "partition": "circulant.partition.command:partition",
    "compare": "circulant.report.command:compare",
    "share": "circulant.share:share",
    "check": "circulant.share:check",
    "data": "circulant.cli:show_data",
    "import": "circulant.onnx_import:import_onnx",
    "sweep": "circulant.sweep.command:sweep",
    "plot": "circulant.sweep.paper:plot",
    "explore": "circulant.explore.command:explore",
    "faults": "circulant.faults.command:faults",
    "doctor": "circulant.doctor:doctor",
    "completion": "circulant.completion:completion",
})
"""In the order in which they are used."""


class InOrder(click.Group):
    """Lists its commands in the order of `COMMANDS`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(cls=InOrder, commands=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="circulant %(version)s")
def cli() -> None:
    """From a torch model to a block-circulant network in verified Verilog.

    \b
    circulant new mine                     a folder for your own network and data
    circulant run                          train, quantize, generate, simulate, report
    circulant run --set model.hidden=32    the same with a smaller network
    circulant report runs/digits-gru       a single step of a run
    circulant estimate RUN --device NAME   resources on an FPGA, in about a second
    circulant partition RUN --chips 2      designs for several chips
    circulant build ulx3s-85f RUN          a bitstream for a board, with open tools
    circulant asic RUN --library sky130hd  standard cells: area, clock, energy
    circulant data fsdd                    sizes and classes of a data set
    circulant compare runs/a runs/b        figures of several runs side by side
    circulant share runs/digits-gru        one file, which circulant check verifies
    circulant sweep recurrent              block sizes × bit widths × multipliers
    circulant plot runs/sweep-recurrent    pictures of it for a paper
    circulant explore fsdd-gru --accuracy-loss 0.5 --device LFE5U-25F
                                           the best design for an FPGA
    circulant faults runs/digits-gru       what wrong bits in memories cost
    circulant doctor                       what is installed, and how to install the rest
    """


@click.command("data", short_help="Show sizes, shapes and classes of a data set",
               epilog="docs/data.md describes all data sets and their options.")
@click.argument("source", metavar="NAME", shell_complete=data_sets)
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE",
              help="Change an option of the data set, for instance data.subset=100; may be repeated.")
@click.option("--picture", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Draw lengths and classes as a PNG file.")
@JSON
def show_data(source: str, overrides: tuple[str, ...], picture: Path | None, as_json: bool) -> int:
    """Read a data set as training does, and show its sizes, shapes, lengths and classes.

    NAME is a data set, your own .npz file, or an experiment, whose data set is then shown.

    \b
    Example:
      circulant data fsdd --set data.steps=80 --picture fsdd.png
    """
    from circulant.report import dataset_summary

    options = dataset_summary.options_of(source, overrides)
    with extras("circulant data"):
        from circulant import training
    with Bars(Console(stderr=True)) as bars:
        bars("reading data", 0, 0)
        data = training.load_data(**asdict(options), progress=bars)
    held = dataset_summary.figures(data)
    say(held, as_json, dataset_summary.words(held))
    if picture is not None:
        atomic_bytes(picture, dataset_summary.picture(data))
        click.echo(picture, err=as_json)
    return 0

