"""Families beyond recurrent layers whose cycles are published, dense, for Vollo: perceptrons, temporal convolutions,
WaveNet; and MLPerf Tiny's DS-CNN. Period and latency, predicted, and played under Verilator with stalls against golden.

Published are cycles of the vendor's software model on a V80, without input and output, of dense matrices in bfloat16.
Nobody here has measured them. Weights are random.
"""
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from benchmarks.cycles import Cycles, measured, rows, samples
from circulant.hw.beats import AUTO
from circulant.sim.document import Document
from circulant.sim.kinds.activation import FloatActivation
from circulant.sim.kinds.add import FloatAdd
from circulant.sim.kinds.concat import FloatConcat
from circulant.sim.kinds.conv import FloatConv
from circulant.sim.kinds.depthwise import FloatDepthwise
from circulant.sim.kinds.flatten import FloatFlatten
from circulant.sim.kinds.linear import FloatLinear
from circulant.sim.kinds.norm import FloatNorm
from circulant.sim.kinds.pool import FloatPool
from circulant.sim.kinds.product import FloatProduct
from circulant.sim.kinds.rnn import FloatRnn
from circulant.sim.kinds.slice import FloatSlice
from circulant.sim.kinds.taps import FloatTaps
from circulant.sim.passes.layer import FloatLayer
from circulant.sim.quantize.quantize import quantize
from circulant.sim.real.float_model import Model
from circulant.sim.shape.graph import Input, Node
from circulant.sim.shape.window import Flow, Grid, Window

__all__ = ["FAMILIES", "measure", "model"]

STEPS = 24
"""Steps of each of the two sequences, or half of the vectors, that are played."""


class _Family:
    """A model that grows, layer by layer.

    Parameters:
        block: values of a block.
    """

    def __init__(self, block: int) -> None:
        self.block, self.nodes = block, list[Node]()
        self._rng = np.random.default_rng(0)

    def take(self, layer: FloatLayer, *sources: str) -> str:
        self.nodes.append(Node(layer, sources))
        return layer.name

    def linear(self, source: str, inputs: int, outputs: int, relu: bool = True) -> str:
        k = self.block
        weight = self._rng.normal(0, 1 / np.sqrt(inputs), (-(-outputs // k), -(-inputs // k), k))
        return self.take(FloatLinear(f"l{len(self.nodes)}", inputs, outputs, weight, self._rng.normal(0, 0.1, outputs),
                                     relu=relu), source)

    def conv(self, source: str, channels: tuple[int, int], kernel: int, dilation: int, relu: bool = True) -> str:
        """A causal convolution; a single channel is not filled up to a block."""
        inputs, outputs = channels
        width = inputs if inputs == 1 else -(-inputs // self.block) * self.block
        past = self.take(FloatTaps(f"t{len(self.nodes)}", inputs, kernel, dilation, width), source)
        return self.linear(past, kernel * width, outputs, relu)

    def tcn(self, channels: int) -> None:
        source, inputs = "x", 1
        for n in range(3):
            first = self.conv(source, (inputs, channels), 3, 1 << n)
            body = self.conv(first, (channels, channels), 3, 1 << n)
            shortcut = source if inputs == channels else self.linear(source, inputs, channels, relu=False)
            source, inputs = self.take(FloatAdd(f"a{n}", channels, relu=True), body, shortcut), channels

    def causal(self, channels: int, kernel: int) -> None:
        source = "x"
        for n in range(4):
            norm = self.take(FloatNorm(f"n{n}", channels, "rms", np.ones(channels), np.zeros(channels)), source)
            body = self.conv(norm, (channels, channels), kernel, 1)
            source = self.take(FloatAdd(f"a{n}", channels), body, source)

    def wavenet(self, hidden: int, layers: int = 4) -> None:
        source, skips = self.linear("x", 1, hidden, relu=False), list[str]()
        for n in range(layers):
            both = self.conv(source, (hidden, 2 * hidden), 2, 1 << n, relu=False)
            halves = [self.take(FloatActivation(f"f{n}{side}", hidden, function), self.take(
                FloatSlice(f"s{n}{side}", 2 * hidden, side * hidden, hidden), both))
                for side, function in enumerate(("tanh", "sigmoid"))]
            gated = self.take(FloatProduct(f"g{n}", hidden), *halves)
            skips.append(self.linear(gated, hidden, hidden, relu=False))
            if n < layers - 1:
                source = self.take(FloatAdd(f"a{n}", hidden), self.linear(gated, hidden, hidden, relu=False), source)
        end = self.take(FloatAdd("skips", hidden, len(skips), relu=True), *skips)
        self.linear(self.linear(end, hidden, hidden), hidden, 3, relu=False)

    def perceptron(self, layers: int, size: int) -> None:
        source = "x"
        for _ in range(layers):
            source = self.linear(source, size, size)

    def space(self, size: int, states: int) -> None:
        """A linear state space: A and B, then D and C side by side, the input's columns first."""
        k, zeros = self.block, np.zeros((1, states))
        of_x, of_h = (self._rng.normal(0, gain / np.sqrt(columns), (1, -(-states // k), -(-columns // k), k))
                      for gain, columns in ((1, size), (0.5, states)))
        state = self.take(FloatRnn("h", size, states, weight_ih=of_x, weight_hh=of_h, bias_ih=zeros, bias_hh=zeros,
                                   returns="sequence", nonlinearity="identity"), "x")
        both = self.take(FloatConcat("both", (size, states)), "x", state)
        self.linear(both, size + states, size, relu=False)

    def window(self, source: str, channels: tuple[int, int], grid: Grid, window: Window, k: int) -> str:
        inputs, outputs = channels
        weight = self._rng.normal(0, 1 / np.sqrt(inputs * window.positions), (
            window.positions, -(-outputs // k), -(-inputs // k), k))
        return self.take(FloatConv(f"c{len(self.nodes)}", inputs, outputs, grid=grid, window=window, weight=weight,
                                   bias=self._rng.normal(0, 0.1, outputs), relu=True), source)

    def separable(self, channels: int) -> None:
        """Blocks in the 1 × 1 parts alone."""
        first = Window((10, 4), (2, 2), (5, 1))
        source, grid = self.window("x", (1, channels), (49, 10), first, 1), first.outputs("x", (49, 10))
        for n in range(4):
            weights = self._rng.normal(0, 1 / 3, (9, channels))
            apart = self.take(FloatDepthwise(f"d{n}", channels, grid, Window((3, 3), padding=(1, 1)), weights=weights,
                                             bias=self._rng.normal(0, 0.1, channels), relu=True), source)
            source = self.window(apart, (channels, channels), grid, Window((1, 1)), self.block)
        mean = self.take(FloatPool("mean", channels, grid, Window(grid), "average"), source)
        flat = self.take(FloatFlatten("flat", channels, (1, 1), "pixels"), mean)
        self.take(FloatLinear("out", channels, 12, self._rng.normal(0, 1 / 8, (12, channels, 1)), np.zeros(12)), flat)


FAMILIES: dict[str, tuple[str, tuple[int, ...], Flow, int | None]] = {
    **{f"mlp-{layers}x{size}": ("perceptron", (layers, size), Flow(size), vollo)
       for layers, size, vollo in ((2, 512, 205), (4, 512, 352), (3, 1024, 701))},
    **{f"tcn-3x{channels}": ("tcn", (channels,), Flow(1, sequence=True), vollo)
       for channels, vollo in ((128, 283), (256, 375), (512, 506))},
    **{f"causal-4x{channels}-{kernel}": ("causal", (channels, kernel), Flow(channels, sequence=True), vollo)
       for channels, kernel, vollo in ((64, 8, 475), (64, 32, 475), (64, 64, 475), (256, 32, 613))},
    **{f"wavenet-{hidden}": ("wavenet", (hidden,), Flow(1, sequence=True), vollo)
       for hidden, vollo in ((192, 845), (384, 1020))},
    "space-576-448": ("space", (576, 448), Flow(576, sequence=True), 231),
    "ds-cnn": ("separable", (64,), Flow(1, (49, 10)), None),
}
"""By name how a `_Family` grows, with which sizes, the flow of its input, and Vollo's cycles where it has any."""

FEWER = {"ds-cnn": 342}
"""Multipliers at the most of what runs on small devices."""


def model(name: str, block: int) -> Model:
    """A family's model with random weights."""
    grow, sizes, flow, _ = FAMILIES[name]
    family, shape = _Family(block), (flow.size, *flow.grid) if flow.grid else ()
    getattr(family, grow)(*sizes)
    return Model(name.replace("-", "_"), (Input("x", flow, shape),), tuple(family.nodes),
                 (family.nodes[-1].layer.name,))


def measure(names: Sequence[str] = (), blocks: Sequence[int] = (8, 16), *, multipliers: int = 2760, levels: int = 6,
            simulate: bool = True, steps: int = STEPS, note: Callable[[str], None] = lambda text: None
            ) -> Document:
    """Figures of each family and block size, and a table.

    Parameters:
        names: of `FAMILIES`; all where there are none.
        levels: of logic between two registers.
        simulate: whether designs are built and played with stalls, or planned only.
    """
    def family(name: str, block: int) -> Cycles:
        made = model(name, block)
        network = quantize(made, samples(made, max(steps, 8)), weight_bits=12, activation_bits=16)
        return measured(network, samples(made, steps) if simulate else None, levels=levels, objective="auto",
                        beat_blocks=AUTO, multipliers=min(multipliers, FEWER.get(name, multipliers)),
                        published={"V80": FAMILIES[name][-1]})

    found, table = rows([(f"{name}, k = {block}", {"family": name, "block": block}, partial(family, name, block))
                         for name in names or FAMILIES for block in blocks], note)
    return {"benchmark": "families", "table": table, "multipliers": multipliers, "levels": levels, "families": found}
