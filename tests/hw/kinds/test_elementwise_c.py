"""Graphs in C: branches that part, cross, and meet in joins of every kind, equal golden."""
import numpy as np
import pytest

from circulant.hw.c import Emulator, generate_c
from circulant.hw.c.source import Source
from circulant.sim.kinds.maximum import FloatMaximum
from circulant.sim.quantize.quantize import quantize
from circulant.sim.real.float_model import Model
from circulant.sim.refusal import Refusal
from circulant.sim.shape.graph import Input, Node
from circulant.sim.shape.window import Flow
from tests.random_graphs import graph
from tests.random_networks import Random


def made(seed):
    model = graph(seed, nodes=10, wide=True, every=seed > 7)
    rng = np.random.default_rng(seed)
    x = rng.normal(0, 1, (6, *((4,) if model.sequence else ()), model.flow.size))
    network = quantize(model, x, activation_bits=9 + seed % 6, weight_bits=8)
    form = network.input_format
    return network, rng.integers(form.lo, form.hi + 1, x.shape)


@pytest.mark.parametrize("seed", [*range(20), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(20, 60))])
def test_a_graph_equals_golden(seed):
    network, x = made(seed)
    assert (Emulator(network).run_integers(x) == network.run_integers(x)).all()


def test_the_seeds_have_every_join_and_both_flows():
    networks = [made(seed)[0] for seed in range(20)]
    kinds = {layer.kind for network in networks for layer in network.layers}
    assert {"add", "product", "difference", "maximum", "minimum", "slice", "concat", "over_time", "norm", "taps",
            "blend", "decay", "spiral"} <= kinds
    assert {network.sequence for network in networks} == {True, False}
    assert not any(network.arrangement.chain for network in networks)


def test_a_stage_behind_the_last_state_that_takes_the_input_is_given_it():
    """It comes behind what a step keeps, in the function that gives the outputs."""
    r = Random(4)
    nodes = (Node(r.gru("gru", 5, 6, 2, "sequence"), ("x",)), Node(r.linear("aside", 5, 6, 2), ("x",)),
             Node(FloatMaximum("both", 6), ("gru", "aside")))
    network = quantize(Model("late", (Input("x", Flow(5, sequence=True)),), nodes, ("both",)), r.normal(6, 4, 5))
    assert "finish(late_state *state, const late_input *x, late_output *y)" in Source(network).code
    x = np.random.default_rng(1).integers(network.input_format.lo, network.input_format.hi + 1, (5, 7, 5))
    assert (Emulator(network).run_integers(x) == network.run_integers(x)).all()
    assert "late" in generate_c(network).files["late.h"]


def test_several_ports_are_refused():
    r = Random(5)
    nodes = Node(r.linear("a", 4, 4, 2), ("x",)), Node(r.linear("b", 4, 4, 2), ("x",))
    network = quantize(Model("heads", (Input("x", Flow(4)),), nodes, ("a", "b")), r.normal(6, 4))
    with pytest.raises(Refusal, match=r"^The C target takes networks with one input and one output, but 'heads' has 1 "
                                      r"and 2; take a part of it, or generate Verilog$"):
        Source(network)
