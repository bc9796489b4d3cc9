"""The bound of golden's error over images: it holds, is not loose, and needs no layer that it does not know."""
import dataclasses

import numpy as np
import pytest

from circulant.sim.error.error_bound import error_bound
from circulant.sim.kinds.conv import FloatConv
from circulant.sim.kinds.flatten import FloatFlatten
from circulant.sim.kinds.linear import FloatLinear
from circulant.sim.kinds.pool import FloatPool
from circulant.sim.kinds.scale import FloatScale
from circulant.sim.quantize.quantize import quantize
from circulant.sim.quantize.quantize_like import quantize_like
from circulant.sim.real import float_model
from circulant.sim.refusal import Refusal
from circulant.sim.shape.window import Window

RNG = np.random.default_rng(5)


def conv(name, inputs, outputs, grid, *, k, size=3, relu=True, stride=(1, 1)):
    window = Window((size, size), stride, (size // 2, size // 2))
    shape = size * size, -(-outputs // k), -(-inputs // k), k
    return FloatConv(name, inputs=inputs, outputs=outputs, grid=grid, window=window,
                     weight=RNG.normal(0, 0.2, shape), bias=RNG.normal(0, 0.1, outputs), relu=relu)


def linear(inputs, outputs, k):
    return FloatLinear("out", inputs, outputs, RNG.normal(0, 0.2, (-(-outputs // k), -(-inputs // k), k)),
                       RNG.normal(0, 0.1, outputs))


def model(*layers, channels=3, grid=(8, 6)):
    return float_model.Model.chain("images", channels, False, layers, (channels, *grid))


def residual(channels, grid, shortcut=()):
    body = (conv("body1", channels, channels, grid, k=4), conv("body2", channels, channels, grid, k=4, relu=False))
    return float_model.Residual("sum", channels, grid, body, shortcut, relu=True)


MODELS = {
    "convolution": model(conv("conv", 3, 6, (8, 6), k=2), FloatFlatten("flat", 6, (8, 6), "channels")),
    "maximum": model(conv("conv", 3, 4, (8, 6), k=1),
                     FloatPool("pool", 4, (8, 6), Window((2, 2), (2, 2)), "max"),
                     FloatFlatten("flat", 4, (4, 3), "channels"), linear(48, 5, 4)),
    "mean": model(conv("conv", 3, 4, (8, 6), k=1, relu=False),
                  FloatPool("pool", 4, (8, 6), Window((3, 3), (2, 2), (1, 1)), "average"),
                  FloatFlatten("flat", 4, (4, 3), "pixels"), linear(48, 5, 4)),
    "scale": model(conv("conv", 3, 4, (8, 6), k=4),
                   FloatScale("norm", 4, np.array([0.7, -1.2, 0.1, 1.9]), np.array([0.3, 0.2, -0.1, 0.0]), True),
                   FloatFlatten("flat", 4, (8, 6), "pixels")),
    "residual": model(conv("conv", 3, 8, (8, 6), k=1), residual(8, (8, 6)),
                      FloatPool("mean", 8, (8, 6), Window((8, 6)), "average"),
                      FloatFlatten("flat", 8, (1, 1), "pixels"), linear(8, 5, 4)),
    "two ways": model(conv("conv", 3, 8, (8, 6), k=1),
                      residual(8, (8, 6), (conv("aside", 8, 8, (8, 6), k=8, size=1, relu=False),)),
                      FloatFlatten("flat", 8, (8, 6), "channels")),
}


def images(count, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, (count, 3, 8, 6))


@pytest.mark.parametrize("widths", [{}, {"weight_bits": 7}, {"activation_bits": 11}], ids=str)
@pytest.mark.parametrize("name", MODELS)
def test_the_bound_holds_and_is_not_loose(name, widths):
    exact, x = MODELS[name], images(6)
    network = quantize(exact, x, **widths)
    bound, error = error_bound(network, exact, x), np.abs(network.run(x).real - exact.run(x))
    assert bound.shape == error.shape
    assert (error <= bound).all(), f"{(error > bound).sum()} of {error.size} outputs are further off than the bound"
    assert (error[bound > 0] / bound[bound > 0]).max() > 0.02, "a mean of 48 pixels evens their errors out"
    assert bound.max() < (0.01 if not widths else 0.5)


def test_saturation_within_a_branch_is_refused():
    exact, x = MODELS["residual"], images(6)
    with pytest.raises(Refusal, match=r"^The bound of golden's error holds where nothing saturates, but .* reaches"):
        error_bound(quantize(exact, 0.05 * x), exact, x)


@pytest.mark.parametrize("name", MODELS)
def test_another_network_in_the_same_formats(name):
    exact, x = MODELS[name], images(6)
    rule = quantize(exact, x)
    assert quantize_like(exact, rule).hash == rule.hash
    smaller = exact.mapped(_scaled)
    made = quantize_like(smaller, rule)
    assert made.hash != rule.hash
    golden, real = made.run(x).real, smaller.run(x)
    assert np.abs(golden - real).max() < 0.02 * np.abs(real).max()


def test_branches_of_another_structure_are_refused():
    rule = quantize(MODELS["two ways"], images(4))
    with pytest.raises(Refusal, match=r"^Network 'images' must have the layers of 'images', \['conv', 'conv', 'conv', "
                                      r"'conv', 'add', .*\], not \['conv', 'conv', 'conv', 'add', "):
        quantize_like(MODELS["residual"], rule)


def _scaled(layer):
    return dataclasses.replace(layer, **{name: 0.8 * value for name, value in vars(layer).items()
                                         if isinstance(value, np.ndarray)})
