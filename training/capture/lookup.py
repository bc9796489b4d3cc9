"""Tables of vectors, read by an integer, and products of vectors with each other, as recommenders have them."""
import torch
from torch import Tensor

from circulant.training.kinds.add import Add
from circulant.training.kinds.linear import dense
from circulant.training.kinds.product import Multiply
from circulant.training.kinds.scale import Scale
from circulant.training.neutral import Call, Unsupported, Value

__all__ = ["ROWS", "embedding", "integer", "products"]

ROWS = 256
"""Rows of a table at the most: each takes multiplications, as an index is compared with all of them."""

PAIRS = 1024
"""Products of vectors at the most."""


def integer(call: Call) -> Value:
    """Numbers that are integers, as indices of a table."""
    source = call.tensor
    return Value(source.places, source.batch, source.path, "only a table takes integers; leave the conversion out")


def embedding(call: Call) -> Value:
    """A table as the product with max(0, 1 - |x - i|) for each row i, which is 1 or 0 for an integer x."""
    source, module = call.tensor, call.module
    rows, size = module.weight.shape
    if rows > ROWS:
        raise Unsupported(f"its table must have at most {ROWS} rows, not {rows}, as each is compared with the index; "
                          "hash the indices, or look them up before")
    if module.max_norm is not None:
        raise Unsupported("max_norm changes its weights while it runs; leave it out")
    assert source.places is not None
    steps, found = torch.arange(rows, dtype=module.weight.dtype), []
    for number, place in enumerate(source.places.reshape(-1)):
        one, label = Value(place.reshape(1), 0, source.path), f"{number}." if source.places.numel() > 1 else ""
        ones = steps.new_ones(rows, 1)
        above = dense(call, one, ones, -steps, part=f"{label}above", relu=True)
        below = dense(call, one, -ones, steps, part=f"{label}below", relu=True)
        away = call.emit(Add, (above, below), 0, part=f"{label}away", shape=(None, rows))
        chosen = call.emit(Scale, (away,), 0, part=f"{label}chosen", shape=(None, rows), axis=None, relu=True,
                           scale=-steps.new_ones(1), shift=steps.new_ones(1))
        last = number == source.places.numel() - 1
        row = dense(call, chosen, module.weight.detach().T, steps.new_zeros(size), part="" if last else f"{label}row")
        found.append(row.places)
    if len(found) == 1 and not source.sizes:
        return row
    return Value(torch.stack([each for each in found if each is not None]).reshape(*source.sizes, size), source.batch)


def products(call: Call) -> Value:
    """The products of the rows of one matrix with the columns of another, both of them data: sums of products."""
    one, other = (each if isinstance(each, Value) else None for each in call.given[:2])
    if one is None or other is None or (one.rank, one.batch, other.rank, other.batch) != (3, 0, 3, 0):
        raise Unsupported("it must take two tensors (N, rows, size) and (N, size, columns) that depend on the input; "
                          "use Linear for a constant")
    assert one.places is not None and other.places is not None
    rows, columns, known = one.places, other.places.T, dict[frozenset[tuple[int, ...]], Tensor]()
    if len(rows) * len(columns) > PAIRS:
        raise Unsupported(f"it must give at most {PAIRS} products, not {len(rows) * len(columns)}; use fewer vectors")
    size, found = rows.shape[1], []
    ones = torch.ones(1, size, dtype=call.result.dtype)
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            key = frozenset((tuple(row.tolist()), tuple(column.tolist())))
            if key not in known:
                pair = call.emit(Multiply, (Value(row, 0, one.path), Value(column, 0, other.path)), 0,
                                 part=f"{i}.{j}.product", shape=(None, size))
                made = dense(call, pair, ones, ones.new_zeros(1), part=f"{i}.{j}")
                assert made.places is not None
                known[key] = made.places
            found.append(known[key])
    return Value(torch.cat(found).reshape(len(rows), len(columns)), 0)
