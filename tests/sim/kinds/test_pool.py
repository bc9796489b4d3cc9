import dataclasses

import numpy as np
import pytest
import torch
from torch.nn import functional

from circulant.sim.arith.fixed import Format
from circulant.sim.kinds.pool import Pool, reciprocal
from circulant.sim.refusal import Refusal
from circulant.sim.shape.window import Window


def pool(mode, grid=(6, 5), window=None, output=(12, 8)):
    given = Format(10, 6)
    return Pool("pool", inputs=3, grid=grid, window=window or Window((2, 2), (2, 2)), mode=mode, input_format=given,
                output_format=given if mode == "max" else Format(*output))


IMAGES = np.random.default_rng(0).integers(-512, 512, (4, 6, 5, 3))
WINDOWS = [Window((2, 2), (2, 2)), Window((3, 2), (2, 1), (1, 1)), Window((6, 5)), Window((1, 1))]


@pytest.mark.parametrize("window", WINDOWS)
def test_the_maximum_equals_torch(window):
    torch_images = torch.from_numpy(IMAGES).movedim(3, 1).double()
    wanted = functional.max_pool2d(torch_images, window.kernel, window.stride, window.padding).movedim(1, 3)
    assert np.array_equal(pool("max", window=window)(IMAGES), wanted.numpy())


@pytest.mark.parametrize("window", WINDOWS)
def test_the_mean_is_rounded_once(window):
    torch_images = torch.from_numpy(IMAGES).movedim(3, 1).double()
    exact = functional.avg_pool2d(torch_images, window.kernel, window.stride, window.padding).movedim(1, 3).numpy()
    got, error = pool("average", window=window)(IMAGES), 2.0 ** -16 * 512
    assert np.abs(got / 4 - exact).max() <= 1 / 8 + error


@pytest.mark.parametrize("count", range(1, 70))
def test_reciprocal(count):
    factor, bits = reciprocal(count)
    assert abs(factor * count / 2 ** bits - 1) <= (0 if count & (count - 1) == 0 else 2.0 ** -16)
    assert factor.bit_length() <= 17


def test_refusals():
    with pytest.raises(Refusal, match=r"^Layer 'pool' must pool by 'max' or 'average', not 'least'; choose one$"):
        pool("least")
    with pytest.raises(Refusal, match=r"^Layer 'pool': the padding must be at most half of the kernel"):
        pool("max", window=Window((2, 2), padding=(2, 0)))
    with pytest.raises(Refusal, match=r"^Layer 'pool': a maximum must keep the Format"):
        dataclasses.replace(pool("max"), output_format=Format(9, 6))


@pytest.mark.parametrize("output", [Format(16, -60), Format(16, 60)])
def test_sums_beyond_int64_are_refused(output):
    given = Format(16, 8)
    with pytest.raises(Refusal, match=r"^Layer 'pool': the sums of 4 values must fit into 63 bits, but with the"):
        Pool("pool", inputs=1, grid=(4, 4), window=Window((2, 2)), mode="average", input_format=given,
             output_format=output)
    assert Pool("pool", inputs=1, grid=(4, 4), window=Window((2, 2)), mode="max", input_format=given,
                output_format=given)
