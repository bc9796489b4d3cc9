"""Reversed steps that stand by themselves equal golden in Verilog, for sequences of all lengths."""
import numpy as np
import pytest

from circulant.hw import generate
from circulant.sim.cosim import icarus
from circulant.sim.kinds.add import FloatAdd
from circulant.sim.kinds.reverse import FloatReverse
from circulant.sim.quantize.quantize import quantize
from circulant.sim.real.float_model import Model
from circulant.sim.refusal import Refusal
from circulant.sim.shape.graph import Input, Node
from circulant.sim.shape.window import Flow
from tests.random_networks import Random


def turned():
    """A GRU backward in time, whose steps are added to those that came."""
    r = Random(2)
    nodes = (Node(FloatReverse("turned", 5), ("x",)), Node(r.gru("gru", 5, 5, 2, "sequence"), ("turned",)),
             Node(FloatReverse("back", 5), ("gru",)), Node(FloatAdd("sum", 5), ("x", "back")))
    return Model("turned", (Input("x", Flow(5, sequence=True)),), nodes, ("sum",))


@pytest.mark.skipif(not icarus.available(), reason="needs Icarus Verilog: apt-get install iverilog")
def test_steps_go_backward_and_wait_for_each_other(tmp_path):
    x, lengths = np.random.default_rng(3).normal(0, 0.6, (6, 12, 5)), np.array([12, 1, 12, 3, 12, 5])
    network = quantize(turned(), x, lengths=lengths, activation_bits=8, weight_bits=6)
    design = generate(network, multipliers=40, max_steps=12)
    layers = {each["name"]: each for each in design.manifest["layers"]}
    assert design.manifest["max_steps"] == 12 and layers["sum"]["waiting"][0] > 12
    design.write(tmp_path / "design")
    found = icarus.run(tmp_path / "design", network.vectors(x, lengths=lengths))
    assert found.mismatches == 0 and found.words >= lengths.sum() * 5


def test_interleaved_sequences_are_refused():
    network = quantize(turned(), np.ones((2, 3, 5)))
    with pytest.raises(Refusal, match=r"^Layer 'turned' turns one sequence round, but 2 are interleaved; set "):
        generate(network, multipliers=40, streams=2)
