"""The useful plans of a layer, its multiplications and its entry in the manifest: functions of which each kind has an
implementation beside its plan."""
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Protocol, TypeVar

from circulant.hw.array.layer_programs import without_hardware
from circulant.hw.array.plans import Plan
from circulant.hw.stream.pipeline import LEVELS
from circulant.sim.arith.circulant import multiplications
from circulant.sim.design import LayerEntry
from circulant.sim.golden.stages import Stage

__all__ = ["FOLDS", "Ladder", "folds", "ladder", "layer_entry", "layer_multiplications", "side_by_side_ladder", "tiled",
           "useful"]

FOLDS = (2, 3, 4, 6, 8, 12, 16, 24, 48)
"""Cycles over which a lane may spread a block product."""

P = TypeVar("P", bound=Plan)

Rung = tuple[Plan, ...]
"""Plans of what works at the same time in a layer: one, or that of each direction."""


def folds(k: int, *, lanes: int) -> tuple[int, ...]:
    """Folds worth a try: only a single lane is folded, and over no more cycles than twice its products."""
    return (1, *(n for n in FOLDS if n < 2 * multiplications(k))) if lanes == 1 else (1,)


@dataclass(frozen=True)
class Ladder:
    """The useful plans of a layer, from the smallest to the fastest.

    Parameters:
        rungs: of which one is chosen.
        settle: from the rung chosen, and the multipliers that are left for the layer, to its plan.
    """

    rungs: Sequence[Rung]
    settle: Callable[[Rung, int], Plan] = lambda rung, spare: rung[0]


@singledispatch
def ladder(layer: Stage, *, streams: int, count: int, levels: int = LEVELS) -> Ladder:
    """The useful plans of a layer.

    Parameters:
        streams: sequences that are interleaved.
        count: vectors or pixels that come for a vector or an image.
        levels: of logic between two registers of recurrent and fully connected layers and norms.

    Raises:
        Refusal: when the hardware has no unit for the kind, or none for several streams.
    """
    raise without_hardware(layer)


@singledispatch
def tiled(layer: Stage, behind: Stage | None, pixels: int) -> list[Sequence[Rung]]:
    """The rungs of a first layer that takes so many pixels side by side, and those of the layer behind where that does,
    too; none where it cannot."""
    return []


@singledispatch
def layer_multiplications(layer: Stage, count: int = 1, plan: Plan | None = None) -> int:
    """Real multiplications of one step or image: block products, activations, gates.

    Parameters:
        count: pixels of an image, for a layer that takes each by itself.
        plan: of the layer; tiles take fewer.
    """
    raise without_hardware(layer)


@singledispatch
def layer_entry(layer: Stage, plan: Plan) -> LayerEntry:
    """The entry of a layer in the manifest: its plan, a step's cycles and their limit, and when each unit works."""
    raise without_hardware(layer)


class Priced(Protocol):
    """A plan, or an estimate of one: its multipliers, and the cycles of a step."""

    @property
    def multipliers(self) -> int: ...

    @property
    def cycles(self) -> float: ...


C = TypeVar("C", bound=Priced)


def useful(plans: Sequence[C]) -> list[C]:
    """The useful plans, from the smallest to the fastest: each is faster than all that are smaller."""
    found: list[C] = []
    for candidate in sorted(plans, key=lambda c: (c.multipliers, c.cycles)):
        if not found or candidate.cycles < found[-1].cycles:
            found.append(candidate)
    return found


def side_by_side_ladder(ladders: Sequence[Sequence[P]]) -> list[tuple[P, ...]]:
    """The rungs of layers at work at the same time: for each speed the smallest plans that all reach it."""
    speeds = sorted({each.cycles for ladder in ladders for each in ladder}, reverse=True)
    slowest = max(ladder[-1].cycles for ladder in ladders)
    return [tuple(next(each for each in ladder if each.cycles <= cycles) for ladder in ladders)
            for cycles in speeds if cycles >= slowest]
