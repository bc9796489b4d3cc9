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
from circulant.run.sizing import budget, latency, levels
from circulant.sim.figures import LATENCIES, Figures
from circulant.sim.golden.network import Network
from circulant.sim.refusal import Refusal

__all__ = ["estimate"]

ASSUMED = 100.0
"""MHz, where no device says how fast logic is."""

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
    family. Each figure has its error against Yosys and nextpnr. Without a device, as for an ASIC: multipliers, memory
    bits, cycles.

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
    network = network_of(Path(source)) if Path(source).is_dir() else None
    if network is not None and overrides and _reshapes(overrides):
        raise Refusal(f"The network of {source} is quantized already, and {_reshapes(overrides)} would change it; give "
                      "the name of its experiment instead of the folder, or leave it out")
    network = network or untrained(experiment)
    hardware = experiment.hardware
    network = network.with_argmax() if hardware.argmax else network
    if experiment.board.device == "none":
        figures = _cycles(network, experiment)
        say({"estimate": {**figures.as_json(), "cycles": figures.cycles}}, as_json, *_in_words(figures))
        return 0
    found = device(experiment.board.device)
    options = model.Options(
        multipliers=hardware.multipliers, streams=hardware.streams, levels=levels(experiment),
        objective=hardware.objective, max_steps=hardware.max_steps, reloadable=hardware.reloadable,
        dsp_packing=hardware.dsp_packing, protection=hardware.protection, beat_blocks=hardware.beat_blocks,
        latency=latency(experiment))
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
        Refusal: as `load`.
    """
    experiment = load(source, overrides)
    if part is not None:
        experiment = replace(experiment, board=Board(device(part).name))
    if multipliers is not None:
        experiment = replace(experiment, hardware=replace(experiment.hardware, multipliers=multipliers))
    return experiment


def _cycles(network: Network, experiment: Experiment) -> Figures:
    """Figures that follow from the plan alone.

    Raises:
        Refusal: as `circulant.run.sizing.budget`, and `circulant.hw.planner.plan`.
    """
    from circulant.hw.plan_cache import plans_of
    from circulant.hw.resources import figures

    hardware = experiment.hardware
    plans = plans_of(network, budget(experiment, network), streams=hardware.streams, levels=hardware.levels,
                     objective=hardware.objective, reloadable=hardware.reloadable, packing=hardware.dsp_packing,
                     protection=hardware.protection, beat_blocks=hardware.beat_blocks, latency=latency(experiment),
                     max_steps=hardware.max_steps)
    return figures(network, plans, max_steps=hardware.max_steps, reloadable=hardware.reloadable)


def _in_words(figures: Figures) -> list[str]:
    """Cycles, and microseconds at the clock that reports assume."""
    times = {"period": figures.cycles, "latency, spaced": figures.latency_spaced,
             "latency, contiguous": figures.latency_contiguous}
    doubts = dict(zip(times, (name in figures.estimates for name in ("cycles", *LATENCIES)), strict=True))
    return [f"{figures.multipliers:,} multipliers, {figures.memory_bits:,} memory bits; name a --device for its "
            "resources and its clock",
            *(f"  {name:<20} " + ("not planned for this network: circulant simulate measures it" if cycles is None else
                                  f"{cycles:,g} cycles, {cycles / ASSUMED:,.3g} µs at {ASSUMED:g} MHz"
                                  f"{', an estimate' if doubts[name] else ''}") for name, cycles in times.items())]


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
