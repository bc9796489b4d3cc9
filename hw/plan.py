"""From a budget of multipliers to arrays: what each layer gets, and how many multiplications it has to do."""
from collections.abc import Iterator
from dataclasses import dataclass, replace

from circulant.hw.array.program import ArrayShape, Matrix, Program
from circulant.hw.cells import cells_of
from circulant.hw.cost import chain_latency, step_timeline
from circulant.hw.programs import layer_program, matrices, spacings
from circulant.sim.bidirectional import Bidirectional
from circulant.sim.circulant import multiplications
from circulant.sim.gru import Gru
from circulant.sim.linear import Linear
from circulant.sim.lstm import Lstm
from circulant.sim.network import Layer, Network
from circulant.sim.refusal import Refusal

__all__ = ["LayerPlan", "layer_multiplications", "plan"]

CHAINS = (1, 2, 4, 8)

FINALISTS = 10
"""Arrays whose exact cost is computed, those with the best estimates."""


@dataclass(frozen=True)
class LayerPlan:
    """What a layer gets.

    Parameters:
        shape: its array.
        elements: of the pointwise unit per cycle; 0 without one.
        multipliers: what both take.
        cycles: from step to step, or from vector to vector, when the input is always there and the output taken: first
            an estimate, exact in what `plan` gives.
        spacing: of the passes' ends, see `Program`.
        streams: sequences that are interleaved.
    """

    shape: ArrayShape
    elements: int
    multipliers: int
    cycles: int
    spacing: tuple[int, int, int] = (1, 1, 1)
    streams: int = 1

    @property
    def lanes(self) -> int:
        return self.shape.lanes


def element_multiplications(layer: Layer) -> int:
    """Multiplications per element of the state: activations, gates, peepholes."""
    return sum(cell.multiplications(layer) for cell in cells_of(layer)) if isinstance(layer, Gru | Lstm) else 0


def layer_multiplications(layer: Layer) -> int:
    """Real multiplications of one step: block products, activations, gates."""
    work = sum(product.multiplications for product in layer.products.values())
    return work + element_multiplications(layer) * layer.hidden if isinstance(layer, Gru | Lstm) else work


def plan(network: Network, multipliers: int, *, streams: int = 1) -> list[LayerPlan]:
    """For each layer the plan that makes the slowest layer as fast as ``multipliers`` in all allow.

    Starts with the smallest plan of each layer and enlarges that of the slowest one that can still grow.

    Parameters:
        streams: independent sequences that a recurrent layer interleaves; with 1 a step takes the least time, with 3
            every step of an LSTM overlaps with those of others.

    Raises:
        Refusal: when a number is not positive, the budget is too small for one lane per layer, or a layer has no
            hardware.
    """
    for name, value, why in (("multipliers", multipliers, "give the budget of the device"),
                             ("streams", streams, "give 1 for the least latency")):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise Refusal(f"{name} must be a positive integer, not {value!r}; {why}")
    both = [layer.name for layer in network.layers if isinstance(layer, Bidirectional)]
    if both:
        raise Refusal(f"Hardware layers must have one direction, but {', '.join(both)} have two; train with "
                      "bidirectional = false")
    layers = [layer for layer in network.layers if not isinstance(layer, Bidirectional)]
    candidates = [list(_candidates(layer, streams)) for layer in layers]
    ladders = [_ladder(plans) for plans in candidates]
    chosen = [0] * len(ladders)
    least = sum(ladder[0].multipliers for ladder in ladders)
    if least > multipliers:
        raise Refusal(f"Network {network.name!r} needs at least {least} multipliers, the smallest lane per layer, not "
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
            break
    budgets = [ladder[at].multipliers for ladder, at in zip(ladders, chosen, strict=True)]
    slowest = max(range(len(ladders)), key=lambda at: ladders[at][chosen[at]].cycles)
    budgets[slowest] += left
    return [_exact(layer, plans, budget)
            for layer, plans, budget in zip(layers, candidates, budgets, strict=True)]


def _ladder(plans: list[LayerPlan]) -> list[LayerPlan]:
    """The useful plans of a layer, from the smallest to the fastest: each is faster than all that are smaller."""
    useful: list[LayerPlan] = []
    for candidate in sorted(plans, key=lambda c: (c.multipliers, c.cycles)):
        if not useful or candidate.cycles < useful[-1].cycles:
            useful.append(candidate)
    return useful


def _candidates(layer: Linear | Gru | Lstm, streams: int) -> Iterator[LayerPlan]:
    """Arrays and pointwise units, with an estimate of their cycles."""
    found = matrices(layer)
    k = found[0].product.block_size
    rows = {-(-matrix.rows // n) for matrix in found for n in range(1, matrix.rows + 1)}
    columns = {-(-matrix.columns // n) for matrix in found for n in range(1, matrix.columns + 1)}
    recurrent = isinstance(layer, Gru | Lstm)
    each = element_multiplications(layer)
    folds = [n for n in (2, 3, 4, 6, 8, 12, 16, 24, 48) if n < 2 * multiplications(k)]
    for chains in CHAINS:
        if any(len(matrix.kinds) % chains and chains % len(matrix.kinds) for matrix in found):
            continue
        for r in {-(-count // chains) * chains for count in rows}:
            for c in columns:
                for fold in (1, *folds) if r * c == 1 else (1,):
                    shape = ArrayShape(r, c, chains, fold)
                    for elements in (2 ** n for n in range(k.bit_length())) if recurrent else (0,):
                        used = shape.multipliers(k) + each * elements
                        yield LayerPlan(shape, elements, used, _estimate(layer, found, shape, elements, streams),
                                        streams=streams)


def _estimate(layer: Layer, found: list[Matrix], shape: ArrayShape, elements: int, streams: int) -> int:
    issue = sum(-(-matrix.rows // shape.rows) * max(-(-matrix.columns // shape.columns) * shape.fold, shape.slots)
                for matrix in found)
    if not isinstance(layer, Gru | Lstm):
        return issue
    k = layer.gates.block_size
    busy = max(issue, -(-layer.hidden // k) * k // elements)
    if streams > 1:
        return busy
    ahead = sum(-(-matrix.rows // shape.rows) * ((layer.inputs // k) // shape.columns) * shape.fold
                for matrix in found if not matrix.stage)
    return max(busy, issue - ahead + chain_latency(layer, shape, elements))


def _exact(layer: Layer, plans: list[LayerPlan], budget: int) -> LayerPlan:
    """The fastest plan within the budget; of equals, the one with the fewest multipliers, chains and accumulators."""
    finalists = sorted((p for p in plans if p.multipliers <= budget),
                       key=lambda p: (p.cycles, p.multipliers, p.shape.chains, -p.shape.rows))[:FINALISTS]
    timed = []
    for candidate in finalists:
        if not isinstance(layer, Gru | Lstm):
            timed.append((candidate, 1))
            continue
        for spacing in spacings(candidate.shape):
            program = layer_program(layer, candidate.shape, spacing)
            timed.append((replace(candidate, spacing=spacing, cycles=_period(layer, program, candidate)),
                          program.slots))
    best, _ = min(timed, key=lambda entry: (entry[0].cycles, entry[0].multipliers, entry[0].shape.chains, entry[1]))
    return best


def _period(layer: Gru | Lstm, program: Program, candidate: LayerPlan) -> int:
    return step_timeline(layer, program, candidate.elements, streams=candidate.streams).period
