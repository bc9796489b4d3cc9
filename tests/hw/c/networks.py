"""Random integer networks of every block size, with formats so arbitrary that everything saturates now and then."""
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from circulant.sim.arith.activation import METHODS, Pwl
from circulant.sim.arith.circulant import JointProduct, Product
from circulant.sim.arith.fft import BLOCK_SIZES
from circulant.sim.arith.fixed import Format, Integers
from circulant.sim.golden.network import Network
from circulant.sim.kinds.depthwise import FloatDepthwise
from circulant.sim.kinds.flatten import FloatFlatten
from circulant.sim.kinds.gate import FloatGate
from circulant.sim.kinds.gru import Gru
from circulant.sim.kinds.linear import Linear
from circulant.sim.kinds.lstm import Lstm
from circulant.sim.kinds.over_time import FloatOverTime, OverTime
from circulant.sim.kinds.pool import FloatPool
from circulant.sim.kinds.repeat import FloatRepeat
from circulant.sim.kinds.reverse import FloatReverse
from circulant.sim.passes.layer import GoldenLayer
from circulant.sim.quantize.quantize import quantize
from circulant.sim.real import float_model
from circulant.sim.refusal import Refusal
from circulant.sim.shape.graph import Input, Node
from circulant.sim.shape.window import Flow, Window
from tests.hw import test_cnn
from tests.random_networks import Random

NARROW = {"weight": (2, 18), "spectrum": (4, 20), "product": (4, 30), "vector": (2, 18)}
WIDE = {"weight": (2, 30), "spectrum": (4, 34), "product": (4, 44), "vector": (2, 40)}
"""Least and greatest widths; the wide ones ask for int64 here and there."""


class Maker:
    """Random parts of networks, from one seed."""

    def __init__(self, seed: int, widths: dict[str, tuple[int, int]]) -> None:
        self.rng, self.widths = np.random.default_rng(seed), widths

    def format(self, least: int, most: int, frac: tuple[int, int] = (-3, 12)) -> Format:
        return Format(int(self.rng.integers(least, most, endpoint=True)), int(self.rng.integers(*frac)))

    def vector(self) -> Format:
        return self.format(*self.widths["vector"])

    def product(self, inputs: int, rows: int, k: int, input: Format, output: Format) -> Product:
        weight, spectrum, product = (self.format(*self.widths[part]) for part in ("weight", "spectrum", "product"))
        shape = (rows // k, -(-inputs // k), k)
        extremes = self.rng.choice([weight.lo, weight.hi], shape)
        weights = extremes if self.rng.integers(3) == 0 else self.rng.integers(weight.lo, weight.hi + 1, shape)
        bias = self.rng.integers(output.lo, output.hi + 1, rows)
        return Product(weights, bias=bias, weight=weight, input=input, spectrum=spectrum, product=product,
                       output=output, twiddle_bits=int(self.rng.integers(1, 20)))

    def pwl(self, function: str, input: Format, output: Format) -> Pwl:
        """Tables of any lines, over equal segments or over others on a grid of at most 64 cells."""
        reach, method = max(int(self.rng.integers(0, 4)), 1 - input.frac), str(self.rng.choice(METHODS))
        bits = input.frac + reach + 1
        cells = 1 << int(self.rng.integers(1, min(6, bits) + 1))
        start = (np.arange(cells) - cells // 2) * (1 << bits) // cells
        if method == "pwl":
            start = start[np.append(True, self.rng.random(cells - 1) < 0.7)]
        slope = self.format(3, 16)
        base = Format(output.width, min(output.frac + int(self.rng.integers(0, 4)), slope.frac + input.frac))
        slopes, bases = (self.rng.integers(form.lo, form.hi + 1, len(start)) for form in (slope, base))
        return Pwl(function, method=method, reach=reach, input=input, output=output, slope_format=slope,
                   base_format=base,
                   start=start, slope=slopes, base=bases)

    def linear(self, name: str, inputs: int, outputs: int, k: int, input: Format) -> Linear:
        product = self.product(inputs, -(-outputs // k) * k, k, input, self.vector())
        return Linear(name, inputs, outputs, product, relu=bool(self.rng.integers(2)))

    def joint(self, gates: int, sizes: tuple[int, int], k: int, first: Product, second: Product) -> JointProduct:
        """A product of two vectors with the formats of two others."""
        return JointProduct((self.like(first, gates, sizes[0], k), self.like(second, gates, sizes[1], k, bias=False)))

    def like(self, product: Product, rows: int, inputs: int, k: int, *, bias: bool = True) -> Product:
        """Other integers of the same formats."""
        shape = (rows // k, -(-inputs // k), k)
        weights = self.rng.integers(product.weight.lo, product.weight.hi + 1, shape)
        biases = self.rng.integers(product.output.lo, product.output.hi + 1, rows) * bias
        return replace(product, weights=weights, bias=biases)

    def parts(self, k: int, input: Format, state: Format, pre: Format) -> tuple[Product, Product]:
        """Small products of x and of the state, whose exact sums have the same fraction bits."""
        x = self.product(k, k, k, input, pre)
        spectrum = self.format(*self.widths["spectrum"])
        weight = Format(int(self.rng.integers(*self.widths["weight"], endpoint=True)), x.frac - spectrum.frac)
        return x, replace(x, input=state, spectrum=spectrum, weight=weight, weights=0 * x.weights, bias=0 * x.bias)

    def gru(self, name: str, inputs: int, hidden: int, k: int, reset: str, input: Format, returns: str) -> Gru:
        pre, state = self.format(2, 24, (0, 12)), self.format(2, 24, (0, 16))
        rows, sizes, (x, h) = -(-hidden // k) * k, (inputs, hidden), self.parts(k, input, state, pre)
        candidate: Product | JointProduct = self.like(x, rows, inputs, k)
        if reset == "before":
            candidate = self.joint(rows, sizes, k, x, h)
        return Gru(name, inputs=inputs, hidden=hidden, returns=returns, reset=reset,
                   gates=self.joint(2 * rows, sizes, k, x, h), candidate=candidate,
                   candidate_recurrent=self.like(h, rows, hidden, k) if reset == "after" else None,
                   sigmoid=self.pwl("sigmoid", pre, state), tanh=self.pwl("tanh", pre, state))

    def lstm(self, name: str, inputs: int, hidden: int, k: int, form: str, input: Format, returns: str) -> Lstm:
        """With the peepholes and the projection that the form names."""
        pre, state, cell = self.format(2, 24, (0, 12)), self.format(2, 24, (0, 16)), self.format(2, 24, (0, 16))
        outputs = int(self.rng.integers(1, 45)) if "projection" in form else hidden
        rows, (x, y) = -(-hidden // k) * k, self.parts(k, input, state, pre)
        peephole = self.format(2, 18)
        return Lstm(
            name, inputs=inputs, hidden=hidden, outputs=outputs, returns=returns,
            gates=self.joint(4 * rows, (inputs, outputs), k, x, y),
            projection=self.product(hidden, -(-outputs // k) * k, k, state, state) if "projection" in form else None,
            peephole=self.rng.integers(peephole.lo, peephole.hi + 1, (3, hidden)) if "peephole" in form else None,
            peephole_format=peephole,
            cell=cell, sigmoid=self.pwl("sigmoid", pre, state), tanh=self.pwl("tanh", pre, state),
            tanh_cell=self.pwl("tanh", cell, state))

    def numbers(self, form: Format, *shape: int) -> Integers:
        """Random integers of a format; the first sequences hold nothing but its extremes."""
        x = self.rng.integers(form.lo, form.hi, shape, endpoint=True)
        x[:5] = self.rng.choice([form.lo, form.hi], x[:5].shape)
        return x


def vectors(seed: int = 0, widths: dict[str, tuple[int, int]] = NARROW) -> Network:
    """Linear layers of all block sizes, one after the other."""
    layers: list[Linear] = []
    inputs = 37
    for k in np.random.default_rng(seed).permutation(BLOCK_SIZES).tolist():
        def layer(maker: Maker, k: int = k) -> Linear:
            return maker.linear(f"fc{k}", layers[-1].outputs if layers else inputs, int(maker.rng.integers(1, 70)), k,
                                layers[-1].output_format if layers else maker.vector())

        layers.append(_legal(layer, seed, widths))
    return Network.chain("vectors", inputs, False, tuple(layers))


def sequences(*blocks: int | tuple[int, str], returns: str = "last", seed: int = 0, outputs: int = 0,
              outputs_k: int = 1, inputs: int = 11, widths: dict[str, tuple[int, int]] = NARROW) -> Network:
    """Recurrent layers of the given block sizes, and a linear layer when outputs are asked for.

    A block size alone is a GRU with the reset gate after the matrix; a form beside it is that of `Maker.gru` or, when
    it begins with "lstm", of `Maker.lstm`.
    """
    layers: list[GoldenLayer] = []
    for n, block in enumerate(blocks):
        k, form = (block, "after") if isinstance(block, int) else block

        def layer(maker: Maker, n: int = n, k: int = k, form: str = form) -> Gru | Lstm:
            make = maker.lstm if form.startswith("lstm") else maker.gru
            return make(f"layer_{n}", layers[-1].outputs if layers else inputs, int(maker.rng.integers(1, 45)), k, form,
                        input=layers[-1].output_format if layers else maker.vector(),
                        returns=returns if n == len(blocks) - 1 else "sequence")

        layers.append(_legal(layer, seed + n, widths))
    if outputs:
        layers.append(_legal(lambda maker: maker.linear("out", layers[-1].outputs, outputs, outputs_k,
                                                        layers[-1].output_format), seed, widths))
    return Network.chain("sequences", inputs, True, tuple(layers))


def _legal(make, seed, widths):
    """The first layer whose formats the golden model takes."""
    for attempt in range(100):
        try:
            return make(Maker(1000 * attempt + seed, widths))
        except Refusal:
            pass
    raise AssertionError("no legal layer in 100 attempts")


def inputs(network: Network, count: int = 37, steps: int = 4, seed: int = 0) -> Integers:
    """Random inputs of a network, the extremes of its format among them."""
    shape = count, *((steps,) if network.sequence else network.flow.grid or ()), network.flow.size
    return Maker(seed, NARROW).numbers(network.input_format, *shape)


def over_time(mode: str) -> Network:
    """The steps of a recurrent layer brought to one vector, and a linear layer behind it."""
    steps = sequences((4, "after"), returns="sequence")
    given = steps.layers[-1].output_format
    made = given if mode == "max" else Format(given.width - 1, given.frac + 2)
    pool = OverTime("pool", steps.end.size, mode, input_format=given, output_format=made)
    last = _legal(lambda maker: maker.linear("out", pool.outputs, 5, 4, made), 0, NARROW)
    return Network.chain("sequences", steps.flow.size, True, (*steps.layers, pool, last))


def plain() -> Network:
    """Plain recurrent layers, one behind the other."""
    r = Random(7)
    return r.network([r.rnn("first", 5, 9, 4, "sequence", nonlinearity="identity"),
                      r.rnn("second", 9, 6, 1, nonlinearity="relu"), r.linear("out", 6, 4, 2)], 5, sequence=True)


def directions(returns: str) -> Network:
    """Both directions twice, one behind the other, and what one step or all of them make of it."""
    r = Random(9)

    def both(name: str, cell: Callable[..., Any], inputs: int, returns: str, **more: Any) -> float_model.Bidirectional:
        return float_model.Bidirectional(name, *(cell(f"{name}.{way}", inputs, 6, 4, returns, **more)
                                                 for way in ("forward", "backward")))

    return r.network([both("first", r.lstm, 5, "sequence", peephole=True), r.linear("between", 12, 7, 4, relu=True),
                      both("second", r.gru, 7, returns, reset="before"), r.linear("out", 12, 3, 1)], 5, sequence=True)


def held(ports: str) -> Network:
    """Steps that are taken again with a vector of the whole sequence, or of an image, and turned round."""
    r, steps = Random(10), ports == "steps"
    if not steps:
        grid = (4, 3)
        flow, nodes = Flow(3, grid), [
            Node(r.conv("conv", 3, 5, 1, grid=grid, window=Window((3, 3), padding=(1, 1))), ("x",)),
            Node(FloatPool("pool", 5, grid, Window(grid), "average"), ("conv",)),
            Node(FloatFlatten("squeeze", 5, (1, 1), "pixels"), ("pool",)),
            Node(r.linear("gates", 5, 5, 1), ("squeeze",)), Node(FloatGate("excite", 5), ("conv", "gates")),
            Node(FloatFlatten("rows", 5, grid, "channels", rows=True), ("excite",)),
            Node(r.gru("cell", 15, 4, 4, "sequence"), ("rows",)), Node(FloatReverse("turned", 4), ("cell",))]
    else:
        flow, nodes = Flow(5, sequence=True), [
            Node(FloatReverse("turned", 5), ("x",)), Node(r.gru("cell", 5, 6, 2), ("turned",)),
            Node(FloatRepeat("again", 6, 5), ("x", "cell")), Node(r.lstm("decoder", 6, 5, 1, "sequence"), ("again",)),
            Node(r.linear("gates", 6, 5, 1), ("cell",)), Node(FloatGate("gated", 5), ("decoder", "gates")),
            Node(FloatOverTime("mean", 5, "mean"), ("decoder",)), Node(FloatGate("twice", 5), ("gated", "mean"))]
    model = float_model.Model("held", (Input("x", flow, () if steps else (3, 4, 3)),), tuple(nodes),
                              (nodes[-1].layer.name,))
    return quantize(model, r.normal(20, *((6, 5) if steps else (3, 4, 3))))


def sums() -> Network:
    """Residual sums of vectors, one within the other, with and without a layer beside it."""
    r = Random(6)
    inner = float_model.Residual("inner", 9, None, (r.activation("bent", 9, "tanh"),),
                                 shortcut=(r.linear("aside", 9, 9, 4),), relu=True)
    return r.network([r.linear("in", 7, 6, 2), float_model.Residual(
        "sum", 6, None, (r.linear("first", 6, 9, 4, relu=True), inner, r.linear("second", 9, 6, 2)), ()),
        r.linear("out", 6, 4, 1)], 7)


def images(seed: int) -> Network:
    """The networks over images that circuits are tested with."""
    made = test_cnn.model(seed)
    return quantize(made, np.random.default_rng(seed).uniform(-1, 1, (3, *made.shape)), **test_cnn.BITS)


def maps() -> Network:
    """Layers that give images, up to the last one: an activation for each pixel, and what comes first takes what lies
    beyond the format."""
    r, grid = Random(8), (5, 4)
    window = Window((3, 2), (1, 2), (1, 1), (2, 1))
    first = FloatDepthwise("first", 3, grid, window, weights=r.normal(6, 3), bias=r.normal(3), relu=True)
    pool = FloatPool("pool", 3, first.output_grid, Window((2, 2), (1, 1), (1, 1)), "average")
    conv = r.conv("conv", 3, 5, 2, grid=pool.output_grid, window=Window((1, 1)))
    return r.network([first, pool, conv, r.activation("bent", 5, "tanh")], 3, shape=(3, *grid), activation_bits=11)
