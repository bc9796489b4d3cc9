"""Shares of layers: the plans of each kind, which `circulant.hw.plan` makes and units are built from."""
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol, cast

from circulant.hw.array.layer_programs import layer_program
from circulant.hw.array.parts import Parts
from circulant.hw.array.program import ArrayShape, Program
from circulant.hw.array.schedules.either_first import EitherFirst
from circulant.hw.array.schedules.input_first import InputFirst
from circulant.hw.array.schedules.merged import placed
from circulant.hw.stream.pipeline import LEVELS
from circulant.sim.golden.stages import Stage, Stages
from circulant.sim.kinds.cell import RecurrentLayer
from circulant.sim.kinds.linear import Linear
from circulant.sim.refusal import Refusal, nearest
from circulant.sim.shape.kinds import leaves

__all__ = ["PORTS", "LayerPlan", "PairPlan", "Plan", "ResidualPlan", "Sharing", "Simple", "StreamPlan", "ValuesPlan",
           "rebound", "require_packing", "require_pairs", "sharings", "simple", "streams_of",
           "wanted", "with_ports", "with_protection"]

PORTS = {"27x18": (27, 18), "25x18": (25, 18)}
"""Bits of the factors of a DSP block that may make two products, by the words of ``hardware.dsp_packing``: of a DSP48E2
(UltraScale), of a DSP48E1 (7 series)."""

Simple = Linear | RecurrentLayer
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
        in_turn: whether layers get the array in turn, see `circulant.hw.array.shared_array.SharedArray`.
        streams: sequences that are interleaved. Several of them need `InputFirst`: other streams fill the wait for a
            state, so that products with it need not come before the sample.
        pairs: numbers of the layers that are the forward direction of a bidirectional one; the backward one is behind.
        schedule: of the programs, or of those that it suits, see `circulant.hw.array.layer_programs.schedule_of`.
        own: the program of the one layer, which has the array to itself.
        apart: whether other stages may lie between the layers, so that they are no chain.
    """

    layers: tuple[Simple, ...]
    shape: ArrayShape
    spacings: tuple[tuple[int, int, int], ...]
    in_turn: bool = False
    streams: int = 1
    pairs: tuple[int, ...] = ()
    schedule: type[Program] = EitherFirst
    own: Program | None = None
    apart: bool = False

    def __post_init__(self) -> None:
        if self.streams > 1 and self.schedule is not InputFirst and self.own is None:
            raise ValueError(f"Interleaved streams must have the schedule InputFirst, not {self.schedule.__name__}")

    @cached_property
    def programs(self) -> list[Program]:
        """The programs of the layers, each with its place in that of the array.

        Raises:
            Refusal: as `circulant.hw.array.schedules.merged.Merged`.
        """
        if self.own is not None:
            return [self.own]
        return placed([layer_program(layer, self.shape, spacing, self.schedule)
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
        schedule: of the program, unless the array is shared.
        sharing: with other layers; the multipliers of the array then are those of the first of them.
        repeats: of a shared array, the steps after which it repeats what it did before, and how many of them it then
            repeats again and again; None where the cycles are an estimate.
    """

    shape: ArrayShape
    elements: int
    multipliers: int
    cycles: float
    spacing: tuple[int, int, int] = (1, 1, 1)
    streams: int = 1
    schedule: type[Program] = InputFirst
    sharing: Sharing | None = None
    repeats: tuple[int, int] | None = None
    _programs: dict[int, tuple[Simple, Program]] = field(default_factory=dict, init=False, repr=False, compare=False)
    results: dict[tuple[int, ...], list[int]] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Cycles in which results leave, by those in which an input comes, played once; from the last of these on."""

    @property
    def lanes(self) -> int:
        return self.shape.lanes

    @property
    def estimated(self) -> bool:
        """Whether the cycles are an estimate."""
        return self.sharing is not None and self.repeats is None

    def program(self, layer: Simple) -> Program:
        """The program of a layer with this array, computed once."""
        if self.sharing is not None:
            return self.sharing.programs[[id(each) for each in self.sharing.layers].index(id(layer))]
        if id(layer) not in self._programs:
            self._programs[id(layer)] = layer, layer_program(layer, self.shape, self.spacing,
                                                             self.schedule)
        return self._programs[id(layer)][1]

    def alone(self, layer: Simple) -> Sharing:
        """A layer that has this array to itself, to be played."""
        return Sharing((layer,), self.shape, (self.spacing,), streams=self.streams, own=self.program(layer))

    def taking(self, cycles: float) -> "LayerPlan":
        """The same plan with other cycles; the programs stay."""
        found = replace(self, cycles=cycles)
        found._programs.update(self._programs)
        found.results.update(self.results)
        return found


def rebound(plans: Sequence[Plan], layers: Sequence[Stage]) -> list[Plan]:
    """The plans of other layers of the same structure: those of layers that share an array know them."""
    leaf, own, at = list(leaves(layers)), dict[Sharing, Sharing](), 0
    for sharing in sharings(plans):
        its = tuple(leaf[at:at + len(sharing.layers)])
        own[sharing], at = replace(sharing, layers=cast("tuple[Simple, ...]", its)), at + len(its)

    def other(plan: LayerPlan) -> LayerPlan:
        return plan if plan.sharing is None else replace(plan, sharing=own[plan.sharing])

    return [other(plan) if isinstance(plan, LayerPlan)
            else replace(plan, forward=other(plan.forward), backward=other(plan.backward))
            if isinstance(plan, PairPlan) else plan for plan in plans]


def require_packing(packing: str, family: str) -> None:
    """
    Raises:
        Refusal: when there is no such DSP block, or not in the family.
    """
    words = ("none", *PORTS)
    if packing not in words:
        raise Refusal(f"dsp_packing must be one of {', '.join(words)}, not {packing!r}{nearest(packing, words)}")
    if packing != "none" and family not in ("generic", "xilinx"):
        raise Refusal(f"hardware.dsp_packing = {packing!r} needs DSP blocks with such ports, but those of family "
                      f"{family!r} have others; set it to 'none', or hardware.family to 'xilinx'")


def require_pairs(parts: Parts, packing: str, name: str) -> None:
    """
    Parameters:
        parts: of a design whose products may share DSP blocks, unless the packing is "none".
        name: of the network.

    Raises:
        Refusal: when no layer has two products that fit a block.
    """
    if packing != "none" and not parts.pairs:
        raise Refusal(f"hardware.dsp_packing = {packing!r} needs a recurrent or fully connected layer with two "
                      f"products that fit a DSP block, but network {name!r} has none; take fewer bits of weights or "
                      "spectra, or set it to 'none'")


def with_ports(plans: Sequence[Plan], packing: str) -> list[Plan]:
    """The plans with arrays that make two products in a DSP block where its ports allow it; cycles are the same.

    Parameters:
        packing: in `PORTS`; "none" leaves the plans as they are.
    """
    if packing == "none":
        return list(plans)
    ports = PORTS[packing]
    own = {each: replace(each, shape=replace(each.shape, ports=ports)) for each in sharings(plans)}

    def other(plan: LayerPlan) -> LayerPlan:
        return replace(plan, shape=replace(plan.shape, ports=ports), sharing=plan.sharing and own[plan.sharing])

    return [other(plan) if isinstance(plan, LayerPlan)
            else replace(plan, forward=other(plan.forward), backward=other(plan.backward))
            if isinstance(plan, PairPlan) else plan for plan in plans]


def with_protection(plans: Sequence[Plan], protection: str) -> list[Plan]:
    """The plans with arrays whose memories of weights, biases and programs have check bits; cycles are the same.

    Parameters:
        protection: one of `circulant.sim.arith.codes.PROTECTIONS`; "none" leaves the plans as they are.
    """
    if protection == "none":
        return list(plans)
    own = {each: replace(each, shape=replace(each.shape, protection=protection)) for each in sharings(plans)}

    def other(plan: Any) -> Any:
        if isinstance(plan, PairPlan):
            return replace(plan, forward=other(plan.forward), backward=other(plan.backward))
        if isinstance(plan, ResidualPlan):
            return replace(plan, body=tuple(map(other, plan.body)), shortcut=tuple(map(other, plan.shortcut)))
        if not hasattr(plan, "shape"):
            return plan
        shape = replace(plan.shape, protection=protection)
        return replace(plan, shape=shape, **({"sharing": own[plan.sharing]} if getattr(plan, "sharing", None) else {}))

    return list(map(other, plans))


def wanted(stages: Stages, at: int, plans: Sequence[Plan]) -> int:
    """Values of a beat that the one layer behind a stage takes, if it multiplies a matrix with them; else 1."""
    readers = stages.readers(at)
    product = getattr(stages.each[readers[0]], "product", None) if len(readers) == 1 else None
    if product is None:
        return 1
    plan = plans[readers[0]]
    return int(product.block_size) * (plan.shape.takes if isinstance(plan, LayerPlan) else 1)


def streams_of(plans: Sequence[Plan]) -> int:
    """Sequences that a network interleaves: those of its recurrent layers, as others know of none."""
    return max(plan.streams for plan in plans)


def sharings(plans: Sequence[Plan]) -> list[Sharing]:
    """The arrays that layers share, in the order of the network."""
    return list(dict.fromkeys(each.sharing for plan in plans for each in simple(plan) if each.sharing is not None))


def simple(plan: Plan) -> list[LayerPlan]:
    """The plans of layers with one array that a plan is made of, those of residual branches apart."""
    return [each for each in ((plan.forward, plan.backward) if isinstance(plan, PairPlan) else (plan,))
            if isinstance(each, LayerPlan)]


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
class ValuesPlan:
    """A layer that takes some values in a cycle: how many, the cycles of an image or vector, multipliers, and levels of
    logic between two registers."""

    elements: int
    cycles: int
    multipliers: int
    streams: int = 1
    levels: int = LEVELS


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
