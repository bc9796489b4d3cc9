"""A network of the same shape and formats whose weights are as large as they can be: its circuit is the same Verilog.

With the weights of a design most sums stay far from the ends of their formats, so a fault in their highest bits changes
nothing. The hardware of those bits is there for any weights, so it is played with images of such a network as well.
"""
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from circulant.sim.arith.circulant import Product
from circulant.sim.arith.fixed import Format
from circulant.sim.golden.network import Network
from circulant.sim.refusal import Refusal

__all__ = ["extreme"]

SHARES = (1.0, 0.5, 0.25, 0.1, 0.0)
"""Shares of weights that become ends of their format; fewer where a sum would leave int64."""


def extreme(network: Network, seed: int = 0) -> Network:
    """The network with its weights drawn: of the first seed ends of their formats, some or all in a row; of the others
    one frequency in each row of blocks, with biases at their ends, so that the outputs of a block are at their limits
    as that frequency has its signs, and so is the spectrum of the next product.

    A sum of many large products would stay at the limit and hide all others, so half of the rows have a few alone.
    """
    rng = np.random.default_rng(seed)
    draw = _frequencies if seed else _ends
    return replace(network, layers=tuple(_replaced(layer, lambda product: draw(product, rng))
                                         for layer in network.layers))


def _ends(product: Product, rng: np.random.Generator) -> Product:
    low, high = _limits(product.weight)
    for share in SHARES:
        share_of_row = np.where(np.arange(len(product.weights)) % 2, 1, 0.2)[:, None, None] * share
        ends = rng.choice([low, low + 1, high], product.weights.shape)
        weights = np.where(rng.random(product.weights.shape) < share_of_row, ends, product.weights)
        signs = rng.choice([-1, 1], product.weights.shape[:2])[..., None]
        try:
            return replace(product, weights=np.where(signs * weights > high, high, signs * weights))
        except Refusal:
            continue
    return product


def _frequencies(product: Product, rng: np.random.Generator) -> Product:
    low, high = _limits(product.weight)
    (p, q, k), (least, most) = product.weights.shape, _limits(product.output)
    chosen = rng.integers(k, size=p)
    for share in SHARES:
        weights = np.zeros((p, q, k), np.int64)
        weights[np.arange(p), :, chosen] = np.where(rng.random((p, q)) < share, rng.choice([low, high], (p, q)), 0)
        bias = np.where(rng.random((p, 1)) < 0.5, rng.choice([least, most], (p, 1)), 0).repeat(k, 1).reshape(p * k)
        try:
            return replace(product, weights=weights, bias=np.where(product.bias == 0, 0, bias))
        except Refusal:
            continue
    return product


def _limits(format: Format) -> tuple[int, int]:
    return -(1 << format.width - 1), (1 << format.width - 1) - 1


def _replaced(value: Any, change: Callable[[Product], Product]) -> Any:
    """A tree of dataclasses and tuples with all its products changed."""
    if isinstance(value, Product):
        return change(value)
    if isinstance(value, tuple):
        return tuple(_replaced(each, change) for each in value)
    if is_dataclass(value) and not isinstance(value, type):
        found = {each.name: _replaced(getattr(value, each.name), change) for each in fields(value) if each.init}
        return replace(value, **{name: new for name, new in found.items() if new is not getattr(value, name)})
    return value
