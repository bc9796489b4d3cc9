"""The costs of many candidates at once: cycles, multipliers, DSP blocks, block RAMs and memory bits, as the planner has
them, exactly; look-up tables and flip-flops as estimates.

A candidate is a block size for each layer, bit widths, and a budget of multipliers. Its layers do not depend on each
other but for their shares of the budget. So the useful plans of each layer are listed once for each block size, shares
are found for all candidates together (`circulant.hw.plan.shares`), and what a layer's plan takes is looked up by plan
and widths, computed when it is asked for first.

All of it follows from shapes and widths but for one thing: the tables of activations are longer for wider ranges. They
count in memory bits as they are in the networks that the table was made from.
"""
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from circulant.hw.array.plans import Plan
from circulant.hw.foreseen import foreseen
from circulant.hw.plan.families import FAMILIES
from circulant.hw.plan.shares import FULL, shares
from circulant.hw.planner import Ladder, each_step, ladder, repeats, rung_cycles, rung_multipliers
from circulant.hw.resources import layer_parts
from circulant.hw.stream.pipeline import LEVELS
from circulant.sim.golden.network import Network
from circulant.sim.passes.bases import layer_bits
from circulant.sim.refusal import Refusal

__all__ = ["Candidates", "CostTable", "Costs"]

CHUNK = 1 << 15
"""Candidates that are worked on together."""

Ints = NDArray[np.int64]

@dataclass(frozen=True)
class Candidates:
    """Candidates, as arrays of one length.

    Parameters:
        block_size: of each layer by its name; layers that are not named have none.
    """

    block_size: Mapping[str, Ints]
    weight_bits: Ints
    activation_bits: Ints
    multipliers: Ints

    def __len__(self) -> int:
        return len(self.multipliers)


@dataclass(frozen=True)
class Costs:
    """Costs of candidates, as arrays of one length; where the budget is too small, ``legal`` is false and all are 0.

    Parameters:
        cycles: from step to step where there are steps, else from vector to vector.
        memory_bits: of all memories; ``weight_bits`` those of the weights alone.
        luts, flip_flops: estimates, see `circulant.hw.foreseen`.
    """

    legal: NDArray[np.bool_]
    cycles: NDArray[np.float64]
    multipliers: Ints
    dsps: Ints
    block_rams: NDArray[np.float64]
    memory_bits: Ints
    weight_bits: Ints
    luts: Ints
    flip_flops: Ints


class CostTable:
    """Costs of the candidates of one network on one family of FPGAs.

    Parameters:
        network_of: the network with this block size everywhere and these bits of weights and activations; its weights
            may be untrained, as costs follow from shapes.
        sizes: block sizes that candidates may have.
        family: in `FAMILIES`; its profile says where memories lie.

    Members:
        entries: costs of layers that were computed so far; the others are when they are asked for.

    Raises:
        Refusal: for a network over images, whose layers share pixels.
    """

    def __init__(self, network_of: Callable[[int, int, int], Network], sizes: Sequence[int], *, family: str,
                 levels: int = LEVELS, streams: int = 1, profile: str = "generic") -> None:
        self._network_of, self._sizes, self._levels = network_of, np.array(sorted(sizes)), levels
        self._family, self._profile = FAMILIES[family], profile
        self._networks: dict[tuple[int, int, int], Network] = {}
        first = self._network(int(self._sizes[0]), 12, 16)
        if first.flow.grid is not None:
            raise Refusal(f"Candidates of a network must take vectors or sequences to be costed together, but "
                          f"{first.name!r} takes images; plan each by itself")
        self._names = [layer.name for layer in first.layers]
        self._times, steps = np.array(repeats(first)), np.array(each_step(first))
        self._paced = steps if steps.any() else np.ones(len(steps), bool)
        self._ladders = [self._climbed(int(k), levels, streams) for k in self._sizes]
        most = max(len(each.rungs) for ladders in self._ladders for each in ladders)
        shape = len(self._sizes), len(self._names), most
        self._multipliers, self._cycles = np.full(shape, FULL), np.zeros(shape, np.int64)
        for s, ladders in enumerate(self._ladders):
            for at, each in enumerate(ladders):
                count = len(each.rungs)
                self._multipliers[s, at, :count] = [rung_multipliers(rung) for rung in each.rungs]
                self._cycles[s, at, :count] = [rung_cycles(rung) * self._times[at] for rung in each.rungs]
        self._plans: list[Plan] = []
        self._settled: dict[int, int] = {}
        self.entries: dict[tuple[int, ...], tuple[float, ...]] = {}

    def cost(self, given: Candidates) -> Costs:
        """The costs of candidates."""
        some = [self._some(given, slice(at, at + CHUNK)) for at in range(0, max(1, len(given)), CHUNK)]
        return Costs(*(np.concatenate([getattr(part, name) for part in some]) for name in Costs.__dataclass_fields__))

    def _some(self, given: Candidates, part: slice) -> Costs:
        sizes = np.stack([np.searchsorted(self._sizes, given.block_size[name][part]) if name in given.block_size
                          else np.zeros(len(given.multipliers[part]), np.int64) for name in self._names], axis=1)
        every = np.arange(len(self._names))
        ladders = sizes[:, :, None], every[None, :, None], np.arange(self._multipliers.shape[2])
        chosen, left = shares(self._multipliers[ladders], self._cycles[ladders], given.multipliers[part])
        legal = left >= 0
        chosen[~legal] = 0
        pace = self._cycles[sizes, every, chosen]
        spare = np.where((pace.argmax(axis=1)[:, None] == every) & legal[:, None], left[:, None], 0)
        found = np.zeros((8, len(legal)))
        for at in every:
            mine = self._taken(int(at), sizes[:, at], chosen[:, at], spare=spare[:, at],
                               weights=given.weight_bits[part], activations=given.activation_bits[part])
            found[0] = np.maximum(found[0], mine[0] * self._paced[at])
            found[1:] += mine[1:]
        found[:, ~legal] = 0
        multipliers, dsps, memory, weights, luts, flip_flops = found[[1, 2, 4, 5, 6, 7]].astype(np.int64)
        return Costs(legal, found[0], multipliers, dsps, block_rams=found[3], memory_bits=memory, weight_bits=weights,
                     luts=luts, flip_flops=flip_flops)

    def _taken(self, at: int, sizes: Ints, chosen: Ints, *, spare: Ints, weights: Ints, activations: Ints
               ) -> NDArray[np.float64]:
        """(8, N): the fields of `Costs` behind the first one, of a layer."""
        spare = np.minimum(spare, 0xFFFF)
        plans, which = np.unique(((sizes * 256 + chosen) << 16) | spare, return_inverse=True)
        numbers = np.array([self._plan(at, int(key)) for key in plans])[which]
        wanted, where = np.unique(((numbers * 64 + weights) * 64 + activations) * len(self._sizes) + sizes,
                                  return_inverse=True)
        table = np.array([self._entry(at, int(key)) for key in wanted]).T
        return table[:, where]

    def _plan(self, at: int, key: int) -> int:
        """The number of the plan of a layer: by block size, rung and spare multipliers."""
        known = key * len(self._names) + at
        if known not in self._settled:
            each = self._ladders[key >> 24][at]
            plan = each.settle(each.rungs[key >> 16 & 255], key & 0xFFFF)
            # Most spares settle on a plan that is there, whose resources are known.
            same = next((n for n, other in enumerate(self._plans) if other == plan), None)
            if same is None:
                self._plans.append(plan)
            self._settled[known] = len(self._plans) - 1 if same is None else same
        return self._settled[known]

    def _entry(self, at: int, key: int) -> tuple[float, ...]:
        known = at, key
        if known not in self.entries:
            key, size = divmod(key, len(self._sizes))
            key, activations = divmod(key, 64)
            number, weights = divmod(key, 64)
            layer = self._network(int(self._sizes[size]), weights, activations).layers[at]
            plan = self._plans[number]
            made = layer_parts(layer, plan)
            demand = self._family.demand(foreseen(made, 1, levels=self._levels, profile=self._profile))
            assert demand.luts is not None and demand.flip_flops is not None
            self.entries[known] = (plan.cycles * float(self._times[at]), plan.multipliers, demand.dsps,
                                   demand.block_rams, sum(memory.bits for memory in made.memories),
                                   layer_bits(layer), demand.luts.count, demand.flip_flops.count)
        return self.entries[known]

    def _network(self, k: int, weights: int, activations: int) -> Network:
        if (k, weights, activations) not in self._networks:
            self._networks[k, weights, activations] = self._network_of(k, weights, activations)
        return self._networks[k, weights, activations]

    def _climbed(self, k: int, levels: int, streams: int) -> list[Ladder]:
        network = self._network(k, 12, 16)
        return [ladder(layer, streams=streams, count=flow.pixels, levels=levels)
                for layer, flow in zip(network.stages, network.arrangement.come, strict=True)]
