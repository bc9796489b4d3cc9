"""The unit of a layer: one function, of which each kind of layer has an implementation beside its unit.

Such a unit says by itself what it takes of a device (``parts``) and what its memories hold (``images``), so that
what is foreseen of a design, its images and its Verilog come from one and the same object.
"""
import gc
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Protocol, runtime_checkable

from amaranth.hdl import Signal, UnusedElaboratable
from amaranth.lib import stream, wiring

from circulant.hw.array.layer_programs import without_hardware
from circulant.hw.array.parts import Parts
from circulant.hw.array.plans import Plan, wanted
from circulant.hw.emit.image import Image
from circulant.hw.reload.config import Config
from circulant.hw.stream.link import values
from circulant.sim.golden.stages import INPUT, Stage, Stages, flows
from circulant.sim.refusal import Refusal
from circulant.sim.shape.window import Flow

__all__ = ["FLYING", "SLACK", "Site", "Timed", "Unit", "WithoutImages", "chain", "heeds_marks", "inputs", "loadable",
           "placed", "unelaborated", "unit", "wired"]


MOST = 1 << 22
"""Values of a sample that wait in front of a join at the most."""

SLACK = 64
"""Cycles that a vector takes through a unit that states no latency, at the most, beyond those that it waits."""

FLYING = 3
"""Vectors that a layer has under way at the most, beside the one that it gives."""


@dataclass(frozen=True)
class Site:
    """The surroundings of a unit.

    Parameters:
        k: values of a block that comes, for a unit that takes blocks of any size.
        wanted: values of a block that the layer behind takes.
        pixels: side by side in a block that comes.
        gives: pixels side by side that what lies behind takes at once.
        single: whether each vector that comes is a sequence of its own.
        marked: whether what lies behind looks at the mark of the last block of an image or a sequence.
        steps: of a sequence at the most, where a layer needs whole ones; None where any number will do.
        config: the port of a reloadable design; None otherwise.
        beside: for each source of a join the stages on the longest other way from where the branches part.
        count: steps or pixels of a sample at the most, for a unit that keeps a whole one.
    """

    k: int = 1
    wanted: int = 1
    pixels: int = 1
    gives: int = 1
    single: bool = False
    marked: bool = True
    steps: int | None = None
    config: Config | None = None
    beside: tuple[int, ...] = ()
    count: int = 1

    @property
    def keeps(self) -> bool:
        """Whether states can be saved and restored."""
        return self.config is not None and self.steps is None


class Unit(Protocol):
    """Component of a layer.

    Members:
        i, o: streams of blocks of what comes and of what leaves.
        busy: of a reloadable design: a vector or a step is under way.
        resuming: of one whose states can be saved: streams whose next step is not the first of its sequence.
        depths: of a join: words that the queue of each source holds.
    """

    i: stream.Interface
    o: stream.Interface
    busy: Signal
    resuming: Signal
    depths: list[int]

    @property
    def signature(self) -> wiring.Signature:
        """Ports; those to an array that is shared begin with "array"."""

    @property
    def parts(self) -> Parts:
        """Memories and products that it is made of."""

    @property
    def images(self) -> list[Image]:
        """Memories with given contents."""


class WithoutImages:
    """Unit none of whose memories has given contents."""

    @property
    def images(self) -> list[Image]:
        return []


@runtime_checkable
class Timed(Protocol):
    """Unit that states its latency: those over images do."""

    @property
    def latency(self) -> int:
        """Cycles from the last block of all that an output pixel needs to its first block, when nothing waits."""


@singledispatch
def unit(layer: Stage, plan: Plan, site: Site) -> Unit:
    """The unit of a layer: a component with streams ``i`` and ``o``, its ``parts``, and its ``images``.

    Raises:
        Refusal: when the hardware has no unit for the kind.
    """
    raise without_hardware(layer)


@singledispatch
def loadable(layer: Stage) -> bool:
    """Whether the unit of a layer has its memories behind the configuration port of a reloadable design."""
    return False


@singledispatch
def heeds_marks(layer: Stage, *, single: bool) -> bool:
    """Whether the unit of a layer looks at the marks of the last blocks that come, or passes them on; one that counts
    what comes does not.

    Parameters:
        single: whether each vector that comes is a sequence of its own.
    """
    return True


def chain(layers: Sequence[Stage], plans: Sequence[Plan], site: Site, flow: Flow) -> list[Unit]:
    """Units in a row.

    Parameters:
        site: that of the first unit; those behind it take its blocks, and what it ``gives`` side by side.
        flow: what comes to the first one.
    """
    sources = tuple((n - 1,) for n in range(len(layers)))
    return wired(Stages(tuple(layers), sources, tuple(flows(flow, layers)[:-1])), plans, site)


def wired(stages: Stages, plans: Sequence[Plan], site: Site) -> list[Unit]:
    """Units of stages, in their order.

    Parameters:
        site: that of a unit that takes the input; those behind it take its blocks, and what it ``gives`` side by side.
    """
    found: list[Unit] = []

    def add(layer: Stage, plan: Plan, here: Site) -> int:
        found.append(unit(layer, plan, here))
        for place, waits in enumerate(stages.waiting(len(found) - 1)):
            if waits:
                sizes: Sequence[int] = getattr(layer, "sizes", ())
                found[-1].depths[place] += here.count * -(-sizes[place] // values(inputs(found[-1])[place]))
        return values(found[-1].o)

    placed(stages, plans, site, add)
    return found


def placed(stages: Stages, plans: Sequence[Plan], site: Site, size: Callable[[Stage, Plan, Site], int]) -> None:
    """Call ``size`` for each of the stages, with its surroundings, for the values of a block that leaves it."""
    def single(flow: Flow) -> bool:
        return flow.grid is None and not flow.sequence

    for n, layer in enumerate(stages.each):  # Before there is a unit that nobody elaborates.
        kept = max((size for size, waits in zip(getattr(layer, "sizes", ()), stages.waiting(n), strict=False) if waits),
                   default=0)
        if (count := _count(stages.come[n], site)) * kept > MOST:
            raise Refusal(f"Layer {layer.name!r} must keep a whole sample of at most {MOST:,} values until the rest "
                          f"comes, not {count} x {kept}; use it behind a pooling, or lower hardware.max_steps")
    gives: list[int] = []
    for n, (layer, plan, sources) in enumerate(zip(stages.each, plans, stages.sources, strict=True)):
        readers = stages.readers(n)
        sizes = [gives[source] for source in sources if source > INPUT]
        here = replace(site, wanted=wanted(stages, n, plans), k=min(sizes, default=getattr(layer, "block", site.k)),
                       pixels=site.gives if n == 1 else 1, gives=site.gives if n == 0 else 1,
                       single=single(stages.come[n]), count=_count(stages.come[n], site),
                       beside=tuple(stages.beside(n)) if len(sources) > 1 else (),
                       marked=(site.marked and (not readers or n in stages.outputs)) or any(
                           heeds_marks(stages.each[each], single=single(stages.come[each])) for each in readers))
        gives.append(size(layer, plan, here))


def _count(flow: Flow, site: Site) -> int:
    """Vectors of a sample at the most."""
    return flow.pixels if not flow.sequence or site.steps is None else site.steps


def inputs(unit: Unit) -> list[stream.Interface]:
    """The streams that a unit takes, in the order of its sources."""
    found: list[stream.Interface] | None = getattr(unit, "inputs", None)
    return [unit.i] if found is None else found


@contextmanager
def unelaborated() -> Iterator[None]:
    """Units that nobody elaborates: Amaranth warns of them when they are collected, which therefore happens here."""
    collects = gc.isenabled()
    gc.disable()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnusedElaboratable)
            yield
            gc.collect(0)
    finally:
        if collects:
            gc.enable()
