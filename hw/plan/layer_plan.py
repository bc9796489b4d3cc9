"""The array and the pointwise unit of a layer: which there can be, and how many cycles each takes."""
from collections.abc import Iterator
from dataclasses import dataclass, replace

from circulant.hw.array.layer_programs import IN_TURN, layer_program, matrices, spacings, vector_cycles
from circulant.hw.array.program import ArrayShape, Matrix, Program
from circulant.hw.layers.cells import cells_of
from circulant.hw.plan.cost import TURNS, chain_latency, step_timeline
from circulant.sim.arith.circulant import multiplications
from circulant.sim.golden.gru import Gru
from circulant.sim.golden.linear import Linear
from circulant.sim.golden.lstm import Lstm
from circulant.sim.golden.network import Layer
from circulant.sim.refusal import Refusal

__all__ = ["LayerPlan", "PairPlan", "Simple", "candidates", "element_multiplications", "exact", "simple"]

Simple = Linear | Gru | Lstm
"""A layer with one array."""

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
            an estimate, exact in what `plan` gives. Interleaved streams may take part of a cycle more on the average.
        spacing: of the passes' ends, see `Program`.
        streams: sequences that are interleaved.
    """

    shape: ArrayShape
    elements: int
    multipliers: int
    cycles: float
    spacing: tuple[int, int, int] = (1, 1, 1)
    streams: int = 1

    @property
    def lanes(self) -> int:
        return self.shape.lanes


@dataclass(frozen=True)
class PairPlan:
    """What the two directions of a bidirectional layer get, which work at the same time.

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


def element_multiplications(layer: Layer) -> int:
    """Multiplications per element of the state: activations, gates, peepholes."""
    return sum(cell.multiplications(layer) for cell in cells_of(layer)) if isinstance(layer, Gru | Lstm) else 0


def simple(layer: Layer) -> Simple:
    """The layer itself, which has one array.

    Raises:
        Refusal: when the hardware has no unit for it.
    """
    if not isinstance(layer, Linear | Gru | Lstm):
        raise Refusal(f"The hardware must have a unit for each layer, but has none for {layer.name!r}, a layer of the "
                      f"kind {layer.kind!r}; the golden model computes it")
    return layer


def candidates(layer: Simple, streams: int) -> Iterator[LayerPlan]:
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
                                        (1, 1, 1) if recurrent else IN_TURN, streams)


def _estimate(layer: Simple, found: list[Matrix], shape: ArrayShape, elements: int, streams: int) -> int:
    if not isinstance(layer, Gru | Lstm):
        return vector_cycles(layer, shape)
    issue = sum(-(-matrix.rows // shape.rows) * max(-(-matrix.columns // shape.columns) * shape.fold, shape.slots)
                for matrix in found)
    k = layer.gates.block_size
    busy = max(issue, -(-layer.hidden // k) * k // elements)
    if streams > 1:
        return busy
    ahead = sum(-(-matrix.rows // shape.rows) * ((layer.inputs // k) // shape.columns) * shape.fold
                for matrix in found if not matrix.stage)
    return max(busy, issue - ahead + chain_latency(layer, shape, elements))


def exact(layer: Simple, plans: list[LayerPlan], budget: int) -> LayerPlan:
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
    if best.streams == 1 or not isinstance(layer, Gru | Lstm):
        return best
    return replace(best, cycles=_period(layer, layer_program(layer, best.shape, best.spacing), best, TURNS))


def _period(layer: Gru | Lstm, program: Program, candidate: LayerPlan, turns: int = 1) -> float:
    return step_timeline(layer, program, candidate.elements, streams=candidate.streams, turns=turns).period
