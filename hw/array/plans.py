"""Shares of layers: the plans of each kind, which `circulant.hw.plan` makes and units are built from."""
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol, cast

from circulant.hw.array.layer_programs import layer_program
from circulant.hw.array.program import ArrayShape, Program
from circulant.hw.array.shared.merged import placed
from circulant.sim.golden.gru import Gru
from circulant.sim.golden.layers import Layer
from circulant.sim.golden.linear import Linear
from circulant.sim.golden.lstm import Lstm
from circulant.sim.golden.rnn import Rnn

__all__ = ["ActivationPlan", "LayerPlan", "PairPlan", "Plan", "ResidualPlan", "ScalePlan", "Sharing", "Simple",
           "StreamPlan", "rebound"]

Simple = Linear | Gru | Lstm | Rnn
"""A layer with one array."""


class Plan(Protocol):
    """Plan of a layer of any kind."""

    @property
    def multipliers(self) -> int:
        """Multipliers that it takes."""

    @property
    def cycles(self) -> float:
        """Cycles of a step, a vector or an image."""

    @property
    def streams(self) -> int:
        """Sequences that are interleaved."""


@dataclass(frozen=True, eq=False)
class Sharing:
    """Layers that share an array.

    Parameters:
        shape: the array.
        spacings: of each layer, see `Program`.
        eager: whether products with a state may come before the sample. Not so in a reloadable design, which must stand
            still without one.
        in_turn: whether layers get the array in turn, see `circulant.hw.array.shared.shared_array.SharedArray`.
    """

    layers: tuple[Simple, ...]
    shape: ArrayShape
    spacings: tuple[tuple[int, int, int], ...]
    in_turn: bool = False
    eager: bool = True

    @property
    def limit(self) -> str:
        """The limit of these layers, in words."""
        return f"sharing: one array serves {len(self.layers)} layers in turn"

    @cached_property
    def programs(self) -> list[Program]:
        """The programs of the layers, each with its place in that of the array.

        Raises:
            Refusal: as `circulant.hw.array.shared.merged.Merged`.
        """
        return placed([layer_program(layer, self.shape, spacing, early=True)
                       for layer, spacing in zip(self.layers, self.spacings, strict=True)])


@dataclass(frozen=True)
class LayerPlan:
    """Array and multipliers of a layer with one array.

    Parameters:
        shape: its array.
        elements: of the pointwise unit per cycle; 0 without one.
        multipliers: what both take.
        cycles: from step to step, or from vector to vector, when the input is always there and the output taken: first
            an estimate, exact in what `plan` gives. Interleaved streams may take part of a cycle more on the average.
        spacing: of the passes' ends, see `Program`.
        streams: sequences that are interleaved.
        sharing: with other layers; the multipliers of the array then are those of the first of them.
    """

    shape: ArrayShape
    elements: int
    multipliers: int
    cycles: float
    spacing: tuple[int, int, int] = (1, 1, 1)
    streams: int = 1
    sharing: Sharing | None = None
    _programs: dict[int, tuple[Simple, Program]] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def lanes(self) -> int:
        return self.shape.lanes

    def program(self, layer: Simple) -> Program:
        """The program of a layer with this array, computed once."""
        if self.sharing is not None:
            return self.sharing.programs[[id(each) for each in self.sharing.layers].index(id(layer))]
        if id(layer) not in self._programs:
            self._programs[id(layer)] = layer, layer_program(layer, self.shape, self.spacing)
        return self._programs[id(layer)][1]

    def taking(self, cycles: float) -> "LayerPlan":
        """The same plan with other cycles; the programs stay."""
        found = replace(self, cycles=cycles)
        found._programs.update(self._programs)
        return found


def rebound(plans: Sequence[Plan], layers: Sequence[Layer]) -> list[Plan]:
    """The plans of other layers of the same structure: those of layers that share an array know them."""
    found: list[Plan] = []
    own: dict[Sharing, Sharing] = {}
    for n, plan in enumerate(plans):
        if isinstance(plan, LayerPlan) and plan.sharing is not None:
            if plan.sharing not in own:
                its = tuple(layers[n:n + len(plan.sharing.layers)])
                own[plan.sharing] = replace(plan.sharing, layers=cast("tuple[Simple, ...]", its))
            plan = replace(plan, sharing=own[plan.sharing])
        found.append(plan)
    return found


@dataclass(frozen=True)
class PairPlan:
    """Plans of the two directions of a bidirectional layer, which work at the same time.

    Parameters:
        blocks: of an output vector, that leave one after the other.
    """

    forward: LayerPlan
    backward: LayerPlan
    blocks: int

    @property
    def multipliers(self) -> int:
        return self.forward.multipliers + self.backward.multipliers

    @property
    def cycles(self) -> float:
        """From step to step, while sequences of one length follow each other."""
        return max(self.forward.cycles, self.backward.cycles, self.blocks)

    @property
    def streams(self) -> int:
        return 1


@dataclass(frozen=True)
class StreamPlan:
    """A layer without multipliers: the cycles of an image."""

    cycles: int
    multipliers: int = 0
    streams: int = 1


@dataclass(frozen=True)
class ScalePlan:
    """A scale: the channels that it takes in a cycle, each with a multiplier, and the cycles of an image."""

    elements: int
    cycles: int
    streams: int = 1

    @property
    def multipliers(self) -> int:
        return self.elements


@dataclass(frozen=True)
class ActivationPlan:
    """A function of each value: the values that it takes in a cycle, the cycles of an image or vector, multipliers."""

    elements: int
    cycles: int
    multipliers: int
    streams: int = 1


@dataclass(frozen=True)
class ResidualPlan:
    """Plans of the layers of two branches, which work at the same time."""

    body: tuple[Plan, ...]
    shortcut: tuple[Plan, ...]
    streams: int = 1

    @property
    def multipliers(self) -> int:
        return sum(each.multipliers for each in (*self.body, *self.shortcut))

    @property
    def cycles(self) -> float:
        return max((each.cycles for each in (*self.body, *self.shortcut)), default=0)
