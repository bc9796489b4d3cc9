import dataclasses

import numpy as np
import pytest

from circulant.sim.arith.circulant import JointProduct
from circulant.sim.arith.fixed import Format
from circulant.sim.golden.network import Network
from circulant.sim.refusal import Refusal
from tests.hw.drawn_layers import lstm
from tests.sim.definitions import joint, told


@pytest.mark.parametrize("returns", ["last", "sequence"])
@pytest.mark.parametrize("options", [
    {"k": 1, "inputs": 2, "hidden": 3}, {"k": 4, "inputs": 5, "hidden": 6, "peephole": False},
    {"k": 4, "inputs": 5, "hidden": 6}, {"k": 2, "inputs": 3, "hidden": 5, "projection": 4},
    {"k": 8, "inputs": 9, "hidden": 10, "projection": 3, "peephole": False}])
def test_equals_the_plain_layer_bit_for_bit(options, returns):
    layer = lstm(1, returns=returns, **options)
    x = np.random.default_rng(2).integers(-32768, 32768, (2, 4, layer.inputs))
    assert layer(x).tolist() == [told(layer, sequence) for sequence in x.tolist()]


def test_a_joint_product_rounds_once():
    gates = lstm(0, k=4, inputs=5, hidden=6).gates
    x, y = (np.random.default_rng(n).integers(-32768, 32768, (3, size)) for n, size in enumerate((5, 6)))
    apart = gates.parts[0](x) + gates.parts[1](y)
    assert gates(x, y).tolist() == [joint(gates.parts, pair) for pair in zip(x.tolist(), y.tolist(), strict=True)]
    assert (gates(x, y) != apart).any()


def test_joint_product_wrong_parts():
    one, other = lstm(0, k=4, inputs=5, hidden=6).gates.parts
    for name, wrong, differs in (("twiddle_bits", 9, "twiddle bits 9, not 14"),
                                 ("multiplier", "mitchell", "multiplier mitchell, not exact")):
        with pytest.raises(Refusal, match=r"^The parts of a joint product must have the rows, block size, fraction "
                           r"bits, formats, twiddle bits, row shifts and multiplier of the first, but one has the "
                           rf"{differs}; quantize them together$"):
            JointProduct((one, dataclasses.replace(other, **{name: wrong})))
    with pytest.raises(Refusal, match=r"^The parts of a joint product must have no bias but that of the first; "
                       r"quantize them together$"):
        JointProduct((other, dataclasses.replace(one, bias=np.ones_like(one.bias))))


def test_init_wrong_returns():
    layer = lstm(0, k=4, inputs=5, hidden=6)
    with pytest.raises(Refusal, match=r"^Layer 'lstm' must return 'last' or 'sequence', not 'all'; choose one$"):
        dataclasses.replace(layer, returns="all")


def test_init_wrong_format():
    layer = lstm(0, k=4, inputs=5, hidden=6)
    with pytest.raises(Refusal, match=r"^Layer 'lstm': the argument of the cell's tanh must have the .*; quantize"):
        dataclasses.replace(layer, cell=Format(16, 12))


@pytest.mark.parametrize("options", [{}, {"projection": 4}])
@pytest.mark.parametrize("returns", ["last", "sequence"])
def test_a_sequence_in_pieces_is_the_whole_one(returns, options):
    layer = lstm(0, k=4, inputs=5, hidden=6, returns=returns, **options)
    x = np.random.default_rng(2).integers(-32768, 32768, (3, 5, layer.inputs))
    whole, end = layer.run(x)
    np.testing.assert_array_equal(whole, layer(x))
    first, state = layer.run(x[:, :2])
    second, last = layer.run(x[:, 2:], state)
    for got, wanted in zip(last, end, strict=True):
        np.testing.assert_array_equal(got, wanted)
    np.testing.assert_array_equal(second if returns == "last" else np.concatenate([first, second], axis=1), whole)


def test_run_wrong_state():
    layer = lstm(0, k=4, inputs=5, hidden=6, projection=4)
    y, c = layer.initial(2)
    with pytest.raises(Refusal, match=r"^The state of layer 'lstm' must have the shape \(2, 4\), not \(2, 6\); go on "
                                      r"with what run returned$"):
        layer.run(np.zeros((2, 3, 5), np.int64), (c, y))


@pytest.mark.parametrize(("change", "role", "rule", "given"), [
    ({"hidden": 9, "peephole": None}, "gates", "48 rows and 8 and 4", "32 and 8 and 4"),
    ({"outputs": 5}, "gates", "32 rows and 8 and 8", "32 and 8 and 4"),
    ({"projection": lstm(0, k=4, inputs=5, hidden=9, projection=4).projection}, "projection", "4 rows and 8",
     "4 and 12")])
def test_init_wrong_size(change, role, rule, given):
    layer = lstm(0, k=4, inputs=5, hidden=6, projection=4)
    with pytest.raises(Refusal) as refusal:
        dataclasses.replace(layer, **change)
    assert str(refusal.value) == (f"Layer 'lstm': the matrix of its {role} must have {rule} columns in blocks of 4, "
                                  f"not {given}; export it again")


def test_init_outputs_without_a_projection():
    layer = lstm(0, k=4, inputs=5, hidden=6)
    with pytest.raises(Refusal, match=r"^Layer 'lstm' without a projection must give its 6 hidden units, not 5; "):
        dataclasses.replace(layer, outputs=5)


def test_init_several_block_sizes():
    layer = lstm(0, k=4, inputs=5, hidden=6, projection=4)
    with pytest.raises(Refusal, match=r"^All matrices of recurrent layer 'lstm' must have one block size, because "
                                      r"their sums .*, not 4 \(gates\), 2 \(projection\); compress them with one$"):
        dataclasses.replace(layer, projection=lstm(0, k=2, inputs=5, hidden=6, projection=4).projection)


def test_init_wrong_peephole():
    layer = lstm(0, k=4, inputs=5, hidden=6)
    with pytest.raises(Refusal, match=r"^Layer 'lstm': the peepholes must have the shape \(3, 6\), not \(2, 6\); "):
        dataclasses.replace(layer, peephole=layer.peephole[:2])


@pytest.mark.parametrize("options", [{"peephole": False}, {"projection": 4}])
def test_network_of_an_lstm_is_read_as_it_was_written(tmp_path, options):
    network = Network.chain("reader", 5, True, (lstm(0, k=4, inputs=5, hidden=6, **options),))
    network.save(tmp_path)
    read = Network.load(tmp_path)
    x = np.random.default_rng(3).uniform(-0.9, 0.9, (2, 3, 5))
    assert read.hash == network.hash
    assert read.run(x).integers.tolist() == network.run(x).integers.tolist()
