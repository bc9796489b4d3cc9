from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from circulant.hw.c import Emulator
from circulant.sim.arith.fixed import Format
from circulant.sim.golden.network import Network
from circulant.sim.kinds.linear import Linear
from circulant.sim.refusal import Refusal
from tests.hw.c.networks import NARROW, WIDE, directions, held, images, inputs, maps, sequences, vectors
from tests.hw.golden import network, product

NETWORKS = {
    "all block sizes": vectors(),
    "all block sizes, wide": vectors(1, WIDE),
    "large blocks": sequences(64, (32, "before"), outputs=9, outputs_k=32, seed=1),
    "small blocks": sequences(1, (2, "before"), 4, returns="sequence", outputs=2, outputs_k=2, seed=2),
    "wide": sequences(8, (2, "before"), outputs=5, outputs_k=8, widths=WIDE, seed=3),
    "states": sequences((16, "before"), returns="sequence", widths=NARROW, seed=4),
    "lstm": sequences((8, "lstm"), (4, "lstm"), outputs=3, seed=5),
    "peepholes": sequences((1, "lstm peephole"), (16, "lstm peephole"), returns="sequence", seed=6),
    "projections": sequences((2, "lstm projection"), (8, "lstm peephole projection"), seed=7),
    "wide lstm": sequences((4, "lstm peephole projection"), (8, "lstm"), returns="sequence", widths=WIDE, seed=8),
    "what int64 just holds": Network.chain("net", 128, False, (Linear("fc", 128, 64, product(
        1, 2, 64, twiddle_bits=16, product=Format(40, 9), output=Format(39, 6))),)),
}

NETWORKS |= {"maps": maps(), **{f"images {seed}": images(seed) for seed in (0, 1, 2, 4, 5, 7, 8)}}
NETWORKS |= {"directions, last": directions("last"), "directions": directions("sequence"),
             "held steps": held("steps"), "held pixels": held("pixels")}


@pytest.mark.parametrize("net", NETWORKS.values(), ids=NETWORKS)
def test_integers_are_those_of_golden(net):
    emulator, x = Emulator(net), inputs(net, count=40)
    found = emulator.run_integers(x)
    assert found.dtype == np.int64
    assert np.array_equal(found, net.run_integers(x))


@pytest.fixture(scope="module")
def small():
    """A network as quantization makes it, and its emulator."""
    net = network(8, 12, 5, outputs=3)
    return net, Emulator(net)


@pytest.mark.parametrize("count", [1, 31, 32, 33, 64])
def test_batches_of_any_size(small, count):
    net, emulator = small
    x = inputs(net, count)
    assert np.array_equal(emulator.run_integers(x), net.run_integers(x))


@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.int64])
def test_inputs_of_any_integer_type_and_layout(small, dtype):
    net, emulator = small
    x = inputs(net).astype(dtype)
    assert np.array_equal(emulator.run_integers(np.asfortranarray(x)[::2]), net.run_integers(x[::2].astype(np.int64)))


def test_no_steps_and_no_sequences(small):
    net, emulator = small
    zero = net.stages[1](np.zeros((40, 12), np.int64))
    assert np.array_equal(emulator.run_integers(np.zeros((40, 0, net.flow.size), np.int64)), zero)
    assert emulator.run_integers(np.zeros((0, 4, net.flow.size), np.int64)).shape == (0, 3)


def test_real_inputs_are_quantized_as_golden_does(small):
    net, emulator = small
    x = np.random.default_rng(0).normal(0, 2, (7, 4, net.flow.size))
    assert np.array_equal(emulator.run(x).integers, net.run(x).integers)
    assert np.array_equal(emulator.run(x).real, net.run(x).real)


def test_threads_share_an_emulator(small):
    net, emulator = small
    batches = [inputs(net, 64, 20, seed) for seed in range(8)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(emulator.run_integers, batches))
    assert all(np.array_equal(y, net.run_integers(x)) for x, y in zip(batches, found, strict=True))


def test_refuses_inputs(small):
    net, emulator = small
    good = inputs(net)
    with pytest.raises(Refusal, match=r"^Inputs of network 'small' must have the shape \(N, T, 5\), not \(37, 20\); "
                                      r"rearrange the axes$"):
        emulator.run_integers(good.reshape(37, 20))
    with pytest.raises(Refusal, match=r"^Inputs of network 'small' must be integers, not float64; quantize them, or "
                                      r"call run$"):
        emulator.run_integers(good.astype(float))
    bad = good.copy()
    bad[36, 3, 4] = net.input_format.hi + 1
    with pytest.raises(Refusal, match=r"^Inputs of network 'small' must lie in the 16-bit format from -32768 to 32767, "
                                      r"not from -32768 to 32768; quantize them, or call run$"):
        emulator.run_integers(bad)


@pytest.mark.parametrize("name", ["small blocks", "projections", "directions, last", "directions", "held steps"])
def test_sequences_of_different_lengths(name):
    net = NETWORKS[name]
    x = inputs(net, count=70)
    lengths = np.random.default_rng(0).integers(1, x.shape[1] + 1, 70)
    assert len(set(lengths.tolist())) > 2
    emulator = Emulator(net)
    assert np.array_equal(emulator.run_integers(x, lengths), net.run_integers(x, lengths))
    with pytest.raises(Refusal, match=r"must have integer lengths of the shape \(70,\)"):
        emulator.run_integers(x, lengths[:3])
