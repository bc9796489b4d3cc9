"""Candidates: sequences, vectors or images of integers that push a circuit to its ends."""
import numpy as np

from circulant.sim.arith.circulant import Product
from circulant.sim.arith.fixed import Integers
from circulant.sim.golden.network import Network

__all__ = ["GRADED", "candidates", "sample_shape"]

SCALES = 12
"""Powers of two by which the full range is divided."""

KINDS = tuple(range(8))
"""Kinds of samples, as `candidates` names them."""

GRADED = (4, 6, 6)
"""Kinds whose size is drawn, so that sums take any value."""


def sample_shape(network: Network, steps: int) -> tuple[int, ...]:
    """A sample as `Network.run_integers` takes it: (T, inputs), (inputs,) or (height, width, channels)."""
    grid = network.flow.grid
    if grid is not None:
        return *grid, network.flow.size
    return (steps, network.flow.size) if network.sequence else (network.flow.size,)


def candidates(network: Network, count: int, *, steps: int, seed: int, kinds: tuple[int, ...] = KINDS) -> Integers:
    """So many samples, of each kind in turn: the full range; its two ends, drawn for each value, for all alike, or as
    the weights of an output have their signs, these also smaller; a single value at an end; numbers of a drawn scale;
    next to nothing.

    Parameters:
        steps: of a sequence.
    """
    rng, form = np.random.default_rng(seed), network.input_format
    shape = sample_shape(network, steps)
    rows = _responses(network)

    def ends(size: tuple[int, ...]) -> Integers:
        return np.asarray(rng.choice([form.lo, form.hi], size), np.int64)

    def draw(n: int) -> Integers:
        kind = kinds[n % len(kinds)]
        if kind == 0:
            return rng.integers(form.lo, form.hi + 1, shape)
        if kind == 1:
            return ends(shape)
        if kind == 2:  # One pattern for all steps or pixels: what adds up over time reaches its limits.
            return np.broadcast_to(ends(shape[-1:]), shape)
        if kind == 3:
            single = np.zeros(shape, np.int64)
            single.reshape(-1, shape[-1])[0, (n // len(kinds)) % shape[-1]] = rng.choice([form.lo, form.hi])
            return single
        if kind in (4, 5):
            scale = rng.uniform(0, min(SCALES, form.width - 1))
            return np.clip(np.round(rng.uniform(form.lo, form.hi, shape) * 2.0 ** -scale), form.lo, form.hi
                           ).astype(np.int64)
        if kind == 6:
            pattern = np.where(rows[rng.integers(len(rows))] * rng.choice([-1, 1]) < 0, form.lo, form.hi)
            aligned = np.round(np.broadcast_to(pattern, shape) * rng.choice([1.0, rng.random()])).astype(np.int64)
            if len(shape) > 1:  # And back, from some step on.
                aligned[rng.integers(1, shape[0] + 1):] ^= -1
            return aligned
        return rng.integers(-1, 2, shape) * int(rng.integers(2))

    return np.stack([draw(n) for n in range(count)])


def _responses(network: Network) -> Integers:
    """The first layer's products of each input alone, (rows, inputs): the signs of its weights. Of a layer without
    products, or with several positions of a kernel, a single row of ones."""
    products: list[Product] = list(getattr(network.layers[0], "products", {}).values())
    found = [product(np.eye(network.flow.size, dtype=np.int64) * product.input.hi).T for product in products
             if product.input == network.input_format and network.flow.grid is None
             and network.flow.size <= product.columns < network.flow.size + product.block_size]
    return np.concatenate(found) if found else np.ones((1, network.flow.size), np.int64)
