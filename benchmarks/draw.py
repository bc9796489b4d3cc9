"""Random models of every kind of layer, with the odd geometry and the bit widths that users come with."""
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.graphs import graph
from circulant.sim.document import Document
from circulant.sim.kinds.activation import FloatActivation
from circulant.sim.kinds.conv import FloatConv
from circulant.sim.kinds.decay import FloatDecay
from circulant.sim.kinds.depthwise import FloatDepthwise
from circulant.sim.kinds.flatten import FloatFlatten
from circulant.sim.kinds.gru import FloatGru
from circulant.sim.kinds.linear import FloatLinear
from circulant.sim.kinds.lstm import FloatLstm
from circulant.sim.kinds.norm import FloatNorm
from circulant.sim.kinds.over_time import FloatOverTime
from circulant.sim.kinds.pool import FloatPool
from circulant.sim.kinds.rnn import FloatRnn
from circulant.sim.kinds.scale import FloatScale
from circulant.sim.kinds.spiral import FloatSpiral
from circulant.sim.kinds.taps import FloatTaps
from circulant.sim.passes.bitwidths import WEIGHT_SCALES
from circulant.sim.real import float_model
from circulant.sim.real.float_model import Model, Stage
from circulant.sim.shape.window import Grid, Window

__all__ = ["KINDS", "LONGEST", "Drawn", "bit_widths", "draw", "draw_graph", "perceptron", "recurrent_layers"]

CELLS = ("lstm", "gru after", "gru before", "bidirectional lstm", "bidirectional gru")
BLOCKS = (1, 2, 4, 8, 16)
KINDS = ("perceptron", "recurrent", "image", "bidirectional", "signal", "image rows", "graph")
"""Kinds of models: over vectors, over sequences in one or both directions, over images, over images of width 1, over
images whose rows become the steps of a recurrent layer, and over vectors or steps with branches that cross."""
TABLES = ("pwl", "lut")
LONGEST = 6
"""Steps of a sequence of a graph, at the most."""


@dataclass(frozen=True, eq=False)
class Drawn:
    """A random model, and what else its hardware depends on.

    Parameters:
        model: in float.
        data: inputs (N, …) of the model, of several ones by name; they calibrate it and are its test vectors.
        widths: fields of `circulant.sim.quantize.quantize.Widths`.
        multipliers: budget; too small a one is to be doubled.
        streams: interleaved sequences.
        argmax: whether the choice of the largest output follows.
    """

    kind: str
    model: Model
    data: Any
    widths: dict[str, Any]
    multipliers: int
    streams: int
    argmax: bool

    @property
    def title(self) -> str:
        chain = " → ".join(f"{layer.kind} {layer.outputs}" for layer in self.model.layers)
        given = self.data if isinstance(self.data, dict) else {"": self.data}
        shapes = " and ".join(" × ".join(map(str, each.shape[1:])) for each in given.values())
        return f"{self.kind}: {shapes} → {chain}{' → argmax' if self.argmax else ''}"


def draw(seed: int, *, samples: int = 6, chooser: np.random.Generator | None = None) -> Drawn:
    """The model of a seed; consecutive seeds take the kinds in turn.

    Parameters:
        chooser: makes all choices instead, such as `tests.choices.Choices`.
    """
    rng, more = (chooser or np.random.default_rng(each) for each in ((29, seed), (29, seed, 1)))
    kind, streams = KINDS[seed % len(KINDS)], 1
    if kind in ("recurrent", "bidirectional"):
        cells = [str(rng.choice(CELLS[:3] if kind == "recurrent" else CELLS[3:])),
                 *map(str, rng.choice(CELLS[:3] if kind == "recurrent" else CELLS, rng.integers(2)))]
        inputs, steps = int(rng.integers(1, 12)), int(rng.integers(1, 7))
        layers = recurrent_layers(rng, inputs, cells, [int(k) for k in rng.choice(BLOCKS, len(cells) + 1)])
        model, data = Model.chain(f"fuzz_{seed}", inputs, True, layers), rng.normal(0, 1, (samples, steps, inputs))
        streams = int(rng.integers(1, 4)) if kind == "recurrent" else 1
        data = np.concatenate([data] * streams)  # Full rounds of interleaved sequences.
    elif kind == "perceptron":
        inputs = int(rng.integers(1, 40))
        layers = tuple(_perceptron(rng, inputs, int(rng.integers(1, 4))))
        model = Model.chain(f"fuzz_{seed}", inputs, False, layers)
        data = rng.normal(0, 1, (samples, inputs))
    elif kind == "graph":
        sequence = bool(rng.integers(2))
        model = graph(rng, f"fuzz_{seed}", partial(_node, rng), sequence=sequence, nodes=int(rng.integers(2, 11)),
                      held=bool(more.integers(3)))
        data = rng.normal(0, 1, (samples, *([int(rng.integers(1, 7))] if sequence else []), model.flow.size))
    else:
        channels = int(rng.integers(1, 5))
        grid = (int(rng.integers(1, 9)), 1 if kind == "signal" else int(rng.integers(1, 9)))
        shape = (channels, *grid[:1 if kind == "signal" else 2])
        layers = tuple(_image(rng, channels, grid, kind == "image rows"))
        model = Model.chain(f"fuzz_{seed}", channels, False, layers, shape)
        data = rng.uniform(-1, 1, (samples, *shape))
    several = model.layers[-1].outputs > 1
    return Drawn(kind, model=model, data=data, widths=bit_widths(rng), multipliers=int(rng.choice([1, 8, 40])),
                 streams=streams, argmax=several and bool(rng.random() < 0.2))


def draw_graph(seed: int, *, samples: int = 6) -> Drawn:
    """The graph of a seed: up to 12 nodes of all kinds over vectors and steps, several inputs and outputs."""
    rng = np.random.default_rng((31, seed))
    sequence, steps = bool(rng.integers(3)), int(rng.integers(1, LONGEST + 1))
    model = graph(rng, f"graph_{seed}", partial(_node, rng), sequence=sequence, nodes=int(rng.integers(2, 11)),
                  wide=True, every=seed % 2 == 1, held=seed % 4 == 2, ports=bool(rng.integers(4)))
    data = {each.name: rng.normal(0, 1, (samples, *((steps,) if each.flow.sequence else ()), each.flow.size))
            for each in model.inputs}
    widths = bit_widths(rng) | {"activation_bits": int(rng.integers(6, 15)), "weight_bits": int(rng.integers(4, 13))}
    return Drawn("graph", model, data, widths, multipliers=int(rng.choice([1, 40, 300])), streams=1, argmax=False)


def bit_widths(rng: np.random.Generator) -> Document:
    """Bit widths, some of which contradict each other, and how activations are computed."""
    return {"weight_bits": int(rng.integers(2, 19)), "activation_bits": int(rng.integers(4, 21)),
            "spectrum_bits": int(rng.integers(2) * rng.integers(6, 25)), "twiddle_bits": int(rng.integers(4, 19)),
            "activation_table": str(rng.choice(TABLES)),
            "segments": int(rng.choice([0, 1 << int(rng.integers(2, 6))])),
            "weight_scale": str(rng.choice(WEIGHT_SCALES))}


def _columns(rng: np.random.Generator, k: int, rows: int, columns: int, *groups: int) -> NDArray[np.float64]:
    return rng.normal(0, 1 / np.sqrt(columns), (*groups, -(-rows // k), -(-columns // k), k))


def _linear(rng: np.random.Generator, name: str, inputs: int, outputs: int, *, relu: bool = False) -> Stage:
    k = int(rng.choice(BLOCKS))
    return FloatLinear(name, inputs, outputs=outputs, weight=_columns(rng, k, outputs, inputs),
                       bias=rng.normal(0, 0.5, outputs), relu=relu)


def _node(rng: np.random.Generator, kind: str, name: str, inputs: int, outputs: int = 0) -> Stage:
    """A layer of a graph, see `benchmarks.graphs.graph`."""
    if kind == "linear":
        return _linear(rng, name, inputs, outputs, relu=bool(rng.integers(2)))
    if kind == "scale":
        return FloatScale(name, inputs, rng.normal(0, 1, inputs), rng.normal(0, 0.5, inputs), bool(rng.integers(2)))
    if kind == "norm":
        return FloatNorm(name, inputs, str(rng.choice(("layer", "rms"))), rng.normal(1, 0.4, inputs),
                         rng.normal(0, 0.5, inputs))
    if kind == "taps":
        k = int(rng.choice((1, 2, 4, 8)))
        return FloatTaps(name, inputs, int(rng.integers(2, 5)), int(rng.integers(1, 4)), -(-inputs // k) * k)
    if kind == "decay":
        if inputs % 2 or rng.integers(2):
            return FloatDecay(name, inputs, rng.uniform(-1, 1, inputs))
        size, angle = rng.uniform(0, 1, inputs // 2), rng.uniform(-np.pi, np.pi, inputs // 2)
        return FloatSpiral(name, inputs, size * np.cos(angle), size * np.sin(angle))
    if kind == "gate":
        return FloatActivation(name, inputs, "sigmoid")
    if kind == "activation":
        return FloatActivation(name, inputs, str(rng.choice(("tanh", "sigmoid", "relu"))))
    if kind == "last" and rng.integers(2):
        return FloatOverTime(name, inputs, str(rng.choice(("mean", "max", "last"))))
    return _cell(rng, str(rng.choice((*CELLS[:3], "rnn"))), name=name, inputs=inputs, hidden=int(rng.integers(1, 12)),
                 k=int(rng.choice(BLOCKS)), returns="last" if kind == "last" else "sequence")


def _perceptron(rng: np.random.Generator, inputs: int, depth: int) -> list[Stage]:
    layers: list[Stage] = []
    for n in range(depth):
        outputs = int(rng.integers(1, 40 if n < depth - 1 else 9))
        layers.append(_linear(rng, f"fc{n}", inputs, outputs, relu=bool(rng.integers(2))))
        inputs = outputs
    return layers


def recurrent_layers(rng: np.random.Generator, inputs: int, cells: list[str], blocks: list[int]) -> tuple[Stage, ...]:
    """Recurrent layers, one for each of ``cells``, and a fully connected one; their block sizes are ``blocks``."""
    layers: list[Stage] = []
    for n, (cell, k) in enumerate(zip(cells, blocks, strict=False)):
        returns = "sequence" if n < len(cells) - 1 or rng.random() < 0.5 else "last"
        layers.append(_recurrent(rng, cell, name=f"layer_{n}", inputs=inputs, hidden=int(rng.integers(1, 2 * k + 8)),
                                 k=k, returns=returns))
        inputs = layers[-1].outputs
    return *layers, _product(rng, "out", inputs, int(rng.integers(1, 9)), blocks[-1])


def perceptron(rng: np.random.Generator, inputs: int, blocks: list[int]) -> tuple[Stage, ...]:
    """Fully connected layers, whose block sizes are ``blocks``."""
    sizes = [inputs, *(int(rng.integers(1, 5 * k + 8)) for k in blocks)]
    return tuple(_product(rng, f"layer_{n}", sizes[n], sizes[n + 1], k, relu=True) for n, k in enumerate(blocks))


def _product(rng: np.random.Generator, name: str, inputs: int, outputs: int, k: int, *,
             relu: bool = False) -> FloatLinear:
    return FloatLinear(name, inputs, outputs, rng.normal(0, 0.5, (-(-outputs // k), -(-inputs // k), k)),
                       rng.normal(0, 0.5, outputs), relu=relu)


def _recurrent(rng: np.random.Generator, cell: str, name: str, inputs: int, hidden: int, k: int,
               returns: str) -> Stage:
    if not cell.startswith("bidirectional"):
        return _cell(rng, cell, name=name, inputs=inputs, hidden=hidden, k=k, returns=returns)
    forward, backward = (_cell(rng, cell.split()[1], name=f"{name}.{direction}", inputs=inputs, hidden=hidden, k=k,
                               returns=returns)
                         for direction in ("forward", "backward"))
    return float_model.Bidirectional(name, forward, backward)


def _cell(rng: np.random.Generator, cell: str, name: str, inputs: int, hidden: int, k: int,
          returns: str) -> FloatLstm | FloatGru | FloatRnn:
    if cell == "rnn":
        return FloatRnn(name, inputs=inputs, hidden=hidden, weight_ih=_columns(rng, k, hidden, inputs, 1),
                        weight_hh=_columns(rng, k, hidden, hidden, 1), bias_ih=rng.normal(0, 0.5, (1, hidden)),
                        bias_hh=np.zeros((1, hidden)), returns=returns,
                        nonlinearity=str(rng.choice(("identity", "tanh", "relu"))))
    if cell == "lstm":
        projection = int(rng.integers(1, hidden + 1)) if rng.random() < 0.5 else 0
        outputs = projection or hidden
        return FloatLstm(
            name, inputs=inputs, hidden=hidden, outputs=outputs, weight_ih=_columns(rng, k, hidden, inputs, 4),
            weight_hh=_columns(rng, k, hidden, outputs, 4),
            bias_ih=rng.normal(0, 0.5, (4, hidden)), bias_hh=rng.normal(0, 0.5, (4, hidden)),
            projection=_columns(rng, k, projection, hidden) if projection else None,
            peephole=rng.normal(0, 0.5, (3, hidden)) if rng.random() < 0.5 else None, returns=returns)
    return FloatGru(name, inputs=inputs, hidden=hidden, weight_ih=_columns(rng, k, hidden, inputs, 3),
                    weight_hh=_columns(rng, k, hidden, hidden, 3),
                    bias_ih=rng.normal(0, 0.5, (3, hidden)), bias_hh=rng.normal(0, 0.5, (3, hidden)),
                    returns=returns, reset=cell.split()[-1] if " " in cell else "after")


def _window(rng: np.random.Generator, grid: Grid, *, pool: bool = False) -> Window:
    """A window that fits the padded image; its padding may reach the kernel, its stride skip pixels, and that of a
    convolution have gaps."""
    kernel, stride, padding, gaps = [], [], [], []
    for size in grid:
        kernel.append(int(rng.integers(1, 5)))
        least = max(0, -(-(kernel[-1] - size) // 2))  # That the kernel fits.
        padding.append(max(least, int(rng.integers(0, kernel[-1] // 2 + 1 if pool else 3))))
        stride.append(int(rng.integers(1, 4)))
        most = (size + 2 * padding[-1] - 1) // max(1, kernel[-1] - 1)
        gaps.append(1 if pool else int(rng.integers(1, max(1, min(3, most)) + 1)))
    return Window((kernel[0], kernel[1]), (stride[0], stride[1]), (padding[0], padding[1]), (gaps[0], gaps[1]))


def _conv(rng: np.random.Generator, name: str, channels: int, outputs: int, grid: Grid, window: Window) -> Any:
    k = int(rng.choice(BLOCKS[:4]))
    return FloatConv(name, inputs=channels, outputs=outputs, grid=grid, window=window,
                     weight=_columns(rng, k, outputs, channels, window.positions),
                     bias=rng.normal(0, 0.3, outputs), relu=bool(rng.integers(2)))


def _image(rng: np.random.Generator, channels: int, grid: Grid, rows: bool) -> list[Stage]:
    """Convolutions, with poolings, scales, residual sums and depthwise ones between them; then vectors, or steps where
    ``rows``."""
    layers: list[Stage] = []
    for n in range(int(rng.integers(1, 4))):
        outputs, window = int(rng.integers(1, 9)), _window(rng, grid)
        layers.append(_conv(rng, f"conv{n}", channels, outputs=outputs, grid=grid, window=window))
        channels, grid = outputs, window.outputs("", grid)
        after = rng.random()
        if after < 0.3:
            window = _window(rng, grid, pool=True)
            layers.append(FloatPool(f"pool{n}", channels, grid, window, ("max", "average")[rng.integers(2)]))
            grid = window.outputs("", grid)
        elif after < 0.5:
            layers.append(_scale(rng, f"scale{n}", channels))
        elif after < 0.7:
            layers.append(_residual(rng, f"sum{n}", channels, grid))
        elif after < 0.9:
            window = _window(rng, grid)
            layers.append(_depthwise(rng, f"depthwise{n}", channels, grid, window))
            grid = window.outputs("", grid)
    layers.append(FloatFlatten("flatten", channels, grid, ("pixels", "channels")[rng.integers(2)], rows=rows))
    size = layers[-1].outputs
    if rows:
        cell, k = str(rng.choice(CELLS)), int(rng.choice(BLOCKS[:4]))
        returns = "last" if rng.random() < 0.8 else "sequence"
        layers.append(_recurrent(rng, cell, name="cell", inputs=size, hidden=int(rng.integers(1, 2 * k + 4)), k=k,
                                 returns=returns))
        size = layers[-1].outputs
    layers.append(_linear(rng, "out", size, int(rng.integers(1, 9))))
    return layers


def _depthwise(rng: np.random.Generator, name: str, channels: int, grid: Grid, window: Window) -> Any:
    return FloatDepthwise(name, channels, grid, window, weights=rng.normal(0, 0.5, (window.positions, channels)),
                          bias=rng.normal(0, 0.3, channels), relu=bool(rng.integers(2)))


def _scale(rng: np.random.Generator, name: str, channels: int) -> Any:
    return FloatScale(name, channels, rng.normal(0, 1, channels), rng.normal(0, 0.3, channels),
                      bool(rng.integers(2)))


def _residual(rng: np.random.Generator, name: str, channels: int, grid: Grid) -> Stage:
    """A residual sum around a convolution that keeps the size; at times with a scale beside it."""
    body = _conv(rng, f"{name}_body", channels, outputs=channels, grid=grid, window=Window((3, 3), padding=(1, 1)))
    shortcut = (_scale(rng, f"{name}_shortcut", channels),) if rng.integers(2) else ()
    return float_model.Residual(name, channels, grid=grid, body=(body,), shortcut=shortcut, relu=bool(rng.integers(2)))
