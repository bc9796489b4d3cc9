"""The command ``circulant estimate``: what a network takes of a device, before anything is generated."""
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from circulant.arguments import JSON, RUNS, say
from circulant.boards.device import device
from circulant.completion import device_names, experiments
from circulant.experiment import DEFAULT, Board, Experiment, load
from circulant.extras import extras
from circulant.run.sizing import levels
from circulant.sim.refusal import Refusal

__all__ = ["estimate"]

NOT = 2
"""Exit code when the design does not fit, as that of ``circulant generate --device``."""


@click.command(short_help="Estimate the resources on an FPGA, in about a second",
               epilog="RUN is a run folder, a shipped experiment or a .toml file. docs/synthesis.md describes the "
                      "model; docs/measured/estimate.json holds its comparison with Yosys.")
@click.argument("source", metavar="[RUN]", required=False, shell_complete=experiments)
@click.option("--device", "part", metavar="NAME", shell_complete=device_names,
              help="FPGA.  [default: that of the experiment]")
@click.option("--multipliers", type=click.IntRange(0), metavar="N",
              help="Number of real multipliers that the design may use; 0 for all of the device.  [default: that of "
                   "the experiment]")
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE",
              help="Change a key of the experiment, for instance hardware.levels=6; may be repeated.")
@JSON
def estimate(source: str | None, part: str | None, multipliers: int | None, overrides: tuple[str, ...],
             as_json: bool) -> int:
    """Estimate multipliers, DSP blocks, block RAMs, look-up tables, flip-flops and clock with a model of the device
    family. Each figure has its error against Yosys and nextpnr.

    For a run folder, the quantized network is read. For an experiment, the untrained network is built; the first time
    this takes torch and some seconds. If the design does not fit, the command says which resource is short and by how
    much, and the smallest change of each setting with which it fits. It then exits with 2.

    \b
    Example:
      circulant estimate runs/digits-gru --device LFE5U-45F
      circulant estimate ulx3s-digits --multipliers 30 --json
    """
    with extras("circulant estimate", "amaranth"):
        from circulant.boards.estimate import changes as levers
        from circulant.boards.estimate import estimate as model
        from circulant.estimate.networks import network_of, untrained

    source = source or str(RUNS / DEFAULT)
    experiment = _experiment(source, part, multipliers, overrides)
    found = device(experiment.board.device)
    network = network_of(Path(source)) if Path(source).is_dir() else None
    if network is not None and overrides and _reshapes(overrides):
        raise Refusal(f"The network of {source} is quantized already, and {_reshapes(overrides)} would change it; give "
                      "the name of its experiment instead of the folder, or leave it out")
    network = network or untrained(experiment)
    hardware = experiment.hardware
    network = network.with_argmax() if hardware.argmax else network
    options = model.Options(
        multipliers=hardware.multipliers, streams=hardware.streams, levels=levels(experiment),
        objective=hardware.objective, max_steps=hardware.max_steps, reloadable=hardware.reloadable,
        dsp_packing=hardware.dsp_packing, protection=hardware.protection)
    try:
        made, why = model.estimate(network, found, options), ""
    except Refusal as refusal:
        made, why = None, str(refusal)
    ways = [] if made is not None and made.fits else levers.changes(network, found, options, failed=made)
    if made is None and not ways:
        raise Refusal(why)
    say({"estimate": None if made is None else made.as_json(), "why": why, "fits": made is not None and made.fits,
         "changes": [each.as_json() for each in ways]}, as_json, *_words(made, why, ways))
    return 0 if made is not None and made.fits else NOT


def _experiment(source: str, part: str | None, multipliers: int | None, overrides: tuple[str, ...]) -> Experiment:
    """The experiment with what the options say laid over it.

    Raises:
        Refusal: as `load`, or when no device is named.
    """
    experiment = load(source, overrides)
    if part is not None:
        experiment = replace(experiment, board=Board(device(part).name))
    if experiment.board.device == "none":
        raise Refusal(f"An estimate needs a device, but board.device of {source} is 'none'; name one with --device, "
                      "for instance --device LFE5U-85F")
    if multipliers is not None:
        experiment = replace(experiment, hardware=replace(experiment.hardware, multipliers=multipliers))
    return experiment


def _reshapes(overrides: tuple[str, ...]) -> str:
    """The first override that would make another network; empty where none does."""
    return next((each for each in overrides if each.partition(".")[0].strip() not in ("hardware", "board")), "")


def _words(made: Any, why: str, ways: list[Any]) -> list[str]:
    from circulant.boards.estimate.measured import words

    lines = [why] if made is None else made.lines()
    if made is not None:
        lines.append(f"  {words(made.device.family)}")
    if made is not None and made.fits:
        return lines
    if not ways:
        return [*lines, "It does not fit, and no change of a single setting makes it fit"]
    return [*lines, "It does not fit. The smallest change of each setting with which it fits:",
            *(f"  {each}" for each in ways)]
