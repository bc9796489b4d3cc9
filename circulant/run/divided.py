"""A run over several chips: the search for the place of each layer, a design for each chip, and all of them played with
links as they are planned and with worse ones.

Amaranth is imported by `divide` only, cocotb by `check` only.
"""
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from circulant.boards.device import device, fits
from circulant.extras import extras
from circulant.hardware import Chips
from circulant.run.run_folder import Run
from circulant.sim import design
from circulant.sim.chips import FOLDER, SYSTEM, Partition, chips_of, drawn, partition_of, roughened
from circulant.sim.files import temporaries
from circulant.sim.golden.network import Network
from circulant.sim.vectors import Vectors

if TYPE_CHECKING:
    from circulant.hw.chips.folders import Designs
    from circulant.hw.chips.search import Choice

__all__ = ["PATIENCE", "check", "closing", "divide", "found", "partitioned"]


class Check(TypedDict, total=False):
    """Words of all plays, those that differ, and the first of these; cycles that were measured with planned links, and
    of a step with others, whose latencies they are."""

    words_compared: int
    mismatches: int
    first: Mapping[str, object] | None
    cycles_per_step: float
    latency_spaced: float
    rough_cycles_per_step: float
    latencies: list[int]


SEED = 1
"""Seed of the settings of worse links."""

ASSUMED = 100.0
"""MHz where no clock is asked for."""

CARRIED: Mapping[str, tuple[str, ...]] = {
    "pins": (),
    "udp": ("chipN_udp.v of each chip's folder has the chip and LiteEth's core; it is not routed, its pins are yours",),
    "aurora": ("chipN_aurora.tcl of each chip's folder makes a Vivado project, which is not routed",)}
"""Sentences about what there is besides chips, by what carries their links."""

PATIENCE = 50_000
"""Cycles without a beat after which a circuit with worse links counts as stuck."""


def found(network: Network, chips: Chips, *, levels: int, mhz: float | None = None, weight: float = 0.0,
          objective: str = "throughput") -> "Choice":
    """The best place of each layer on these chips.

    Parameters:
        mhz: the clock, in which a latency in nanoseconds is counted; None for `ASSUMED`.
        weight: of the latency beside that of the period, 1.

    Raises:
        Refusal: as `circulant.hw.chips.cluster.Cluster` and `circulant.hw.chips.search.search`.
    """
    from circulant.boards.carrier import require
    from circulant.hw.chips.cluster import Chip, Cluster, Link
    from circulant.hw.chips.costs import Goal
    from circulant.hw.chips.search import search
    from circulant.hw.chips.words import AURORA, UDP

    made = []
    for n in range(chips.count):
        name = chips.of(chips.device, n, "")
        held = None if not name else device(name)
        budget = chips.of(chips.multipliers, n, 0) or (held.dsps if held else 0)
        memory = chips.of(chips.memory, n, 0) or (held.block_rams if held else 0)
        made.append(Chip(f"chip{n}", budget, *(() if held is None else (held.family, held.dsps, memory, name))))
    latency = math.ceil(chips.link_ns * (mhz or ASSUMED) / 1000) or chips.link_latency
    carrier = None
    if chips.carrier != "pins":
        require(chips.carrier, [each.device for each in made], mhz or ASSUMED)
        carrier = replace({"udp": UDP, "aurora": AURORA}[chips.carrier], mhz=mhz or ASSUMED)
    cluster = Cluster(tuple(made), Link(chips.link_bits, latency, chips.link_overhead, chips.link_pins, carrier),
                      "pairs" if chips.pairs else chips.topology, chips.pairs)
    return search(network, cluster, Goal(1.0, weight), levels=levels, objective=objective, streams=chips.streams)


def divide(network: Network, chips: Chips, *, levels: int, family: str = "generic", **options: Any) -> "Designs":
    """The designs of a network over several chips; see `found`.

    Raises:
        Refusal: as `found`; when a part exceeds its chip's device.
        MissingExtra: when UDP is to carry the links, and LiteEth is not installed.
    """
    from circulant.boards import carrier
    from circulant.hw.chips.folders import generate_chips

    if chips.carrier != "pins":  # What no installation mends comes first.
        carrier.require(chips.carrier, [chips.of(chips.device, n, "") for n in range(chips.count)],
                        options.get("mhz") or ASSUMED)
    if chips.carrier == "udp":
        with extras("Carrier udp", "liteeth"):
            pass
    choice = found(network, chips, levels=levels, **options)
    made = generate_chips(choice.planned, family=family, levels=levels, places=choice.lines())
    for n, each in made.chips.items():
        if name := choice.planned.cluster.chips[n].device:
            fits(device(name), each.inventory)
    mhz = options.get("mhz") or ASSUMED
    if chips.carrier == "udp":
        return carrier.udp(made, carrier.Udp(chips.ip, chips.mac, chips.port), mhz)
    return carrier.aurora(made, mhz) if chips.carrier == "aurora" else made


def partitioned(run: Run, network: Network) -> Partition | None:
    """How a run's network lies on several chips; None where it was not partitioned.

    Raises:
        Refusal: when a file of the chips is missing, changed, or of another network.
    """
    if not run.path(FOLDER).exists():
        return None
    chips_of(run.path(FOLDER), network.hash)
    return partition_of(run.path(FOLDER), network.hash)


def closing(found: Partition) -> list[str]:
    """A partition in words, a line for each layer first."""
    about = f" (estimates: {', '.join(found['estimates'])})" if found["estimates"] else ""
    loads = ", ".join(f"{each['start']} → {each['end']} {each['load']:.0%}" for each in found["links"])
    return [*found["places"], f"period {found['period']:g} cycles, latency {found['latency']}{about}",
            f"load of the links: {loads}" if loads else "no link carries anything", *CARRIED[found["carrier"]]]


def check(folder: Path, network: Network, vectors: Vectors, drawn_vectors: Vectors | None = None,
          progress: Any = None, *, planned: bool = True) -> "Check":
    """All chips and their links under Verilator against the one-chip golden model: with links as they are planned, then
    with links of 0 to 500 ns that lose, double and spoil words and pause.

    Parameters:
        folder: of the chips, whose files are as they were generated.
        planned: whether links as they are planned are played, too.
    """
    from circulant.sim.cosim import verify

    chips_of(folder, network.hash)
    system = folder / SYSTEM
    settings = drawn(design.read(system)["links"], SEED)
    checks = [verify(system, vectors, drawn=drawn_vectors, progress=progress)] if planned else []
    with temporaries.folder() as work:
        checks.append(verify(roughened(system, work / SYSTEM, settings), vectors, drawn=drawn_vectors,
                             progress=progress, patience=PATIENCE))
    first = next((each.first for each in checks if each.first is not None), None)
    found: Check = {"words_compared": sum(each.words_compared for each in checks),
                    "mismatches": sum(each.mismatches for each in checks),
                    "first": None if first is None else vars(first),
                    "rough_cycles_per_step": checks[-1].cycles_per_step,
                    "latencies": sorted(latency for latency, _ in settings.values()) or [0]}
    if planned:
        found |= {"cycles_per_step": checks[0].cycles_per_step, "latency_spaced": checks[0].latency_spaced}
    return found
