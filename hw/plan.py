"""From a budget of multipliers to lanes: what each layer gets, and how many multiplications it has to do."""
from collections.abc import Iterator
from dataclasses import dataclass, replace

from circulant.hw.array.cost import step_timeline
from circulant.hw.array.program import ArrayShape
from circulant.hw.array.recurrent import bank_shape, recurrent_program
from circulant.sim.circulant import multiplications
from circulant.sim.gru import Gru
from circulant.sim.lstm import Lstm
from circulant.sim.network import Layer, Network
from circulant.sim.refusal import Refusal

__all__ = ["LayerPlan", "layer_multiplications", "plan"]

POINTWISE = 5
"""Multiplications per element of a GRU's state: three activations, the reset gate, the update gate."""


@dataclass(frozen=True)
class LayerPlan:
    """What a layer gets: ``lanes``, ``elements`` of the pointwise unit per cycle (0 without one), and for an array how
    many ``columns`` and ``chains`` it has.

    ``multipliers`` is what that takes, ``cycles`` what a step takes: for an array exactly, else an estimate without the
    pipeline's fill.
    """

    lanes: int
    elements: int
    multipliers: int
    cycles: int
    columns: int = 1
    chains: int = 1


def element_multiplications(layer: Gru | Lstm) -> int:
    """Multiplications per element of the state: activations, gates, peepholes."""
    if isinstance(layer, Lstm):
        return 8 if layer.peephole is None else 11
    return POINTWISE


def layer_multiplications(layer: Layer) -> int:
    """Real multiplications of one step: block products, activations, gates."""
    work = sum(product.multiplications for product in layer.products.values())
    return work + element_multiplications(layer) * layer.hidden if isinstance(layer, Gru | Lstm) else work


def plan(network: Network, multipliers: int) -> list[LayerPlan]:
    """For each layer the plan that makes the slowest layer as fast as ``multipliers`` in all allow.

    Starts with the smallest plan of each layer and enlarges that of the slowest one that can still grow.

    Raises:
        Refusal: when the budget is no positive number or too small for one lane per layer, or a layer has matrices of
            two block sizes; all such layers are named.
    """
    if isinstance(multipliers, bool) or not isinstance(multipliers, int) or multipliers < 1:
        raise Refusal(f"multipliers must be a positive integer, not {multipliers!r}; give the budget of the device")
    sizes = {layer.name: sorted({p.block_size for p in layer.products.values()}) for layer in network.layers}
    mixed = [f"{name} has {' and '.join(map(str, ks))}" for name, ks in sizes.items() if len(ks) > 1]
    if mixed:
        raise Refusal(f"All matrices of a hardware layer must share a block size, but {', '.join(mixed)}; compress "
                      "them with one")
    large = [f"{layer.name} has {product.block_size}" for layer in network.layers
             for product in layer.products.values() if product.block_size > 16]
    if large:
        raise Refusal(f"Hardware block sizes must be 1, 2, 4, 8 or 16, but {', '.join(large)}; compress with a smaller "
                      "one")
    ladders = [_array_ladder(layer, multipliers) if isinstance(layer, Lstm) else _ladder(layer)
               for layer in network.layers]
    chosen = [0] * len(ladders)
    least = sum(ladder[0].multipliers for ladder in ladders)
    if least > multipliers:
        raise Refusal(f"Network {network.name!r} needs at least {least} multipliers, one lane per layer, not "
                      f"{multipliers}; raise hardware.multipliers or choose a smaller block size")
    left = multipliers - least
    while True:
        for at in sorted(range(len(ladders)), key=lambda at: -ladders[at][chosen[at]].cycles):
            now, larger = ladders[at][chosen[at]], ladders[at][chosen[at] + 1:]
            if larger and larger[0].multipliers - now.multipliers <= left:
                left -= larger[0].multipliers - now.multipliers
                chosen[at] += 1
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
        issue = [issue_cycles(product.weights.shape[0], product.weights.shape[1], lanes) for product in products]
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
    """Cycles in which an engine starts the block products of a matrix: a group waits for the drain of the last one."""
    return -(-rows // lanes) * max(columns, lanes)


FINALISTS = 4
"""Arrays of each size whose exact cost is computed; the others have more block products to issue."""


def _array_ladder(layer: Lstm, multipliers: int) -> list[LayerPlan]:
    """As `_ladder`, for the arrays of an LSTM within the budget; at least the smallest of all."""
    sizes: dict[int, list[LayerPlan]] = {}
    for candidate in _array_candidates(layer):
        sizes.setdefault(candidate.multipliers, []).append(candidate)
    useful: list[LayerPlan] = []
    for size in sorted(sizes):
        if useful and size > multipliers:
            break
        finalists = sorted(sizes[size], key=lambda candidate: candidate.cycles)[:FINALISTS]
        if useful and finalists[0].cycles >= useful[-1].cycles:
            continue
        best = min((_timed(layer, candidate) for candidate in finalists), key=lambda candidate: candidate.cycles)
        if not useful or best.cycles < useful[-1].cycles:
            useful.append(best)
    return useful


def _array_candidates(layer: Lstm) -> Iterator[LayerPlan]:
    """Arrays and pointwise units, with the cycles that their slower one is busy: no step takes less."""
    matrices = [(layer.gates.rows, sum(part.columns for part in layer.gates.parts))]
    if layer.projection is not None:
        matrices.append((layer.projection.rows, layer.projection.columns))
    k = layer.gates.block_size
    shapes = [(rows // k, columns // k) for rows, columns in matrices]
    row_counts = {-(-rows // n) for rows, _ in shapes for n in range(1, rows + 1)}
    column_counts = {-(-columns // n) for _, columns in shapes for n in range(1, columns + 1)}
    for chains in (1, 2, 4):
        for rows in {-(-count // chains) * chains for count in row_counts}:
            for columns in column_counts:
                issue = sum(-(-p // rows) * max(-(-q // columns), rows // chains) for p, q in shapes)
                for elements in (2 ** n for n in range(k.bit_length())):
                    busy = max(issue, -(-layer.hidden // k) * k // elements)
                    used = rows * columns * multiplications(k) + element_multiplications(layer) * elements
                    yield LayerPlan(rows * columns, elements, used, busy, columns, chains)


def _timed(layer: Lstm, candidate: LayerPlan) -> LayerPlan:
    """The candidate with the exact cycles of a step."""
    shape = ArrayShape(candidate.lanes // candidate.columns, candidate.columns, candidate.chains)
    timeline = step_timeline(layer, recurrent_program(layer, shape), candidate.elements, bank_shape(layer, shape).needs)
    return replace(candidate, cycles=timeline.period)
