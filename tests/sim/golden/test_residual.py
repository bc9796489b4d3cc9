import numpy as np
import pytest

from circulant.sim.arith.fixed import Format
from circulant.sim.golden.network import Network
from circulant.sim.golden.residual import Residual
from circulant.sim.kinds.scale import Scale
from circulant.sim.real import float_model
from circulant.sim.refusal import Refusal
from tests.random_networks import Random

GIVEN = Format(10, 6)


def alone(layer, grid):
    """The integers of a network of this layer for those of images."""
    network = Network.chain("sums", 2, False, (layer,), (2, *grid))
    return network.run_integers


def scale(name, factor, output):
    return Scale(name, inputs=2, scale=np.array([factor, factor]), shift=np.array([0, 0]), factor=Format(8, 4),
                 input_format=GIVEN, output_format=output)


@pytest.mark.parametrize("relu", [False, True])
def test_branches_of_different_formats(relu):
    body, shortcut = (scale("a", 16, Format(12, 8)),), (scale("b", -32, Format(9, 5)),)
    layer = Residual("sum", inputs=2, grid=(2, 2), body=body, shortcut=shortcut, input_format=GIVEN,
                     output_format=Format(8, 4), relu=relu)
    x = np.random.default_rng(0).integers(-100, 100, (5, 2, 2, 2))
    a, b = body[0](x) / 2 ** 8, shortcut[0](x) / 2 ** 5
    wanted = np.clip(np.floor((a + b) * 2 ** 4 + 0.5), -128, 127)
    assert np.array_equal(alone(layer, (2, 2))(x), np.maximum(wanted, 0) if relu else wanted)
    assert layer.formats == (Format(12, 8), Format(9, 5))
    assert layer.outputs == 2


def test_a_shortcut_without_layers():
    layer = Residual("sum", inputs=2, grid=(1, 1), body=(scale("a", 16, Format(12, 8)),), shortcut=(),
                     input_format=GIVEN, output_format=Format(12, 6))
    x = np.random.default_rng(0).integers(-100, 100, (5, 1, 1, 2))
    assert np.array_equal(alone(layer, (1, 1))(x), 2 * x)


@pytest.mark.parametrize(("other", "output"), [(Format(12, 60), GIVEN), (Format(12, 8), Format(12, -70))])
def test_sums_beyond_int64_are_refused(other, output):
    body = Scale("a", inputs=2, scale=np.array([1, 1]), shift=np.array([0, 0]), factor=Format(8, other.frac - 6),
                 input_format=GIVEN, output_format=other)
    with pytest.raises(Refusal, match=r"^Layer 'sum': the sum must fit into 63 bits, but with the branches Format"):
        alone(Residual("sum", inputs=2, grid=(1, 1), body=(body,), shortcut=(), input_format=GIVEN,
                       output_format=output), (1, 1))


def test_vectors_and_steps():
    layer = Residual("sum", inputs=2, grid=None, body=(scale("a", 16, Format(12, 8)),), shortcut=(),
                     input_format=GIVEN, output_format=Format(12, 6))
    x = np.random.default_rng(0).integers(-100, 100, (5, 3, 2))
    for sequence in (False, True):
        network = Network.chain("sums", 2, sequence, (layer,))
        assert np.array_equal(network.run_integers(x if sequence else x[:, 0]), 2 * (x if sequence else x[:, 0]))


def test_a_recurrent_layer_within_a_sum_is_a_stage_beside_it():
    r = Random(0)
    network = r.network([float_model.Residual("sum", 4, None, (r.gru("gru", 4, 4, 2, "sequence"),), ())], 4,
                        sequence=True)
    assert [stage.kind for stage in network.stages] == ["gru", "add"]


def test_it_is_seen_as_one_stage_again_also_from_a_file(tmp_path):
    r = Random(3)
    network = r.network([float_model.Residual("sum", 5, None, (r.linear("a", 5, 5, 2),), shortcut=(), relu=True)], 5)
    network.save(tmp_path)
    again, x = Network.load(tmp_path), r.inputs(network, samples=20)
    assert (again.hash, again.stages[0].grid) == (network.hash, None)
    assert [layer.name for layer in again.stages[0].body] == ["a"] and again.stages[0].shortcut == ()
    assert np.array_equal(again.run_integers(x), network.run_integers(x))
