"""Bounds of the cycles of a step, from sizes and latencies alone, and which of them limits it; the cycles themselves
are played, see `circulant.hw.plan.shared.cost`."""
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from circulant.hw.array import row_buffers
from circulant.hw.array.bank_shape import write_latency
from circulant.hw.array.lanes import array_latency
from circulant.hw.array.layer_programs import matrices_of
from circulant.hw.array.plans import Simple
from circulant.hw.array.program import ArrayShape, Matrix, Program
from circulant.hw.components.cell import cells_of
from circulant.hw.components.pointwise import pointwise_latency
from circulant.sim.kinds.gru import Gru
from circulant.sim.kinds.lstm import Lstm
from circulant.sim.kinds.rnn import Rnn

__all__ = ["Stage", "chain_latency", "limit", "stages", "vector_limit"]

@dataclass(frozen=True)
class Stage:
    """The taker of a stage's rows: a block every ``phases`` cycles at the most, ``latency`` cycles to its result."""

    phases: int
    latency: int


def stages(layer: Simple, elements: int, shape: ArrayShape) -> list[Stage]:
    """The pointwise units of a layer, or behind the first one the rows of its projection; the rows of a layer without a
    state."""
    cells = cells_of(layer)
    if not cells:
        return [Stage(1, row_buffers.FETCH)]
    recurrent = cast("Gru | Lstm | Rnn", layer)
    found = [Stage(shape.gives * recurrent.gates.block_size // elements,
                   pointwise_latency(cell, recurrent, elements, shape.levels, shape.gives)) for cell in cells]
    return [*found, Stage(1, row_buffers.FETCH)] if getattr(layer, "projection", None) is not None else found


def chain_latency(layer: Simple, shape: ArrayShape, elements: int) -> int:
    """Cycles from the last issue of a step to what the next one can read, at the least."""
    k = matrices_of(layer)[0].product.block_size
    return sum(array_latency(k, shape) + row_buffers.rows_latency(shape.levels) + stage.latency
               + write_latency(k, shape.levels) for stage in stages(layer, elements, shape))


def array_limit(matrices: Sequence[Matrix], shape: ArrayShape, issues: int, above: bool) -> str:
    """The limit of an array that has an issue in every cycle, in words.

    Parameters:
        issues: of a step; each has room for a block product of every lane.
        above: whether the layer takes more cycles than its multipliers would need for its multiplications.
    """
    if not above:
        return "multipliers: the array works in every cycle"
    used = sum(matrix.rows * matrix.columns for matrix in matrices) / (issues * shape.rows * shape.columns)
    if used < 1:
        return f"multipliers: the array has work in every cycle, in {used:.0%} of its lanes: passes are not full"
    return "multipliers: the array works in every cycle, the multipliers of transforms and activations do not"


def limit(layer: Gru | Lstm | Rnn, program: Program, elements: int, period: float, *, floor: int, starved: bool) -> str:
    """The limit of a step's time: the array, the input, the pointwise unit, the drain, or the path of the state.

    Parameters:
        floor: of the step with the layer's multipliers, in cycles.
        starved: the banks have always room for a block of the input.
    """
    busy = -(-layer.hidden // layer.gates.block_size) * layer.gates.block_size // elements
    if starved and period > program.cycles * program.shape.fold:
        return "input: a block comes in every cycle, but for those in which the layer writes its own"
    if period <= program.cycles * program.shape.fold:
        return array_limit(program.matrices, program.shape, program.cycles, period > floor)
    if period <= busy + 1:
        return "pointwise unit: it works in every cycle"
    if period <= len(program.passes) * program.shape.slots + 1:
        return "inverse FFTs: rows leave in every cycle"
    return "latency: each step waits for the state of the step before"


def vector_limit(matrices: Sequence[Matrix], shape: ArrayShape, cycles: float, floor: int, least: float) -> str:
    """The limit of a vector's ``cycles`` in a layer without a state; ``floor``: see `limit`; ``least``: what the array,
    the input and the output take."""
    if cycles > least:
        return "latency: banks hold two vectors, and the next one waits until the first is through"
    if cycles > sum(-(-matrix.rows // shape.rows) * max(-(-matrix.columns // shape.columns) * shape.fold, shape.slots)
                    for matrix in matrices):
        return "input or output: a block comes or leaves in every cycle"
    if all(-(-matrix.columns // shape.columns) * shape.fold >= shape.slots for matrix in matrices):
        issues = sum(-(-matrix.rows // shape.rows) * -(-matrix.columns // shape.columns) for matrix in matrices)
        return array_limit(matrices, shape, issues, cycles > floor)
    return "inverse FFTs: rows leave in every cycle"
