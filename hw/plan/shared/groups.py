"""Which layers of a network can share arrays: groups of those that follow each other and are of one kind of blocks."""
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import cast

from circulant.hw.array.layer_programs import matrices_of
from circulant.hw.array.plans import LayerPlan, PairPlan, Plan, Simple
from circulant.sim.golden.network import Network
from circulant.sim.golden.stages import Stage
from circulant.sim.refusal import Refusal
from circulant.sim.shape.kinds import leaves, within

__all__ = ["STEPS", "Group", "block_size", "paired", "shareable"]

STEPS = 128
"""Steps of a sequence at the most, where nobody says."""


@dataclass(frozen=True)
class Group:
    """Layers that can share an array; for ``pairs`` and ``streams`` see `circulant.hw.array.plans.Sharing`.

    Parameters:
        steps: of a sequence at the most, where layers have both directions.
    """

    layers: tuple[Simple, ...]
    pairs: tuple[int, ...] = ()
    streams: int = 1
    steps: int = STEPS

    @property
    def k(self) -> int:
        """Block size."""
        return block_size(self.layers[0])


def shareable(network: Network, streams: int, steps: int = STEPS) -> tuple[Group, ...]:
    """The layers of a network that can share arrays: groups of those that follow each other and have one block size and
    one number of twiddle bits; the two directions of a bidirectional one follow each other, too.

    Raises:
        Refusal: when there are others, or they cannot.
    """
    why = "hardware.objective must be 'throughput' or 'auto' where layers cannot share an array, but"
    if network.many:
        raise Refusal(f"{why} network {network.name!r} has {len(network.inputs)} inputs and {len(network.outputs)} "
                      "outputs")
    for layer in network.stages:
        if layer.kind == "bidirectional":
            for what, sizes in (("block sizes", map(block_size, within(layer))),
                                ("numbers of twiddle bits", map(_twiddle_bits, within(layer)))):
                if len(set(sizes)) > 1:
                    raise Refusal(f"{why} the directions of layer {layer.name!r} have two {what}")
    alone = [layer for layer in leaves(network.stages) if layer.kind != "argmax"]
    for layer in [*(layer for layer in network.stages if layer.kind == "residual"), *alone]:
        if layer.kind not in ("linear", "gru", "lstm", "rnn"):
            raise Refusal(f"{why} layer {layer.name!r} is of the kind {layer.kind!r}, neither recurrent nor fully "
                          "connected")
    simple = cast("list[Simple]", alone)
    for layer in simple:
        if len({matrix.product.twiddle_bits for matrix in matrices_of(layer)}) > 1:
            raise Refusal(f"{why} the matrices of layer {layer.name!r} have different numbers of twiddle bits")
    forward = {id(within(layer)[0]) for layer in network.stages if layer.kind == "bidirectional"}
    found = [tuple(group) for _, group in groupby(simple, lambda layer: (block_size(layer), _twiddle_bits(layer)))]
    return tuple(Group(group, tuple(n for n, layer in enumerate(group) if id(layer) in forward), streams, steps)
                 for group in found)


def block_size(layer: Simple) -> int:
    """The block size of a layer with one array."""
    return matrices_of(layer)[0].product.block_size


def _twiddle_bits(layer: Simple) -> int:
    return matrices_of(layer)[0].product.twiddle_bits


def paired(layers: Sequence[Stage], plans: Sequence[LayerPlan]) -> list[Plan]:
    """The plans of layers from those of the ones that they are made of; there may be more layers than plans."""
    left, found = list(plans), list[Plan]()
    for layer in layers:
        if left and layer.kind == "bidirectional":
            forward, backward = left.pop(0), left.pop(0)
            found.append(PairPlan(forward, backward, -(-layer.outputs // block_size(within(layer)[0]))))
        elif left:
            found.append(left.pop(0))
    return found
