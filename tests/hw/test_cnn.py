"""Random small networks over images on random budgets equal golden, whatever their windows, blocks and stalls."""
import math
import re
from functools import partial

import numpy as np
import pytest

from benchmarks import small_cnn
from benchmarks.small_cnn import BITS
from circulant.hw import generate
from circulant.hw.planner import plan
from circulant.sim.kinds.conv import FloatConv
from circulant.sim.kinds.flatten import FloatFlatten
from circulant.sim.quantize.quantize import quantize
from circulant.sim.refusal import Refusal
from circulant.sim.shape.window import Window
from tests.hw.golden import blocks
from tests.hw.simulate import stream
from tests.hw.test_top import Beats
from tests.random_networks import Random

COUNT, FAST = 20, 10
MOST = 48
"""Pixels of an image behind a convolution; more only take longer to simulate."""
STALLS = ((0.0, 0.0), (0.3, 0.3), (0.0, 0.8), (0.7, 0.0))


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


model = partial(small_cnn.model, least=(1, 1), window=drawn, side=max)
"""The network of a seed."""


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
