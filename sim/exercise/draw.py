"""Candidates: sequences, vectors or images of integers that push a circuit to its ends."""
import numpy as np

from circulant.sim.arith.circulant import Product
from circulant.sim.arith.fixed import Integers
from circulant.sim.golden.network import Network
from circulant.sim.shape.graph import Input
from circulant.sim.shape.window import Flow

__all__ = ["GRADED", "Samples", "candidates", "sample_shape"]

Samples = dict[str, Integers]
"""The samples of each input by its name."""

SCALES = 12
"""Powers of two by which the full range is divided."""

KINDS = tuple(range(8))
"""Kinds of samples, as `candidates` names them."""

GRADED = (4, 6, 6)
"""Kinds whose size is drawn, so that sums take any value."""


def sample_shape(flow: Flow, steps: int) -> tuple[int, ...]:
    """A sample as `Network.run_integers` takes it: (T, inputs), (inputs,) or (height, width, channels)."""
    if flow.grid is not None:
        return *flow.grid, flow.size
    return (steps, flow.size) if flow.sequence else (flow.size,)


def candidates(network: Network, count: int, *, steps: int, seed: int, kinds: tuple[int, ...] = KINDS) -> Samples:
    """So many samples of each input, drawn apart, see `drawn`."""
    return {each.name: drawn(network, each, count, steps=steps, seed=seed + 1000 * n, kinds=kinds)
            for n, each in enumerate(network.inputs)}


def drawn(network: Network, given: Input, count: int, *, steps: int, seed: int, kinds: tuple[int, ...]) -> Integers:
    """So many samples of an input, of each kind in turn: the full range; its two ends, drawn for each value, for all
    alike, or as the weights of an output have their signs, these also smaller; a single value at an end; numbers of a
    drawn scale; next to nothing.

    Parameters:
        steps: of a sequence.
    """
    rng, form = np.random.default_rng(seed), network.formats[given.name]
    shape = sample_shape(given.flow, steps)
    rows = _responses(network, given)

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


def _responses(network: Network, given: Input) -> Integers:
    """The products that the first layer behind an input makes of each of its values alone, (rows, inputs): the signs of
    its weights. Of a layer without products, or with several positions of a kernel, a single row of ones."""
    form, size = network.formats[given.name], given.flow.size
    products: list[Product] = list(getattr(network.readers[given.name][0].layer, "products", {}).values())
    found = [product(np.eye(size, dtype=np.int64) * product.input.hi).T for product in products
             if product.input == form and given.flow.grid is None
             and size <= product.columns < size + product.block_size]
    return np.concatenate(found) if found else np.ones((1, size), np.int64)
