"""A kind is one file: a sample kind of a file of its own goes through all of sim."""
from pathlib import Path

import numpy as np
import pytest

from circulant.sim.error.error_bound import error_bound
from circulant.sim.error.ranges import analyse, worst_cases
from circulant.sim.exercise.choose import exercise
from circulant.sim.golden.network import Network
from circulant.sim.kinds import registry
from circulant.sim.kinds.linear import FloatLinear
from circulant.sim.quantize.bitwidth_cost import weight_bits
from circulant.sim.quantize.bitwidth_space import searched_bitwidths
from circulant.sim.quantize.quantize import quantize
from circulant.sim.quantize.quantize_like import quantize_like
from circulant.sim.real import float_file
from circulant.sim.real.float_model import Model
from circulant.sim.refusal import Refusal
from tests.sample_kind import gain

RNG = np.random.default_rng(0)
X = RNG.normal(0, 1, (20, 6))


def linear(name, inputs, outputs):
    return FloatLinear(name, inputs, outputs, RNG.normal(0, 0.5, (-(-outputs // 4), -(-inputs // 4), 4)),
                       RNG.normal(0, 0.5, outputs))


@pytest.fixture
def registered(monkeypatch):
    """As if its file were in the folder."""
    monkeypatch.setitem(registry.KINDS, "gain", gain.KIND)


@pytest.fixture
def model(registered):
    return Model.chain("sample", 6, False, [linear("first", 6, 8), gain.FloatGain("gain", 8), linear("last", 8, 3)])


def test_float_doubles_and_survives_its_file(model, tmp_path):
    first, last = model.layers[0], model.layers[2]
    assert np.array_equal(model.run(X), last(2 * first(X)))
    float_file.save(model, tmp_path / "float.npz")
    assert np.array_equal(float_file.load(tmp_path / "float.npz").run(X), model.run(X))


def test_golden_survives_its_file(model, tmp_path):
    network = quantize(model, X)
    network.save(tmp_path)
    loaded = Network.load(tmp_path)
    assert (loaded.hash, [layer.kind for layer in loaded.layers]) == (network.hash, ["linear", "gain", "linear"])
    assert np.array_equal(loaded.run(X).integers, network.run(X).integers)
    assert str(loaded).splitlines()[2].split() == ["gain", "gain", "first", "vectors", "of", "8", "values"]


def test_a_kind_that_is_not_registered_is_refused(model, tmp_path, monkeypatch):
    quantize(model, X).save(tmp_path)
    monkeypatch.delitem(registry.KINDS, "gain")
    with pytest.raises(Refusal, match=r"field 'nodes\[1\].kind' must be 'activation', .* or 'taps', not 'gain'"):
        Network.load(tmp_path)


def test_ranges_and_bound(model):
    network = quantize(model, X)
    assert worst_cases(network)["gain.y"] == 2 * -network.layers[0].output_format.lo * 2.0 ** -(
        network.layers[0].output_format.frac)
    found = {each.name: each for each in analyse(network, X, model)}
    assert found["gain.y"].hi == 2 * found["first.product.output"].hi
    error, bound = np.abs(network.run(X).real - model.run(X)), error_bound(network, model, X)
    assert (error <= bound).all()
    assert bound.max() < 100 * error.max()


def test_quantized_like_another(model):
    rule = quantize(model, X, weight_bits=10)
    other = Model.chain("other", 6, False, [
        model.layers[0], gain.FloatGain("doubled", 8), model.layers[2]])
    like = quantize_like(other, rule)
    assert like.layers[1].name == "doubled"
    assert np.array_equal(like.run(X).integers, rule.run(X).integers)


def test_bit_widths(model):
    network = quantize(model, X)
    assert not [name for name in searched_bitwidths(network) if name.startswith("gain")]
    without = Model.chain("without", 6, False, [model.layers[0], model.layers[2]])
    assert weight_bits(network) == weight_bits(quantize(without, X))


def test_state_and_coverage(model):
    network = quantize(model, X)
    integers = network.integers(X)
    assert np.array_equal(network.resume(integers, network.initial(20))[0], network.run_integers(integers))
    assert exercise(network, 2).coverage.points["saturation"] > 0


def test_nothing_of_sim_speaks_of_it():
    sources = [path for path in Path(registry.__file__).parents[1].rglob("*.py") if "FloatGain" in path.read_text()]
    assert sources == []
