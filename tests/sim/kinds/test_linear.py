import numpy as np
import pytest

from circulant.sim.arith.fixed import Format
from circulant.sim.kinds.linear import Linear
from tests.refused import refused
from tests.sim import definitions, samples


@pytest.mark.parametrize(("inputs", "outputs", "k"), [
    (1, 1, 1), (5, 7, 1), (5, 7, 2), (8, 8, 4), (5, 7, 4), (9, 3, 8), (20, 33, 16)])
def test_equals_the_plain_product(inputs, outputs, k):
    layer = samples.linear(inputs, outputs, k)
    x = np.random.default_rng(k).integers(-2 ** 15, 2 ** 15, (20, inputs))
    assert layer(x).tolist() == [definitions.product(layer.product, row)[:outputs] for row in x.tolist()]


def test_relu():
    plain, layer = samples.linear(9, 7, 4), samples.linear(9, 7, 4, relu=True)
    x = np.random.default_rng(0).integers(-2 ** 15, 2 ** 15, (20, 9))
    assert (plain(x) < 0).any()
    assert np.array_equal(layer(x), np.maximum(plain(x), 0))


@pytest.mark.parametrize("shape", [(), (4,), (2, 3)])
def test_axes_are_kept(shape):
    y = samples.linear(5, 7, 4)(np.zeros((*shape, 5), np.int64))
    assert (y.shape, y.dtype) == ((*shape, 7), np.int64)


def test_bias_alone():
    layer = samples.linear(5, 7, 4, weights="zero")
    assert layer(np.full((1, 5), 1000)).tolist() == [layer.product.bias[:7].tolist()]


def test_formats_and_products():
    layer = samples.linear(input=(12, 3), output=(10, 2))
    assert (layer.kind, layer.input_format, layer.output_format) == ("linear", Format(12, 3), Format(10, 2))
    assert layer.products == {"product": layer.product}


@pytest.mark.parametrize(("inputs", "outputs", "rule"), [
    (9, 7, "8x12"), (4, 7, "8x4"), (5, 9, "12x8"), (5, 4, "4x8")])
def test_init_wrong_size(inputs, outputs, rule):
    assert refused(Linear, "head", inputs, outputs, samples.linear(5, 7, 4).product) == (
        f"Layer 'head': the matrix for {inputs} inputs and {outputs} outputs must be {rule} in blocks of 4, not 8x8; "
        "export it again")
