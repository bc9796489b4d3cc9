"""Shares of the rows of a layer: each chip makes some of the outputs, and is given what the others make.

A share of a layer with a state takes the state of the others as inputs, a step late: a part of its input matrix. What
comes in front of the state is summed up with it before it is rounded, so every bit is that of the whole layer.
"""
from collections.abc import Sequence
from dataclasses import replace
from functools import singledispatch
from typing import Any

import numpy as np

from circulant.sim.arith.circulant import JointProduct, Product
from circulant.sim.kinds.gru import Gru, GruShare
from circulant.sim.kinds.linear import Linear
from circulant.sim.kinds.lstm import Lstm
from circulant.sim.refusal import Refusal

__all__ = ["block_rows", "in_proportion", "row_share", "undivided"]


def in_proportion(total: int, weights: Sequence[float]) -> tuple[int, ...]:
    """So many blocks, at least one for each of some weights, and in proportion to them."""
    found, left, rest = [], total, sum(weights)
    for n, weight in enumerate(weights):
        behind = len(weights) - n - 1
        found.append(max(1, min(left - behind, round(left * weight / rest))) if behind else left)
        left, rest = left - found[-1], rest - weight
    return tuple(found)


@singledispatch
def block_rows(layer: Any) -> int:
    """The block rows of a layer, which may be divided; 0 of a kind whose rows the hardware does not divide."""
    return 0


@block_rows.register
def _(layer: Linear) -> int:
    return layer.outputs // layer.product.block_size


@block_rows.register
def _(layer: Gru | Lstm) -> int:
    return layer.outputs // layer.gates.block_size


def undivided(layer: Any) -> str:
    """The reason why the rows of a layer are not divided, in words; empty where they can be."""
    if block_rows(layer) < 2:
        return f"no rows of a layer of the kind {layer.kind!r} are divided" if not block_rows(layer) else (
            "it has one block row")
    k = layer.outputs // block_rows(layer)
    if layer.outputs % k:
        return f"its {layer.outputs} outputs are not whole blocks of {k}"
    if getattr(layer, "reset", "after") == "before":
        return "its candidate needs what the reset gates of all cells leave of the state, within a step"
    if isinstance(layer, Gru | Lstm):
        x, y = layer.gates.parts
        if getattr(layer, "projection", None) is not None:
            return "its projection needs all cells of a step before the next one"
        if layer.inputs % k:
            return f"its {layer.inputs} inputs are not whole blocks of {k}, beside which states stand"
        if layer.returns != "sequence":
            return "it gives its last step alone, and each step is exchanged"
        if (x.input, x.spectrum, x.weight) != (y.input, y.spectrum, y.weight):
            return (f"its input is the {x.input} and its state the {y.input}, with the spectra {x.spectrum} and "
                    f"{y.spectrum}, so that they cannot stand side by side")
    return ""


def _require(layer: Any) -> None:
    if why := undivided(layer):
        raise Refusal(f"The rows of layer {layer.name!r} cannot be divided: {why}; place it whole")


@singledispatch
def row_share(layer: Any, name: str, begin: int, end: int, *, columns: Sequence[int] | None = None) -> Any:
    """The layer ``name`` with the block rows from ``begin`` up to ``end`` of a layer. One with a state takes beside the
    input the states of the others, in their order.

    Parameters:
        columns: block columns of the input in the order in which they come, behind these states: an array that works
            with what has come has done with the states by then. None for the input as it is, in front of them.

    Raises:
        Refusal: when its rows cannot be divided.
    """
    _require(layer)
    raise AssertionError(layer)


def _rows(product: Product, begin: int, end: int, gates: int = 1) -> Product:
    p, q, k = product.weights.shape
    weights = product.weights.reshape(gates, p // gates, q, k)[:, begin:end].reshape(-1, q, k)
    bias = product.bias.reshape(gates, p // gates, k)[:, begin:end].reshape(-1)
    shifts = np.array(product.row_shifts or (0,) * p).reshape(gates, -1)[:, begin:end].reshape(-1)
    return replace(product, weights=weights, bias=bias, row_shifts=tuple(map(int, shifts)))


@row_share.register
def _(layer: Linear, name: str, begin: int, end: int, *, columns: Sequence[int] | None = None) -> Linear:
    _require(layer)
    k = layer.product.block_size
    return replace(layer, name=name, outputs=(end - begin) * k, product=_rows(layer.product, begin, end))


@row_share.register
def _(layer: Lstm, name: str, begin: int, end: int, *, columns: Sequence[int] | None = None) -> Lstm:
    _require(layer)
    k, (x, y) = layer.gates.block_size, (_rows(part, begin, end, 4) for part in layer.gates.parts)
    given, own = _beside(x, y, begin, end, columns)
    hidden = (end - begin) * k
    return replace(layer, name=name, inputs=layer.inputs + layer.hidden - hidden, hidden=hidden, outputs=hidden,
                   gates=JointProduct((given, own)),
                   peephole=None if layer.peephole is None else layer.peephole[:, begin * k:end * k])


def _beside(x: Product, y: Product, begin: int, end: int, columns: Sequence[int] | None) -> tuple[Product, Product]:
    """The products with what comes in, x and the states of the others, and with the own state."""
    others = np.delete(y.weights, np.s_[begin:end], axis=1)
    beside = [x.weights, others] if columns is None else [others, x.weights[:, list(columns)]]
    return replace(x, weights=np.concatenate(beside, axis=1)), replace(y, weights=y.weights[:, begin:end])


@row_share.register
def _(layer: Gru, name: str, begin: int, end: int, *, columns: Sequence[int] | None = None) -> GruShare:
    _require(layer)
    k, (of_x, of_h) = layer.gates.block_size, (_rows(part, begin, end, 2) for part in layer.gates.parts)
    w, u = (_rows(layer.products[role], begin, end) for role in ("candidate_input", "candidate_recurrent"))
    nothing = [replace(each, weights=np.zeros_like(each.weights)) for each in (w, u)]
    driven, _ = _beside(w, nothing[1], begin, end, columns)
    others, own = _beside(replace(u, weights=nothing[0].weights), u, begin, end, columns)
    hidden, x = (end - begin) * k, layer.gates.parts[0].columns
    return GruShare(name, layer.inputs + layer.hidden - hidden, hidden=hidden, returns=layer.returns,
                    reset=layer.reset, gates=JointProduct(_beside(of_x, of_h, begin, end, columns)), candidate=driven,
                    candidate_recurrent=own, sigmoid=layer.sigmoid, tanh=layer.tanh, candidate_others=others,
                    at=0 if columns is None else (layer.hidden - hidden) // k, x=x)
