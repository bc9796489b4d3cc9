"""The programs of the layers: their matrices, the vectors they meet, and the order of the passes."""
from collections.abc import Iterator
from dataclasses import replace
from functools import singledispatch
from typing import TypeGuard

from circulant.hw.array.program import ArrayShape, Matrix, Part, Program, parts
from circulant.hw.array.shared.split_row import divides
from circulant.sim.arith.circulant import JointProduct
from circulant.sim.golden.stages import Stage
from circulant.sim.kinds.gru import Gru
from circulant.sim.kinds.linear import Linear
from circulant.sim.kinds.lstm import GATES, Lstm
from circulant.sim.kinds.rnn import Rnn
from circulant.sim.refusal import Refusal

__all__ = ["IN_TURN", "spare_blocks", "layer_program", "matrices", "mixes", "spacings", "vector_cycles",
           "without_hardware"]

ROWS = 1 << 30
"""A spacing with which the rows lead."""

IN_TURN = ROWS, ROWS, ROWS
"""The spacing of a layer without a state: pass after pass, each of which leaves while the next one is summed up."""


def without_hardware(layer: Stage) -> Refusal:
    """The refusal of a kind of layer that a generator does not know."""
    return Refusal(f"The hardware must have a unit for each layer, but has none for {layer.name!r}, a layer of the "
                   f"kind {layer.kind!r}; the golden model computes it")


@singledispatch
def matrices(layer: Stage) -> list[Matrix]:
    """The matrices that the array multiplies with for a layer.

    Raises:
        Refusal: when the layer has no array of its own.
    """
    raise without_hardware(layer)


@matrices.register
def _(layer: Linear) -> list[Matrix]:
    return [Matrix((Part(layer.product, 0, 0),), ("y",))]


@matrices.register
def _(layer: Lstm) -> list[Matrix]:
    x = layer.gates.parts[0].columns // layer.gates.block_size
    gates = [Matrix(parts(layer.gates, 0, x), GATES)]
    return gates if layer.projection is None else [
        *gates, Matrix((Part(layer.projection, 1, 0),), ("y",), stage=1)]


@matrices.register
def _(layer: Rnn) -> list[Matrix]:
    return [Matrix(parts(layer.gates, 0, layer.gates.parts[0].columns // layer.gates.block_size), ("n",))]


@matrices.register
def _(layer: Gru) -> list[Matrix]:
    x = layer.gates.parts[0].columns // layer.gates.block_size
    if isinstance(layer.candidate, JointProduct):
        w, u = layer.candidate.parts
        return [Matrix(parts(layer.gates, 0, x), ("r", "z")), Matrix((Part(w, 0, 0), Part(u, 1, 0)), ("n",), stage=1)]
    assert layer.candidate_recurrent is not None
    return [Matrix((Part(layer.candidate, 0, 0),), ("nx",), completes=False),
            Matrix(parts(layer.gates, 0, x), ("r", "z"), completes=False),
            Matrix((Part(layer.candidate_recurrent, 0, x),), ("nh",))]


def layer_program(layer: Linear | Gru | Lstm | Rnn, shape: ArrayShape, spacing: tuple[int, int, int], *,
                  early: bool = False, adjacent: bool = False) -> Program:
    """The passes of a layer, those of the same blocks side by side, and the completing one behind the others.

    Parameters:
        early: see `Program`.
        adjacent: see `Program`; without effect where no group has columns of both vectors.

    Raises:
        ValueError: when the shape is split, but the layer cannot be.
    """
    found = matrices(layer)
    if shape.split and not (early and adjacent and splits(layer, shape)):
        raise ValueError("A split array needs an early program of adjacent vectors, of a GRU that resets after its "
                         "matrix, whose input ends within a group of columns; layer "
                         f"{layer.name!r} has none for {shape!r}")
    if early:
        return _early(layer, found, shape, spacing, adjacent=adjacent and adjoins(layer, shape))
    order = [(matrix.stage, -(-min(row + shape.rows, matrix.rows) // len(matrix.kinds)), index, row)
             for index, matrix in enumerate(found) for row in range(0, matrix.rows, shape.rows)]
    inputs = -(-layer.inputs // found[0].product.block_size)
    return Program(shape, found, inputs=inputs, order=[entry[2:] for entry in sorted(order)], spacing=spacing)


def _early(layer: Linear | Gru | Lstm | Rnn, found: list[Matrix], shape: ArrayShape,
           spacing: tuple[int, int, int], *, adjacent: bool) -> Program:
    """The program whose recurrent products may come first: its recurrent vector begins with a group of columns of its
    own, and a block is whole with those of its rows that have both an input's and a recurrent share, since they always
    come last."""
    inputs = -(-layer.inputs // found[0].product.block_size)
    head = inputs if adjacent else -(-inputs // shape.columns) * shape.columns
    joint = [any(len(matrix.parts) > 1 for matrix in found if matrix.stage == stage) for stage in range(2)]
    made = [replace(matrix, completes=len(matrix.parts) > 1 or not joint[matrix.stage], parts=tuple(
        replace(part, column=head) if part.column else part for part in matrix.parts)) for matrix in found]

    if shape.split:
        x, gates, h = made
        gates = replace(gates, abreast=4)
        x = replace(x, beside=gates, abreast=4)
        made = [x, gates, replace(h, beside=x, abreast=4)]
        order = [(2, block) for block in range(0, x.rows, shape.rows // 4)]
        return Program(shape, made, inputs=head, order=order, spacing=spacing, early=True, adjacent=True)

    if mixes(layer, shape):
        x, gates, h = made
        gates = replace(gates, abreast=3)
        made = [replace(x, beside=gates, abreast=3), gates, replace(h, beside=gates, abreast=3)]
        order = [(index, block) for block in range(0, x.rows, shape.rows // 3) for index in (0, 2)]
        return Program(shape, made, inputs=head, order=order, spacing=spacing, early=True)

    def place(index: int, row: int) -> tuple[int, int]:
        """The place of a pass in the order: the last block that it makes whole, or the first one that needs it."""
        matrix = made[index]
        if matrix.completes:
            return matrix.stage, 2 * -(-min(row + shape.rows, matrix.rows) // len(matrix.kinds)) - 1
        return matrix.stage, 2 * (row // len(matrix.kinds))

    order = sorted(((index, row) for index, matrix in enumerate(made) for row in range(0, matrix.rows, shape.rows)),
                   key=lambda each: (*place(*each), each))
    return Program(shape, made, inputs=head, order=order, spacing=spacing, early=True, adjacent=adjacent)


def adjoins(layer: Stage, shape: ArrayShape) -> bool:
    """Whether a recurrent vector that follows the input within a group of columns saves a group: not where gates are
    side by side, nor where all of it has room in the last group of the input."""
    found = [] if mixes(layer, shape) else matrices(layer)
    for matrix in found:
        if len(matrix.parts) == 2 and not any(part.vector for part in matrix.parts):
            x, h = (len(part.columns) for part in matrix.parts)
            head = -(-x // shape.columns)
            whole = -(-(x + h) // shape.columns)
            return head < whole < head + -(-h // shape.columns)
    return False


def splits(layer: Stage, shape: ArrayShape) -> bool:
    """Whether an early program can have rows that share lanes, see `ArrayShape`: of a GRU that resets after its matrix,
    where adjacent vectors save a group of columns."""
    if not (shape.split and _resets_after(layer) and adjoins(layer, shape)):
        return False
    inputs = -(-layer.inputs // layer.gates.block_size)
    return divides(shape.columns, inputs % shape.columns)


def mixes(layer: Stage, shape: ArrayShape) -> bool:
    """Whether rows of all gates are side by side in the passes of an early program: of a GRU that resets after the
    matrix, where the chains are a multiple of its three gates."""
    return _resets_after(layer) and not shape.chains % 3 and not shape.split


def _resets_after(layer: Stage) -> TypeGuard[Gru]:
    return isinstance(layer, Gru) and layer.reset == "after"


def vector_cycles(layer: Linear, shape: ArrayShape) -> int:
    """Cycles from vector to vector of a layer without a state: what the array takes, and what comes and leaves.

    A vector that is shorter than a third of its way through the layer may take some cycles more.
    """
    p, q, _ = layer.product.weights.shape
    issue = -(-p // shape.rows) * max(-(-q // shape.columns) * shape.fold, shape.slots)
    return max(issue, q // spare_blocks(layer, shape), p)


def spare_blocks(layer: Linear, shape: ArrayShape) -> int:
    """Values of a dense layer that come side by side: so many that the array waits for none, and that its banks take
    them. Blocks come one by one."""
    p, q, k = layer.product.weights.shape
    issue = -(-p // shape.rows) * -(-q // shape.columns) * shape.fold
    aside = 1
    while k == 1 and q // aside > issue and not shape.columns % (2 * aside) and not q % (2 * aside):
        aside *= 2
    return aside


def spacings(shape: ArrayShape) -> Iterator[tuple[int, int, int]]:
    """Spacings worth a try, from columns first to rows first; the first passes of AHEAD end as fast as they drain."""
    for main in (ROWS, *(shape.slots * n for n in (1, 2, 3, 4, 6))):
        for second in (ROWS, shape.slots):
            yield shape.slots, main, second
