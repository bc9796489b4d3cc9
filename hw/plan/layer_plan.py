"""The array and the pointwise unit of a layer: which there can be, and how many cycles each takes."""
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial, singledispatch
from math import lcm

from circulant.hw.array.lanes import rows_for
from circulant.hw.array.layer_programs import IN_TURN, matrices_of, spacings
from circulant.hw.array.matrix import resets_after
from circulant.hw.array.plans import LayerPlan, PairPlan, Sharing, Simple
from circulant.hw.array.program import ArrayShape, Matrix
from circulant.hw.array.schedules.input_first import InputFirst
from circulant.hw.components.cell import cells_of
from circulant.hw.emit.target import PORT_BITS
from circulant.hw.plan.ladders import Ladder, folds, ladder, layer_multiplications, useful
from circulant.hw.plan.latency import leaving
from circulant.hw.plan.shared.cost import arriving_results, period, sample_results
from circulant.hw.plan.shared.schedule import schedule
from circulant.hw.stream.pipeline import LEVELS
from circulant.sim import figures
from circulant.sim.design import LayerEntry
from circulant.sim.kinds.linear import Linear
from circulant.sim.passes.layer import GoldenLayer
from circulant.sim.shape.kinds import unknown

__all__ = ["LayerPlan", "PairPlan", "Simple", "array_entry", "array_shapes", "candidates",
           "element_multiplications", "estimate", "exact", "issue_cycles", "narrow", "units",
           "wide_shapes", "widest", "with_array"]

CHAINS = (1, 2, 4, 8)
WIDE = (*CHAINS, 16)
"""The same where a layer with a state may give several blocks at once."""

LADDERS = 16
"""Layers whose ladders are kept, as a network is planned again and again: with other budgets, waits, beats."""

FINALISTS = 10
"""Arrays whose exact cost is computed, those with the best estimates."""


def element_multiplications(layer: GoldenLayer) -> int:
    """Multiplications per element of the state: activations, gates, peepholes."""
    return sum(cell.multiplications(layer) for cell in cells_of(layer))


def candidates(layer: Simple, streams: int, levels: int = LEVELS, beats: int = 1) -> Iterator[LayerPlan]:
    """Arrays and pointwise units, with an estimate of their cycles.

    Parameters:
        beats: blocks that a layer with a state may give at once, at the most.
    """
    found = matrices_of(layer)
    k = found[0].product.block_size
    recurrent = bool(cells_of(layer))
    each = element_multiplications(layer)
    shapes = narrow(found, array_shapes(found, levels, chains=CHAINS if beats == 1 else WIDE))
    for shape in wide_shapes(layer, shapes, beats):
        if found[0].inputs % shape.gives:  # The recurrent vector begins behind the input.
            continue
        for elements in units(k, shape) if recurrent else (0,):
            yield LayerPlan(shape, elements, multipliers=shape.multipliers(k) + each * elements,
                            cycles=estimate(layer, found, shape, elements, streams),
                            spacing=(1, 1, 1) if recurrent else IN_TURN, streams=streams)


def units(k: int, shape: ArrayShape) -> Iterator[int]:
    """Elements of a pointwise unit: of several blocks side by side all of them."""
    yield from (2 ** n for n in range(k.bit_length())) if shape.gives == 1 else (k * shape.gives,)


def widest(layers: Sequence[Linear], shape: ArrayShape, most: int) -> ArrayShape:
    """The shape with as many blocks a beat as its columns and chains, and the vectors of layers without a state, allow:
    at the ``most`` so many; a dense layer takes what it can anyway."""
    rows, columns, k = (max(each.product.weights.shape[n] for each in layers) for n in range(3))
    takes, gives = (max(2 ** n for n in range(most.bit_length()) if 2 ** n <= most and 2 ** n < 2 * blocks
                        and not lanes % 2 ** n)
                    for blocks, lanes in ((columns, shape.columns), (rows, shape.chains)))
    return replace(shape, takes=takes if k > 1 else 1, gives=1 if shape.rows % shape.chains else gives)


def wide_shapes(layer: Simple, shapes: Iterable[ArrayShape], beats: int) -> Iterator[ArrayShape]:
    """Each shape, and behind it, of a layer with a state, those that give several blocks at once, at most ``beats``.

    They make up the vectors, all gates of them leave in one cycle, and each has a transform and a bank.
    """
    found = matrices_of(layer)
    own = [len(part.columns) for matrix in found for part in matrix.parts if part.column or part.vector]
    for shape in shapes:
        if shape.chains in CHAINS or shape.shared or not shape.chains % 3:
            yield shape
        gates = {4} if shape.shared else {3} if resets_after(found) and not shape.chains % 3 else {
            matrix.gates for matrix in found}
        beside = 2
        while beside <= beats and cells_of(layer) and not shape.rows % shape.chains:
            if not any(each % beside for each in (*own, shape.columns)) and not any(
                    shape.chains % (beside * each) for each in gates):
                yield replace(shape, gives=beside)
            beside *= 2


def array_shapes(found: Sequence[Matrix], levels: int, *, uneven: bool = False,
                 chains: Sequence[int] = CHAINS, takes: Sequence[int] = (1,)) -> Iterator[ArrayShape]:
    """Shapes of an array for matrices of one block size, none with a row or a column that no pass fills.

    Parameters:
        takes: of which the columns are made up to a multiple.
        uneven: whether rows need not be a multiple of the chains, as long as both are one of each matrix' gates.
    """
    rows = {-(-matrix.rows // n) for matrix in found for n in range(1, matrix.rows + 1)}
    columns = {-(-matrix.columns // (n * each)) * each for matrix in found for n in range(1, matrix.columns + 1)
               for each in takes}
    for each in chains:
        if any(len(matrix.kinds) % each and each % len(matrix.kinds) for matrix in found):
            continue
        counts = {-(-count // each) * each for count in rows}
        if uneven and not any(each % len(matrix.kinds) for matrix in found):
            gates = lcm(*(len(matrix.kinds) for matrix in found))
            counts |= {-(-count // gates) * gates for count in rows if count > each}
        for r in counts:
            for c in columns:
                for fold in folds(found[0].product.block_size, lanes=r * c):
                    yield ArrayShape(r, c, each, fold, levels)


def narrow(found: Sequence[Matrix], shapes: Iterable[ArrayShape]) -> Iterator[ArrayShape]:
    """The shapes of which no row has more bits than a module may have; one of a single column never has."""
    known: dict[tuple[int, int], int] = {}
    for shape in shapes:
        key = shape.columns, shape.fold
        if key not in known:
            known[key] = rows_for(found, shape, 1).port_bits
        if known[key] <= PORT_BITS:
            yield shape


def issue_cycles(found: Sequence[Matrix], shape: ArrayShape) -> int:
    """Cycles in which an array of a shape issues the block products of matrices once."""
    return sum(-(-matrix.rows // shape.rows) * max(-(-matrix.columns // shape.columns) * shape.fold, shape.slots)
               for matrix in found)


@singledispatch
def estimate(layer: Simple, found: list[Matrix], shape: ArrayShape, elements: int, streams: int) -> int:
    """Cycles of a step or a vector, at the least."""
    raise unknown(layer, "planned")


def exact(layer: Simple, plans: list[LayerPlan], budget: int) -> LayerPlan:
    """The fastest plan within the budget; of equals, the one with the fewest multipliers, chains and accumulators."""
    finalists = sorted((p for p in plans if p.multipliers <= budget),
                       key=lambda p: (p.cycles, p.multipliers, p.shape.chains, -p.shape.rows))[:FINALISTS]
    if not cells_of(layer):
        return _fastest(layer, finalists)
    least: tuple[tuple[float, ...], LayerPlan] | None = None
    for finalist in finalists:
        played: dict[Hashable, float] = {}
        for spacing in spacings(finalist.shape):
            found = replace(finalist, spacing=spacing)
            program = found.program(layer)
            rest = found.multipliers, found.shape.chains, program.slots
            if least is not None and (program.cycles * program.shape.fold, *rest) >= least[0]:
                continue  # It cannot be better.
            key = schedule(program)
            if key not in played:
                played[key], _, _ = period([found.alone(layer)], [found.elements])
            if least is None or (played[key], *rest) < least[0]:
                least = (played[key], *rest), found.taking(played[key])
    assert least is not None
    return least[1]


def _fastest(layer: Simple, finalists: list[LayerPlan]) -> LayerPlan:
    """The fastest of arrays for vectors, whose cycles are played: banks hold two vectors, and one that is done leaves
    its bank when its last block has passed the array. The estimate is a lower bound."""
    best: LayerPlan | None = None
    for each in finalists:
        if best is None or each.cycles < best.cycles:
            found = each.taking(period([each.alone(layer)], [each.elements])[0])
            best = found if best is None or found.cycles < best.cycles else best
    assert best is not None
    return best


def array_entry(layer: Simple, plan: LayerPlan, alone: Callable[[int], LayerEntry]) -> LayerEntry:
    """The entry of a layer with one array.

    Parameters:
        alone: from the floor in cycles to what limits a layer that shares its array with none.
    """
    multipliers = plan.multipliers
    if plan.sharing is not None:
        multipliers = plan.shape.multipliers(matrices_of(layer)[0].product.block_size)
        multipliers += element_multiplications(layer) * plan.elements
    shape, floor = plan.shape, figures.floor(layer_multiplications(layer), multipliers)
    entry: LayerEntry = {"name": layer.name, "kind": layer.kind, "rows": len(shape.lane_rows), "columns": shape.columns,
             "chains": shape.chains, "fold": shape.fold, "elements": plan.elements, "cycles": plan.cycles,
             "floor": floor}
    return entry | (alone(floor) if plan.sharing is None else {"limit": _shared_limit(plan, plan.sharing)})


def _shared_limit(plan: LayerPlan, sharing: Sharing) -> str:
    """The limit of layers that share an array, in words."""
    of = " for both directions" if sharing.pairs else ""
    estimate = f", and the cycles planned{of} are an estimate" if plan.estimated else ""
    served = f"{len(sharing.layers)} layers in turn" if len(sharing.layers) > 1 else "the layer"
    return f"sharing: one array serves {served}{estimate}"


def with_array(kind: type[object]) -> None:
    """Register the useful plans of a kind with one array, and the cycles in which its results leave."""
    @lru_cache(LADDERS)
    def climb(layer: Simple, streams: int, levels: int) -> Ladder:
        found = list(candidates(layer, streams, levels))
        settled = lru_cache(partial(exact, layer, found))
        return Ladder([(each,) for each in useful(found)], lambda rung, spare: settled(rung[0].multipliers + spare))

    def useful_ones(layer: Simple, *, streams: int, count: int, levels: int = LEVELS) -> Ladder:
        return climb(layer, streams, levels)

    def behind_input(layer: Simple, plan: LayerPlan, comes: list[int], k: int) -> list[int]:
        ahead = plan.schedule is not InputFirst
        key = (id(layer), *(come - comes[-1] for come in comes if ahead))
        if key not in plan.results:
            own = plan.alone(layer)
            plan.results[key] = arriving_results(own, plan.elements, key[1:]) if ahead else [
                *sample_results([own], [plan.elements])]
        return [comes[-1] + cycle for cycle in plan.results[key]]

    ladder.register(kind, useful_ones)
    leaving.register(kind, behind_input)
