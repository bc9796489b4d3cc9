"""Networks of the same shape and formats with extreme weights or tables: their circuit is the same Verilog.

With the weights of a design most sums stay far from the ends of their formats, so a fault in their highest bits changes
nothing; with its tables two lines meet at the end of a segment, so that it does not matter which one is taken there.
The hardware is there for any weights and tables, so it is played with images of such networks as well.
"""
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from circulant.sim.arith import fft
from circulant.sim.arith.activation import Pwl
from circulant.sim.arith.circulant import Product
from circulant.sim.arith.fixed import Format, Integers
from circulant.sim.golden.network import Network
from circulant.sim.kinds.gru import Gru
from circulant.sim.passes.bases import activations
from circulant.sim.refusal import Refusal

__all__ = ["aligned", "broken_lines", "each_segment", "extreme"]

GATES: dict[str, dict[str, tuple[str, ...]]] = {
    "gru": {"gates": ("sigmoid", "sigmoid"), "candidate": ("tanh",), "candidate_recurrent": ("tanh",)},
    "lstm": {"gates": ("sigmoid", "sigmoid", "tanh", "sigmoid")}}
"""The tables of the gates of each product, in the order of its rows, by kind of layer."""

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
    return network.mapped(lambda layer: _replaced(layer, lambda product: draw(product, rng)))


def broken_lines(network: Network, seed: int = 0) -> Network:
    """The network with drawn tables in its recurrent layers, whose lines do not meet and leave the format of the value,
    and with pre-activations at the ends of their segments: these are biases, for the weights of most rows are zero.

    The first and the last segment give the ends of the value's format. Half of the blocks have biases there, with the
    signs that one frequency has, so that the spectrum of the state is at its limits as well.
    """
    rng = np.random.default_rng(seed)

    def drawn(layer: Any) -> Any:
        tables = list(activations(layer).values())
        changed = _replaced(layer, partial(_constant, tables, rng), partial(_drawn, rng)) if tables else layer
        if isinstance(changed, Gru) and changed.candidate_recurrent is not None and seed % 2:
            nothing = changed.candidate_recurrent  # Else r times its bias would be added to what the tanh gets.
            changed = replace(changed, candidate_recurrent=replace(
                nothing, weights=0 * nothing.weights, bias=0 * nothing.bias))
        return changed

    return network.mapped(drawn)


def each_segment(network: Network, seed: int = 0) -> Network:
    """The network with gates that are biases alone: where a segment begins, each in turn for each place in a block. The
    lines of its tables are level and far apart, so that a wrong one shows.

    A GRU that resets after the matrix has nothing to reset for every second seed, so that its candidate is such a bias,
    too; for the others r shows by what it leaves of a drawn one.
    """
    rng = np.random.default_rng(seed)

    def biased(layer: Any) -> Any:
        tables, changed = activations(layer), {}
        for role, names in GATES.get(getattr(layer, "kind", ""), {}).items():
            own = partial(_in_turn, [tables[name].start for name in names], seed // 2)
            if role == "candidate_recurrent":
                own = partial(_biased, rng if seed % 2 else None)
            changed[role] = _replaced(getattr(layer, role), own)
        for name, table in tables.items() if changed else ():
            changed[name] = _far_apart(rng, table)
        return replace(layer, **changed) if changed else layer

    return network.mapped(biased)


def _in_turn(starts: Sequence[Integers], seed: int, product: Product) -> Product:
    """A product whose values are the starts of the segments of each gate."""
    p, _, k = product.weights.shape
    blocks, bias = p // len(starts), np.zeros((p, k), np.int64)
    for gate, start in enumerate(starts):
        values = np.clip(start, *_limits(product.output))
        places = seed * blocks + np.arange(blocks)[:, None] + np.arange(k) * len(values) // k
        bias[gate * blocks:(gate + 1) * blocks] = values[places % len(values)]
    return replace(product, weights=0 * product.weights, bias=np.where(product.bias.any(), bias.reshape(-1), 0))


def _biased(rng: np.random.Generator | None, product: Product) -> Product:
    """A product whose values are drawn biases; without ``rng`` zero."""
    low, high = _limits(product.output)
    bias = rng.integers(low, high + 1, product.bias.shape) if rng else 0 * product.bias
    return replace(product, weights=0 * product.weights, bias=bias)


def _far_apart(rng: np.random.Generator, table: Pwl) -> Pwl:
    """Level lines, of which neighbours have values of different signs; none is near one, which would hide others."""
    low, high = _limits(table.base_format)
    base = np.round(rng.uniform(0.2, 0.6, table.segments) * np.where(np.arange(table.segments) % 2, low, high))
    return replace(table, slope=0 * table.slope, base=base.astype(np.int64))


def _drawn(rng: np.random.Generator, table: Pwl) -> Pwl:
    """Each line on a scale of its own, but for the first and the last one, which are level."""
    def scaled(form: Format) -> Integers:
        low, high = _limits(form)
        return np.round(rng.uniform(low, high, table.segments) * 2.0 ** -rng.uniform(0, form.width - 1, table.segments)
                        ).astype(np.int64)

    slope, base = scaled(table.slope_format), scaled(table.base_format)
    slope[[0, -1]], base[[0, -1]] = 0, _limits(table.base_format)
    return replace(table, slope=slope, base=base)


def _constant(tables: Sequence[Pwl], rng: np.random.Generator, product: Product) -> Product:
    """A product whose values are mostly its biases: ends of segments, or of the format. One whose values go into no
    table stays as it is, such as a projection: what comes out shows the others."""
    (p, _, k), (least, most) = product.weights.shape, _limits(product.output)
    starts = [table.start for table in tables if table.input == product.output]
    if not starts:
        return product
    drawn = np.clip(rng.choice(np.concatenate(starts), (p, k)) - rng.integers(2, size=(p, k)), least, most)
    signs = rng.choice(_waves(k, product.twiddle_bits), p)
    bias = np.where(rng.random((p, 1)) < 0.5, np.where(signs < 0, least, most), drawn).reshape(p * k)
    weights = np.where(rng.random((p, 1, 1)) < 0.8, 0, product.weights)
    return replace(product, weights=weights, bias=np.where(product.bias.any(), bias, 0))


def aligned(network: Network, count: int, steps: int, seed: int = 0) -> Integers | None:
    """Sequences (count, steps, inputs) at the ends of the input format whose blocks are `_waves`; None where a sample
    is an image or a vector, or the first layer has no product of the input."""
    form, products = network.input_format, getattr(network.layers[0], "products", {})
    first = next((product for product in products.values() if product.input == form), None)
    if first is None or not network.sequence:
        return None
    signs = np.random.default_rng(seed).choice(_waves(first.block_size, first.twiddle_bits),
                                               (count, steps, first.weights.shape[1]))
    return np.where(signs.reshape(count, steps, -1)[..., :network.flow.size] < 0, form.lo, form.hi)


def _waves(k: int, twiddle_bits: int) -> Integers:
    """Signs of the values of a block, (rows, k), at which a value of its spectrum is greatest or least, or the sum or
    the difference of a real and an imaginary one, which are factors of a complex product."""
    spectra = fft.forward(np.eye(k, dtype=np.int64) << twiddle_bits, twiddle_bits, 0)
    real, imaginary = spectra[2::2], spectra[3::2]
    rows = np.concatenate([spectra, real + imaginary, real - imaginary])
    return np.where(np.concatenate([rows, -rows]) < 0, -1, 1)


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


def _replaced(value: Any, change: Callable[[Product], Product], redraw: Callable[[Pwl], Pwl] = lambda table: table
              ) -> Any:
    """A tree of dataclasses and tuples with all its products and tables changed."""
    if isinstance(value, Product):
        return change(value)
    if isinstance(value, Pwl):
        return redraw(value)
    if isinstance(value, tuple):
        return tuple(_replaced(each, change, redraw) for each in value)
    if is_dataclass(value) and not isinstance(value, type):
        found = {each.name: _replaced(getattr(value, each.name), change, redraw) for each in fields(value) if each.init}
        return replace(value, **{name: new for name, new in found.items() if new is not getattr(value, name)})
    return value
