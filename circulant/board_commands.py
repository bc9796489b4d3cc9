"""The commands of boards: a bitstream of a run, and a demonstration on a board or on its simulation."""
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.console import Console

from circulant.arguments import JSON, RUNS, Number, say
from circulant.exits import WRONG
from circulant.experiment import DEFAULT, load
from circulant.extras import extras
from circulant.progress import Bars
from circulant.run.run_folder import Run, require
from circulant.sim.design import read
from circulant.sim.refusal import Refusal
from circulant.sim.vectors import Vectors

__all__ = ["build", "demo"]

SHADES = " ░▒▓█"

DIGITS = ("digits", "mnist")
"""Data sets of handwritten digits."""


def _run(folder: Path) -> Run:
    """The run in a folder, whose design was generated from its network.

    Raises:
        Refusal: when the folder is none of a run, or a step is missing or stale.
    """
    run = Run(folder, load(folder))
    require(run, "generate")
    return run


RUN = click.argument("folder", metavar="[RUN]", required=False, type=click.Path(path_type=Path, file_okay=False),
                     default=RUNS / DEFAULT)


@click.command(short_help="Build a bitstream for a board, with open tools",
               epilog="docs/boards.md lists the boards, and shows all steps from a network to a running board.")
@click.argument("board", metavar="BOARD")
@RUN
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
              help="Folder of the bitstream.  [default: boards/BOARD in the run folder]")
@click.option("--mhz", type=Number(1, 1000), metavar="MHZ", help="Clock.  [default: that of the board]")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, metavar="N",
              help="Seed of the placement; another seed reaches another clock.")
@click.option("--program", "where_to", type=click.Choice(["device", "flash"]),
              help="Load the bitstream over the USB cable, into the device until power is switched off, or into the "
                   "flash for good.")
@JSON
def build(board: str, folder: Path, out: Path | None, mhz: float | None, seed: int, where_to: str | None,
          as_json: bool) -> int:
    """Synthesize, place, route and pack the design of a run folder with Yosys and nextpnr.

    Writes the bitstream, its figures and a picture of the floor plan; a second call with the same design reuses them.
    Exits with 4 when the clock is not reached. For arty-a7-100t, xcku060, zcu104 and cyclone-v-a9 it writes a project
    for Vivado or Quartus instead, and checks it with Yosys and lint; the vendor's tool places and routes it.

    \b
    Example:
      circulant build ulx3s-85f runs/ulx3s-digits --program device
      circulant build ulx3s-85f runs/ulx3s-digits --mhz 90 --seed 2
      circulant build arty-a7-100t runs/digits-xilinx
    """
    with extras("circulant build", "amaranth", "amaranth_boards"):
        from circulant.boards.board import board as known
        from circulant.boards.build import build as built
        from circulant.boards.program import program
        from circulant.boards.projects import parts

    if board in parts():
        if where_to:
            raise Refusal(f"A board to program must be one with a bitstream, but {board} has a project for "
                          f"{parts()[board].tool}; leave --program out")
        return _project(board, folder, out, mhz=mhz or 0.0, as_json=as_json)
    chosen = known(board, besides=list(parts()))
    run = _run(folder)
    where = out or run.path(f"boards/{board}")
    with Bars(Console(stderr=True)) as bars:
        made = built(run.one_chip(), board, where, mhz=mhz or 0.0, seed=seed, show=bars)
    if where_to:
        program(chosen, where / made.file, flash=where_to == "flash")
    lines = [f"{where / made.file}{', as it was' if made.cached else f', in {made.seconds:.0f} s'}", *made.lines]
    say({"file": where / made.file, **vars(made), "critical": made.critical.__dict__}, as_json, *lines)
    return 0


def _project(part: str, folder: Path, out: Path | None, *, mhz: float, as_json: bool) -> int:
    """Write a project for a vendor's tool."""
    from circulant.boards.projects import project

    run = _run(folder)
    where = out or run.path(f"boards/{part}")
    with Bars(Console(stderr=True)) as bars:
        made = project(run.one_chip(), part, where, mhz=mhz, show=bars)
    say({"folder": where, **vars(made)}, as_json, f"{where}", *made.lines)
    return 0


@click.command(short_help="Classify digits on a board, or on its simulation",
               epilog="docs/boards.md says how to connect a board.")
@click.argument("what", metavar="digits", type=click.Choice(["digits"]))
@RUN
@click.option("--port", metavar="PORT", help="Serial port of a board that holds this design, for instance "
              "/dev/ttyUSB0.  [default: simulate the board]")
@click.option("--baud", type=int, default=1_000_000, show_default=True, help="Baud rate of the board's UART.")
@click.option("--count", type=click.IntRange(1), default=5, show_default=True, help="Number of digits.")
@JSON
def demo(what: str, folder: Path, port: str | None, baud: int, count: int, as_json: bool) -> int:
    """Show digits of the test set and what the device reads; exits with 1 if it differs from the golden model.

    \b
    Example:
      circulant demo digits runs/ulx3s-digits
      circulant demo digits runs/ulx3s-digits --port /dev/ttyUSB0
    """
    with extras("circulant demo", "serial", "amaranth"):
        from circulant.boards.host import Device

    run = _run(folder)
    if (name := run.experiment.data.name) not in DIGITS:
        raise Refusal(f"The demonstration shows handwritten digits, data.name = {' or '.join(map(repr, DIGITS))}, but "
                      f"the data of {folder} are {name!r}; take a run of digits-gru")
    vectors = Vectors.load(run.path("vectors.npz"))
    if vectors.inputs.ndim != 3:
        raise Refusal(f"The demonstration shows rows of pixels, one per step, but the inputs of {folder} have the "
                      f"shape {vectors.inputs.shape[1:]}; take a run of digits-gru")
    if run.experiment.hardware.argmax:
        raise Refusal(f"The demonstration reads the outputs for each digit, but the design of {folder} gives only the "
                      "class; generate it with hardware.argmax=false")
    shown, wrong = [], 0
    with _port(run.one_chip(), port) as name, Device.open(name, run.one_chip(), baud=baud,
                                                                seconds=1.0 if port else 60.0) as device:
        for x, y in list(zip(vectors.inputs, vectors.outputs, strict=True))[:count]:
            said = device.infer_integers(x)
            wrong += bool((said != y).any())
            shown.append({"digit": int(said.argmax()), "golden": int(y.argmax()), "outputs": said.tolist()})
            if not as_json:
                for row in x:
                    click.echo("  " + "".join(SHADES[int(v * (len(SHADES) - 1) / max(1, x.max()))] * 2
                                              for v in row.clip(0)))
                click.echo(f"the device reads {said.argmax()}\n")
        hello = device.hello()
    say({"digits": shown, "mismatches": wrong, "cycles": hello.cycles, "sequences": hello.sequences,
         "errors": hello.errors}, as_json,
        f"{len(shown)} digits; the device and the golden model read {wrong} of them differently; "
        f"{hello.cycles:,} cycles, {hello.errors} broken frames")
    return WRONG if wrong else 0


@contextmanager
def _port(hardware: Path, port: str | None) -> Iterator[str]:
    """The port that is given, or that of a simulated device."""
    if port is not None:
        yield port
        return
    from circulant.boards.simulated import served

    read(hardware)
    click.echo("No --port: the device is simulated", err=True)
    with served(hardware) as name:
        yield name
