"""Random small networks over images on random budgets equal golden, whatever their windows, blocks and stalls."""
import math
import re

import numpy as np
import pytest

from circulant.hw import generate
from circulant.hw.planner import plan
from circulant.sim.kinds.conv import FloatConv
from circulant.sim.kinds.flatten import FloatFlatten
from circulant.sim.kinds.gru import FloatGru
from circulant.sim.kinds.linear import FloatLinear
from circulant.sim.kinds.pool import FloatPool
from circulant.sim.kinds.scale import FloatScale
from circulant.sim.quantize.quantize import quantize
from circulant.sim.real import float_model
from circulant.sim.refusal import Refusal
from circulant.sim.shape.window import Window
from tests.hw.golden import blocks
from tests.hw.simulate import stream
from tests.hw.test_top import Beats
from tests.random_networks import Random

COUNT, FAST = 20, 10
BITS = {"activation_bits": 9, "weight_bits": 7, "twiddle_bits": 8}
MOST = 48
"""Pixels of an image behind a convolution; more only take longer to simulate."""
STALLS = ((0.0, 0.0), (0.3, 0.3), (0.0, 0.8), (0.7, 0.0))


def first_columns(rng, k, outputs, inputs, *positions):
    return rng.normal(0, 0.5, (*positions, -(-outputs // k), -(-inputs // k), k))


def drawn(rng, grid):
    """A window of any geometry, kernels beyond the image and padding beyond the kernel among them, with few outputs."""
    while True:
        kernel, stride = (tuple(map(int, rng.integers(1, 4, 2))) for _ in range(2))
        window = Window(kernel, stride, tuple(int(rng.integers(0, size + 2)) for size in kernel))
        try:
            if math.prod(window.outputs("", grid)) <= MOST:
                return window
        except Refusal:
            pass


def model(seed):
    """Convolutions, some with a pooling behind them, what `around` adds, then a fully connected layer, for some behind
    a recurrent one."""
    rng = np.random.default_rng((11, seed))
    channels, grid = int(rng.integers(1, 4)), (int(rng.integers(1, 8)), int(rng.integers(1, 8)))
    shape, layers = (channels, *grid), []
    for n in range(1 + seed % 2):
        window = drawn(rng, grid)
        outputs, k = int(rng.integers(1, 9)), int(rng.choice([1, 2, 4]))
        layers.append(FloatConv(f"conv{n}", inputs=channels, outputs=outputs, grid=grid, window=window,
                                weight=first_columns(rng, k, outputs, channels, window.positions),
                                bias=rng.normal(0, 0.3, outputs), relu=bool(rng.integers(2))))
        channels, grid = outputs, window.outputs("", grid)
        if max(grid) > 1 and rng.integers(2):
            pool = Window(*[tuple(min(2, size) for size in grid)] * 2)
            layers.append(FloatPool(f"pool{n}", channels, grid, pool, ("max", "average")[rng.integers(2)]))
            grid = pool.outputs("", grid)
    channels, grid = around(rng, seed, layers, channels, grid)
    steps = seed % 8 == 7
    layers.append(FloatFlatten("flatten", channels, grid, ("pixels", "channels")[rng.integers(2)], rows=steps))
    size, outputs, k = layers[-1].outputs, int(rng.integers(1, 6)), int(rng.choice([1, 2, 4]))
    if steps:
        hidden, k = 4, int(rng.choice([2, 4]))
        layers.append(FloatGru("gru", size, hidden, first_columns(rng, k, hidden, size, 3),
                               first_columns(rng, k, hidden, hidden, 3), *rng.normal(0, 0.4, (2, 3, hidden))))
        size = hidden
    layers.append(FloatLinear("out", size, outputs, first_columns(rng, k, outputs, size),
                              rng.normal(0, 1, outputs)))
    return float_model.Model.chain("random", shape[0], False, tuple(layers), shape)


def around(rng, seed, layers, channels, grid):
    """A scale, a residual sum, or a pooling whose windows overlap, for some; returns channels and size behind them."""
    if seed % 3 == 0:
        layers.append(FloatScale("norm", channels, rng.normal(0, 1, channels), rng.normal(0, 0.3, channels),
                                 bool(rng.integers(2))))
    if seed % 3 == 1:
        window, k = Window((3, 3), padding=(1, 1)), int(rng.choice([1, 2]))
        body = FloatConv("body", inputs=channels, outputs=channels, grid=grid, window=window,
                         weight=first_columns(rng, k, channels, channels, 9), bias=rng.normal(0, 0.3, channels))
        norm = FloatScale("shortcut", channels, rng.normal(0, 1, channels), rng.normal(0, 0.3, channels))
        layers.append(float_model.Residual("sum", channels, grid=grid, body=(body,),
                                           shortcut=(norm,) if rng.integers(2) else (), relu=True))
    if seed % 3 == 2:
        window = Window((3, 2), (2, 1), (1, 1))
        layers.append(FloatPool("overlap", channels, grid, window, ("max", "average")[rng.integers(2)]))
        grid = window.outputs("", grid)
    return channels, grid


def affordable(network, budget):
    """The budget, or twice as much until every layer has a lane."""
    try:
        plan(network, budget)
    except Refusal:
        return affordable(network, 2 * budget)
    return budget


def pixels(image, top):
    """The beats of an image, some pixels side by side."""
    return blocks([image.reshape(-1, top.entries[0].pixels * image.shape[-1])], top.input_block)


@pytest.mark.parametrize("seed", [*range(FAST), *(pytest.param(seed, marks=pytest.mark.soak)
                                                 for seed in range(FAST, COUNT))])
def test_a_random_network_equals_golden(seed):
    rng, made = np.random.default_rng((13, seed)), model(seed)
    images = rng.uniform(-1, 1, (3, *made.shape))
    network = quantize(made, images, **BITS)
    dut = Beats(network, affordable(network, int(rng.integers(10, 60))))
    vectors = network.vectors(images)
    given = [beat for image in vectors.inputs for beat in pixels(image, dut.top)]
    wanted = [beat for row in vectors.outputs for beat in blocks([row[None]], dut.top.output_block)]
    stall_i, stall_o = STALLS[seed % len(STALLS)]
    assert stream(dut, given, stall_i=stall_i, stall_o=stall_o, seed=seed, quiet=1500,
                  count=len(wanted)) == wanted


def test_the_networks_differ():
    """What a geometry is made of comes up with all its values."""
    convs = [layer for seed in range(COUNT) for layer in model(seed).layers if isinstance(layer, FloatConv)]
    windows, axes = [conv.window for conv in convs], range(2)
    assert {window.kernel[axis] for window in windows for axis in axes} == {1, 2, 3}
    assert {window.stride[axis] for window in windows for axis in axes} == {1, 2, 3}
    assert {window.padding[axis] - window.kernel[axis] for window in windows for axis in axes} >= {-3, -2, -1, 0, 1}
    assert {1, 2} < {size for conv in convs for size in conv.grid}
    assert any(window.kernel[axis] > conv.grid[axis] for conv, window in zip(convs, windows, strict=True)
               for axis in axes)
    assert any(layer.output_grid[0] == 1 for layer in convs) and any(layer.output_grid[1] == 1 for layer in convs)


def test_an_image_of_the_wrong_size_is_flagged_and_the_next_is_right():
    made = model(0)
    images = np.random.default_rng(0).uniform(-1, 1, (3, *made.shape))
    network = quantize(made, images, **BITS)
    dut, vectors = Beats(network, 60), network.vectors(images)
    given = [pixels(image, dut.top) for image in vectors.inputs]
    wanted = [blocks([row[None]], dut.top.output_block) for row in vectors.outputs]
    short = [*given[0][:-3], given[0][-1]]
    got = stream(dut, [*given[0], *short, *given[1], *given[2][:-1], {**given[2][-1], "last": 0}, *given[2], *given[0]],
                 stall_i=0.2, stall_o=0.2, quiet=1500)
    each = len(wanted[0])
    assert [got[n * each:n * each + each] for n in (0, 2, 4)] == [wanted[0], wanted[1], wanted[0]]
    assert len(got) == 5 * each


@pytest.mark.parametrize("seed", [0, 1, 7])
def test_the_verilog_has_the_modules_that_it_needs_and_no_others(seed):
    made = model(seed)
    images = np.random.default_rng(0).uniform(-1, 1, (3, *made.shape))
    text = generate(quantize(made, images, **BITS), multipliers=60).verilog
    defined = [name.lstrip("\\") for name in re.findall(r"^module (\\\S+ |\w+)", text, re.M)]
    used = {name.lstrip("\\") for name in re.findall(r"^  (?:\(\*.*?\*\) )?(\\\S+ |\w+) +(?:#\(|\S+ +\()", text, re.M)}
    assert len(defined) == len(set(defined)) > len(made.layers)
    assert set(defined) - used == {"circulant_top"}


@pytest.mark.parametrize("cell", ["gru", "none"])
def test_rows_that_are_steps_give_an_output_each(cell):
    """Behind a recurrent layer that returns all of them, and behind a convolution along one axis."""
    r, window = Random(4), Window((3, 1 if cell == "none" else 2), padding=(1, 0))
    grid = (5, 1) if cell == "none" else (5, 4)
    rows = window.outputs("", grid)[1] * 3
    steps = [r.gru("gru", rows, 6, 2, "sequence")] if cell == "gru" else []
    network = r.network([r.conv("conv", 2, 3, 1, grid=grid, window=window),
                         FloatFlatten("rows", 3, window.outputs("", grid), "pixels", True),
                         *steps, r.linear("out", 6 if steps else rows, 3, 2)], 2, shape=(2, *grid)[:2 + bool(steps)])
    dut, images = Beats(network, 30), np.random.default_rng(0).uniform(-1, 1, (3, *network.shape))
    vectors = network.vectors(images)
    assert vectors.outputs.shape == (3, network.output_vectors, 3) == (3, 5, 3)
    given = [beat for image in vectors.inputs for beat in pixels(image, dut.top)]
    wanted = blocks(list(vectors.outputs), dut.top.output_block)
    assert stream(dut, given, stall_i=0.2, stall_o=0.4, quiet=1500, count=len(wanted)) == wanted
