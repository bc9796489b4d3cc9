"""A network of the same shape and formats whose weights are as large as they can be: its circuit is the same Verilog.

With the weights of a design most sums stay far from the ends of their formats, so a fault in their highest bits changes
nothing. The hardware of those bits is there for any weights, so it is played with images of such a network as well.
"""
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from circulant.sim.arith.circulant import Product
from circulant.sim.golden.network import Network
from circulant.sim.refusal import Refusal

__all__ = ["extreme"]

SHARES = (1.0, 0.5, 0.25, 0.1, 0.0)
"""Of the weights that become ends of their format; fewer where a sum would leave int64."""


def extreme(network: Network, seed: int = 0) -> Network:
    """The network with its weights and biases drawn: ends of their formats, and zeros.

    A sum of many large products would stay at the limit and hide all others, so half of the rows have a few weights
    alone.
    """
    rng = np.random.default_rng(seed)
    return replace(network, layers=tuple(_replaced(layer, lambda product: _drawn(product, rng))
                                         for layer in network.layers))


def _drawn(product: Product, rng: np.random.Generator) -> Product:
    low, high = -(1 << product.weight.width - 1), (1 << product.weight.width - 1) - 1
    for share in SHARES:
        share_of_row = np.where(np.arange(len(product.weights)) % 2, 1, 0.2)[:, None, None] * share
        ends = rng.choice([low, low + 1, high], product.weights.shape)
        weights = np.where(rng.random(product.weights.shape) < share_of_row, ends, product.weights)
        signs = rng.choice([-1, 1], product.weights.shape[:2])[..., None]  # A row whose products all have one sign.
        weights = np.where(signs * weights > high, high, signs * weights)
        try:
            return replace(product, weights=weights)
        except Refusal:
            continue
    return product


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
