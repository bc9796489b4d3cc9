"""Scans: blend and decay against their recurrences, within the bound, in pieces, of several lengths; refusals."""
import dataclasses

import numpy as np
import pytest

from circulant.sim.arith.fixed import Format
from circulant.sim.error.error_bound import error_bound
from circulant.sim.kinds.blend import Blend, FloatBlend
from circulant.sim.kinds.decay import Decay, FloatDecay
from circulant.sim.kinds.spiral import FloatSpiral, Spiral
from circulant.sim.quantize.quantize import quantize
from circulant.sim.real.float_model import Model
from circulant.sim.refusal import Refusal
from circulant.sim.shape.graph import Input, Node
from circulant.sim.shape.window import Flow
from tests.random_networks import Random

BLEND = Blend("h", 2, (Format(8, 7), Format(10, 6)), Format(12, 8))
DECAY = Decay("d", 2, np.array([100, -128]), Format(8, 7), input_format=Format(10, 6),
              output_format=Format(12, 8))


def model(r):
    """A minGRU, its state behind a diagonal recurrence, and that behind a complex one."""
    nodes = [Node(r.linear("gate", 5, 6, 2), ("x",)), Node(r.activation("z", 6, "sigmoid"), ("gate",)),
             Node(r.linear("new", 5, 6, 2), ("x",)), Node(FloatBlend("h", 6), ("z", "new")),
             Node(r.decay("d", 6), ("h",)), Node(r.spiral("s", 6), ("d",))]
    return Model("scans", (Input("x", Flow(5, sequence=True)),), tuple(nodes), ("s",))


def test_blend_equals_its_definition():
    z, x = np.array([[[127, 64], [3, 127], [-9, 50]]]), np.array([[[511, -512], [-512, 511], [80, 11]]])
    h, found = [0, 0], []
    for t in range(3):
        h = [max(-2048, min(2047, h[n] + (int(z[0, t, n]) * ((int(x[0, t, n]) << 2) - h[n]) + 64 >> 7)))
             for n in range(2)]
        found.append(h)
    assert BLEND([z, x]).tolist() == [found]


def test_decay_equals_its_definition():
    x, h, found = np.array([[[511, -512], [300, 7], [1, 511]]]), [0, 0], []
    for t in range(3):
        h = [max(-2048, min(2047, (a * h[n] + (int(x[0, t, n]) << 9) + 64) >> 7))
             for n, a in enumerate((100, -128))]
        found.append(h)
    assert DECAY(x).tolist() == [found]


def test_spiral_equals_its_definition():
    layer = Spiral("s", 4, np.array([100, -128]), Format(8, 7), input_format=Format(10, 6), output_format=Format(12, 8),
                   turns=np.array([-70, 9]))
    x, h, found = np.random.default_rng(0).integers(-512, 512, (1, 6, 4)), [0j, 0j], []
    for t in range(6):
        h = [complex(*(max(-2048, min(2047, (int(part) + (int(given) << 9) + 64) >> 7)) for part, given in zip(
            ((a * z).real, (a * z).imag), x[0, t, 2 * n:2 * n + 2], strict=True)))
            for n, (a, z) in enumerate(zip((100 - 70j, -128 + 9j), h, strict=True))]
        found.append([part for z in h for part in (z.real, z.imag)])
    assert layer(x).tolist() == [found]


@pytest.mark.parametrize("widths", [{}, {"state_bits": 10}, {"activation_bits": 10, "state_bits": 20}], ids=str)
def test_are_within_a_bound_that_is_not_loose(widths):
    r = Random(0)
    made, x = model(r), r.normal(20, 40, 5, scale=1)
    network = quantize(made, x, **widths)
    error, bound = np.abs(network.run(x).real - made.run(x)), error_bound(network, made, x)
    assert (error <= bound).all() and (error / bound).max() > 0.2


def test_pieces_and_lengths():
    r = Random(4)
    made = model(r)
    network = quantize(made, r.normal(20, 6, 5, scale=1))
    x = r.inputs(network, steps=7, samples=3)
    whole = network.run_integers(x)
    first, states = network.resume(x[:, :3], network.initial(3))
    second, _ = network.resume(x[:, 3:], states)
    assert np.array_equal(np.concatenate((first, second), axis=1), whole)
    found = network.run_integers(x, np.array([2, 7, 4]))
    assert all(np.array_equal(found[n, :steps], whole[n, :steps]) and not found[n, steps:].any()
               for n, steps in enumerate((2, 7, 4)))


def test_refusals():
    with pytest.raises(Refusal, match=r"^Layer 'h': its sums must fit into 62 bits, but with the sources Format"):
        dataclasses.replace(BLEND, input_formats=(Format(40, 7), Format(30, 6)))
    with pytest.raises(Refusal, match=r"^Layer 'd': its sums must fit into 62 bits, but with the argument Format"):
        dataclasses.replace(DECAY, input_format=Format(50, 0))
    with pytest.raises(Refusal, match=r"^Layer 'd': the factors must be 2 integers of 8 bits, not \(2,\) from 0 to 12"):
        dataclasses.replace(DECAY, factors=np.array([0, 128]))
    with pytest.raises(Refusal, match=r"^Layer 'd': its factors must be from -1 to 1, not up to 1\.5, since its state"):
        FloatDecay("d", 2, np.array([0.5, -1.5]))
    with pytest.raises(Refusal, match=r"^Layer 's': the magnitude of its factors must be 1 at the most, not 1\.0[0-9]"):
        FloatSpiral("s", 2, np.array([0.8]), np.array([0.7]))
    with pytest.raises(Refusal, match=r"^Layer 's' must take pairs of real and imaginary parts, not 3 values; give it"):
        FloatSpiral("s", 3, np.array([0.8]), np.array([0.7]))
    with pytest.raises(Refusal, match=r"^Layer 's': the factors must be 1 integers of 8 bits, not \(2,\) from 0 to"):
        Spiral("s", 2, np.array([0]), Format(8, 7), input_format=Format(10, 6),
               output_format=Format(12, 8), turns=np.array([0, 1]))
    with pytest.raises(Refusal, match=r"^Layer 'h' needs sequences, but what comes before gives one vector; let the"):
        Model("one", (Input("x", Flow(2)),), (Node(FloatBlend("h", 2), ("x", "x")),), ("h",))
