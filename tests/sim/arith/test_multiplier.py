"""Approximate products by their definitions, their sums in the spectral domain, and networks that are made of them."""
import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from circulant.sim.arith.circulant import JointProduct
from circulant.sim.arith.multiplier import check_multiplier, multiplied, worst_error
from circulant.sim.error.error_bound import error_bound
from circulant.sim.golden.network import Network
from circulant.sim.quantize.quantize import quantize
from circulant.sim.quantize.quantize_like import quantize_like
from circulant.sim.refusal import Refusal
from tests.sim import samples

KINDS = ("truncated:1", "truncated:5", "mitchell")
integers = st.integers(-(1 << 17), (1 << 17) - 1)


def defined(name, a, b):
    """From the papers: an array of partial products without its lowest columns, or logarithms."""
    if name == "mitchell":
        x, y = abs(a), abs(b)
        if not x or not y:
            return 0
        log = [size.bit_length() - 1 + size / (1 << size.bit_length() - 1) - 1 for size in (x, y)]
        whole, part = divmod(sum(log), 1)
        return round((1 + part) * 2 ** int(whole)) * (1 if (a < 0) == (b < 0) else -1)
    columns = int(name.partition(":")[2])
    return sum(((a >> i & 1) * (b >> j & 1) << i + j) * (-1) ** ((i == 19) + (j == 19))
               for i in range(20) for j in range(20) if i + j >= columns)


@pytest.mark.parametrize("name", KINDS)
@given(a=integers, b=integers)
def test_products_are_their_definitions(name, a, b):
    found = int(multiplied(name, a, b))
    assert found == defined(name, a, b) == int(multiplied(name, b, a))
    assert abs(found - a * b) <= worst_error(name, abs(a * b))
    assert int(multiplied("exact", a, b)) == a * b


@pytest.mark.parametrize("name", KINDS)
def test_the_bound_of_a_product_is_reached(name):
    a, b = np.meshgrid(np.arange(-64, 64), np.arange(-64, 64))
    error = np.abs(multiplied(name, a, b) - a * b)
    assert (error / [[worst_error(name, x) or 1 for x in row] for row in np.abs(a * b)]).max() == pytest.approx(1)
    assert not multiplied(name, 0, b).any()


@pytest.mark.parametrize("name", ["exact", *KINDS])
@pytest.mark.parametrize("k", [1, 2, 4, 8])
def test_sums_are_those_of_three_products_for_a_complex_bin(k, name):
    product = dataclasses.replace(samples.product(3, 2, k), multiplier=name)
    x = np.random.default_rng(k).integers(product.spectrum.lo, product.spectrum.hi + 1, (5, 2, k))
    wanted = np.zeros((5, 3, k), np.int64)
    for n in range(min(k, 2)):
        wanted[..., n] = multiplied(name, product.weights[..., n], x[:, None, :, n]).sum(-1)
    for n in range(2, k, 2):
        c, d, a, b = *(product.weights[..., n + i] for i in (0, 1)), *(x[:, None, :, n + i] for i in (0, 1))
        s1, s2, s3 = (multiplied(name, *each).sum(-1) for each in ((a + b, c), (a, d - c), (b, c + d)))
        wanted[..., n], wanted[..., n + 1] = s1 - s3, s1 + s2
    assert product.accumulate(x).tolist() == wanted.tolist()
    joint = JointProduct((product, dataclasses.replace(product, bias=product.bias * 0)))
    both = joint.sums(*[x.reshape(5, 2, k).T] * 2).astype(np.int64).T.swapaxes(1, 2).reshape(5, k, 3).swapaxes(1, 2)
    assert both.tolist() == (2 * wanted).tolist()


@pytest.mark.parametrize("name", KINDS[1:])
def test_a_network_keeps_its_multiplier_and_stays_within_the_bound(name, tmp_path):
    model = samples.model(scale=0.3)
    x = samples.data(model)
    exact, network = (quantize(model, x, weight_bits=8, activation_bits=8, multiplier=each) for each in ("exact", name))
    assert (exact.multiplier, network.multiplier) == ("exact", name)
    assert "multiplier" not in str(exact.body) and exact.hash != network.hash
    network.save(tmp_path)
    again = Network.load(tmp_path)
    assert (again.hash, again.multiplier) == (network.hash, name)
    found = network.run(x)
    assert (again.run(x).integers == found.integers).all()
    assert (found.integers != exact.run(x).integers).any()
    assert (quantize_like(model, network).run(x).integers == found.integers).all()
    assert (np.abs(found.real - model.run(x)) <= error_bound(network, model, x)).all()


@pytest.mark.parametrize("name", ["truncated", "truncated:0", "truncated:x", "mitchel", "Mitchell", 3])
def test_an_unknown_multiplier_is_refused(name):
    rule = ("^A multiplier must be one of exact, truncated:N, mitchell with 1 to 99 columns N that are left out, not "
            f"{name!r}")
    if "truncated" in str(name):  # A hint of 'truncated:N', which is near, would be refused in turn.
        rule += "; write truncated:5 for five$"
    with pytest.raises(Refusal, match=rule):
        check_multiplier(name)


def test_what_contradicts_a_multiplier_is_refused():
    product = samples.product(weight=(6, 5))
    with pytest.raises(Refusal, match=r"^A truncated multiplier must leave out fewer columns than its narrower operand "
                                      "has bits, 6, but 'truncated:6' does not; leave out fewer$"):
        dataclasses.replace(product, multiplier="truncated:6")
    network = quantize(model := samples.model(), samples.data(model), multiplier="mitchell")
    gru, linear = network.layers
    other = dataclasses.replace(linear, product=dataclasses.replace(linear.product, multiplier="exact"))
    with pytest.raises(Refusal, match=r"^The products of a network must be those of one multiplier, not of exact and "
                                      "mitchell; quantize it again$"):
        samples.rebuilt(network, gru, other)
