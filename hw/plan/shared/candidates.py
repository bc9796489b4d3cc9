"""Arrays that layers can share, with estimates of their cost."""
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from circulant.hw.array.layer_programs import adjoins, matrices, mixes, splits
from circulant.hw.array.plans import Simple
from circulant.hw.array.program import ArrayShape, Matrix
from circulant.hw.layers.cells import cells_of
from circulant.hw.plan.layer_plan import array_shapes, element_multiplications, narrow
from circulant.hw.plan.shared.groups import Group
from circulant.hw.plan.step_cost import chain_latency
from circulant.sim.golden.stages import Stage

__all__ = ["NEARLY", "Candidate", "candidates", "finalists", "least_shared"]

FINALISTS = 5
"""Arrays whose exact cost is computed, those with the best estimates; and as many of those with nearly the best one."""

NEARLY = 1 / 12
"""Share by which an estimate may be above the best one for a second look."""


@dataclass(frozen=True)
class Candidate:
    """An array, the elements of each pointwise unit, its multipliers, and estimates of the cycles of a step and of its
    latency; for ``adjacent`` see `circulant.hw.array.plans.Sharing`."""

    shape: ArrayShape
    elements: int
    multipliers: int
    cycles: int
    latency: int
    adjacent: bool = False


def finalists(found: Sequence[Candidate], objective: str) -> list[Candidate]:
    """The candidates with the best estimates of what the objective asks for; and of those that are nearly as good, the
    best by the other figure."""
    def figures(each: Candidate) -> tuple[int, int, int]:
        pair = (each.latency, each.cycles) if objective == "latency" else (each.cycles, each.latency)
        return *pair, each.multipliers

    first = sorted(found, key=figures)
    most = figures(first[0])[0] * (1 + NEARLY)
    second = sorted((each for each in first if figures(each)[0] <= most), key=lambda each: figures(each)[1::-1])
    return [*first[:FINALISTS], *(each for each in second[:FINALISTS] if each not in first[:FINALISTS])]


def least_shared(groups: Sequence[Group], levels: int) -> int:
    """The fewest multipliers with which the layers of each group can share an array."""
    return sum(min(each.multipliers for each in candidates(group, levels)) for group in groups)


def candidates(group: Group, levels: int) -> Iterator[Candidate]:
    """Arrays and pointwise units, with estimates. Interleaved streams do not wait for their state."""
    layers, k = group.layers, group.k
    each = [matrices(layer) for layer in layers]
    element = sum(map(element_multiplications, layers))
    found = [matrix for some in each for matrix in some]
    shapes = array_shapes(found, levels, uneven=True)
    abreast = _abreast_shapes(layers, levels) if group.streams == 1 else ()
    split = _split_shapes(layers[0], levels) if group.streams == len(layers) == 1 else ()
    for shape, adjacent in _forms(narrow(found, (*shapes, *abreast, *split)), group):
        issues = [(_issues(layer, some, shape, late=False, adjacent=adjacent),
                   _issues(layer, some, shape, late=True, adjacent=adjacent))
                  for layer, some in zip(layers, each, strict=True)]
        for elements in (2 ** n for n in range(k.bit_length())):
            ways = [(chain_latency(layer, shape, elements), _busy(layer, k, elements)) for layer in layers]
            alone = max(busy if group.streams > 1 else way + max(late, busy)
                        for (way, busy), (_, late) in zip(ways, issues, strict=True))
            latency = sum(way + max(late, busy) for (way, busy), (_, late) in zip(ways, issues, strict=True))
            yield Candidate(shape, elements, shape.multipliers(k) + element * elements,
                            max(sum(whole for whole, _ in issues), alone), latency, adjacent=adjacent)


def _forms(shapes: Iterable[ArrayShape], group: Group) -> Iterator[tuple[ArrayShape, bool]]:
    """Each shape, and for a single layer once more where vectors that are adjacent save a group of columns; of several
    layers with them the period was not always measured as predicted, see docs/archive/engine.md."""
    alone = group.streams == len(group.layers) == 1
    for shape in shapes:
        if not shape.split:
            yield shape, False
        if alone and adjoins(group.layers[0], shape):
            yield shape, True


def _abreast_shapes(layers: Sequence[Simple], levels: int) -> Iterator[ArrayShape]:
    """Shapes in whose passes all gates of a GRU are side by side, see `circulant.hw.array.layer_programs.mixes`; none
    where another layer's gates do not fit them."""
    found = [matrices(layer) for layer in layers if mixes(layer, ArrayShape(3, 1, 3))]
    others = [matrix for layer in layers if not mixes(layer, ArrayShape(3, 1, 3)) for matrix in matrices(layer)]
    if not found or any(len(matrix.kinds) > 1 for matrix in others):
        return
    rows = {-(-each[0].rows // n) * 3 for each in found for n in range(1, each[0].rows + 1)}
    columns = {-(-matrix.columns // n) for each in found for matrix in (each[0], each[2])
               for n in range(1, matrix.columns + 1)}
    for chains in (3, 6):
        for r in (each for each in rows if each >= chains):
            for c in columns:
                yield ArrayShape(r, c, chains, levels=levels)


def _split_shapes(layer: Simple, levels: int) -> Iterator[ArrayShape]:
    """Shapes in which the candidate's shares of the input and of the state have the same lanes, see
    `circulant.hw.array.layer_programs.splits`."""
    gates = max(matrices(layer), key=lambda matrix: matrix.columns)
    for blocks in {-(-gates.blocks // n) for n in range(1, gates.blocks + 1)}:
        for columns in {-(-gates.columns // n) for n in range(1, gates.columns + 1)}:
            for chains in (4, 8)[:blocks]:
                if splits(layer, shape := ArrayShape(4 * blocks, columns, chains, levels=levels, split=True)):
                    yield shape


def _issues(layer: Simple, found: Sequence[Matrix], shape: ArrayShape, *, late: bool, adjacent: bool) -> int:
    """Cycles in which an array of a shape issues the block products of a layer once; those that are ``late`` wait for
    the input, or for what comes of it."""
    total = 0
    if shape.split:
        used = {j // shape.columns for part in found[1].parts[:1 if late else 2]
                for j in range(len(part.columns) if late else found[1].columns)}
        return -(-4 * found[0].rows // shape.rows) * max(len(used), shape.slots)
    if mixes(layer, shape):
        shares = [-(-matrix.columns // shape.columns) for matrix in (found[0], found[2])[:1 if late else 2]]
        return -(-3 * found[0].rows // shape.rows) * max(sum(shares), shape.slots * len(shares))
    for matrix in found:
        parts = [part for part in matrix.parts if not late or part.vector or not part.column]
        groups = sum(-(-len(part.columns) // shape.columns) for part in parts)
        if adjacent and not late and adjoins(layer, shape):
            groups = len({(part.vector, j // shape.columns) for part in parts for j in part.columns})
        total += -(-matrix.rows // shape.rows) * max(groups * shape.fold, shape.slots if groups else 0)
    return total


def _busy(layer: Stage, k: int, elements: int) -> int:
    """Cycles of the pointwise unit, or of rows that leave."""
    size = getattr(layer, "hidden", layer.outputs)
    return -(-size // k) * (k // elements if cells_of(layer) else 1)
