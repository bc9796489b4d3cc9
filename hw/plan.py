"""From a budget of multipliers to lanes: what each layer gets, and how many multiplications it has to do."""
from collections.abc import Iterator
from dataclasses import dataclass

from circulant.sim.circulant import multiplications
from circulant.sim.gru import Gru
from circulant.sim.network import Layer, Network
from circulant.sim.refusal import Refusal

__all__ = ["LayerPlan", "layer_multiplications", "plan"]

POINTWISE = 5
"""Multiplications per element of a GRU's state: three activations, the reset gate, the update gate."""


@dataclass(frozen=True)
class LayerPlan:
    """What a layer gets: ``lanes`` of the engine, ``elements`` of the pointwise unit per cycle (0 without one).

    ``multipliers`` is what that takes, ``cycles`` an estimate for a vector, without the pipeline's fill.
    """

    lanes: int
    elements: int
    multipliers: int
    cycles: int


def layer_multiplications(layer: Layer) -> int:
    """Real multiplications of one step: block products, activations, gates."""
    work = sum(product.multiplications for product in layer.products.values())
    return work + POINTWISE * layer.hidden if isinstance(layer, Gru) else work


def plan(network: Network, multipliers: int) -> list[LayerPlan]:
    """For each layer the plan that makes the slowest layer as fast as ``multipliers`` in all allow.

    Starts with the smallest plan of each layer and enlarges that of the slowest one that can still grow.

    Raises:
        Refusal: when the budget is no positive number or too small for one lane per layer, or a layer has matrices of
            two block sizes; all such layers are named.
    """
    if isinstance(multipliers, bool) or not isinstance(multipliers, int) or multipliers < 1:
        raise Refusal(f"multipliers must be a positive integer, not {multipliers!r}; give the budget of the device")
    mixed = [layer for layer in network.layers if isinstance(layer, Gru)
             and layer.input_product.block_size != layer.recurrent_product.block_size]
    if mixed:
        sizes = ", ".join(f"{layer.name} has {layer.input_product.block_size} and {layer.recurrent_product.block_size}"
                          for layer in mixed)
        raise Refusal(f"The input and the recurrent matrix of a hardware GRU must share a block size, but {sizes}; "
                      "compress both with one")
    large = [f"{layer.name} has {product.block_size}" for layer in network.layers
             for product in layer.products.values() if product.block_size > 16]
    if large:
        raise Refusal(f"Hardware block sizes must be 1, 2, 4, 8 or 16, but {', '.join(large)}; compress with a smaller one")
    ladders = [_ladder(layer) for layer in network.layers]
    chosen = [0] * len(ladders)
    least = sum(ladder[0].multipliers for ladder in ladders)
    if least > multipliers:
        raise Refusal(f"Network {network.name!r} needs at least {least} multipliers, one lane per layer, not {multipliers}; "
                      "raise hardware.multipliers or choose a smaller block size")
    left = multipliers - least
    while True:
        for at in sorted(range(len(ladders)), key=lambda at: -ladders[at][chosen[at]].cycles):
            now = ladders[at][chosen[at]]
            better = [n for n in range(chosen[at] + 1, len(ladders[at])) if ladders[at][n].multipliers - now.multipliers <= left]
            if better:
                left -= ladders[at][better[0]].multipliers - now.multipliers
                chosen[at] = better[0]
                break
        else:
            return [ladder[at] for ladder, at in zip(ladders, chosen, strict=True)]


def _ladder(layer: Layer) -> list[LayerPlan]:
    """The useful plans of a layer, from the smallest to the fastest: each is faster than all that are smaller."""
    useful: list[LayerPlan] = []
    for candidate in sorted(_candidates(layer), key=lambda c: (c.multipliers, c.cycles)):
        if not useful or candidate.cycles < useful[-1].cycles:
            useful.append(candidate)
    return useful


def _candidates(layer: Layer) -> Iterator[LayerPlan]:
    products = list(layer.products.values())
    k = products[0].block_size
    blocks = max(product.weights.shape[0] for product in products)
    for lanes in sorted({-(-blocks // groups) for groups in range(1, blocks + 1)}):
        issue = [issue_cycles(*product.weights.shape[:2], lanes) for product in products]
        if not isinstance(layer, Gru):
            yield LayerPlan(lanes, 0, lanes * multiplications(k), sum(issue))
            continue
        elements = 1
        while elements <= k:
            # The input's product runs while the recurrent one drains; the pointwise unit follows the recurrent rows.
            cycles = max(issue[1], layer.recurrent_product.weights.shape[1] * k // elements)
            yield LayerPlan(lanes, elements, lanes * multiplications(k) + POINTWISE * elements, max(cycles, sum(issue)))
            elements *= 2


def issue_cycles(rows: int, columns: int, lanes: int) -> int:
    """Cycles in which an engine starts the block products of one matrix: a group of rows waits for the drain of the last."""
    return -(-rows // lanes) * max(columns, lanes)
