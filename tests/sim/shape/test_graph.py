"""The graph of a network: its rules, and the one way in which every pass walks it."""
import weakref
from dataclasses import replace

import numpy as np
import pytest

from circulant.sim.kinds.activation import FloatActivation
from circulant.sim.kinds.add import FloatAdd
from circulant.sim.kinds.concat import FloatConcat
from circulant.sim.kinds.reverse import FloatReverse
from circulant.sim.real.float_model import Model
from circulant.sim.shape.graph import Input, Node, computed, free_name
from circulant.sim.shape.window import Flow
from tests.refused import refused

STEPS = Flow(4, sequence=True)


def relu(name, inputs=4):
    return FloatActivation(name, inputs, "relu")


def two_ways():
    """Two inputs, branches that cross, two outputs."""
    return Model("two", (Input("x", STEPS), Input("y", STEPS)), (
        Node(relu("a"), ("x",)), Node(FloatAdd("sum", 4), ("a", "y")), Node(FloatReverse("turned", 4), ("sum",)),
        Node(FloatConcat("both", (4, 4)), ("turned", "a")),
        Node(FloatAdd("twice", 4, count=3, relu=True), ("a", "sum", "sum"))),
        ("both", "twice"))


def test_the_flows_of_a_graph():
    graph = two_ways()
    assert graph.flows["both"] == Flow(8, sequence=True)
    assert [node.name for node in graph.readers["a"]] == ["sum", "both", "twice"]
    assert [node.name for node in graph.readers["sum"]] == ["turned", "twice", "twice"]
    assert graph.readers["both"] == ()


def test_a_graph_is_drawn_line_by_line():
    assert str(two_ways()).split("\n")[3:] == [
        "sum     add         a, y         sequences of vectors of 4 values",
        "turned  reverse     sum          sequences of vectors of 4 values",
        "both    concat      turned, a    sequences of vectors of 8 values → output",
        "twice   add         a, sum, sum  sequences of vectors of 4 values → output"]


@pytest.mark.parametrize("lengths", [None, [5, 3, 1]])
def test_all_outputs_are_computed_from_all_inputs(lengths):
    x, y = np.random.default_rng(0).normal(0, 1, (2, 3, 5, 4))
    steps = None if lengths is None else np.array(lengths)
    found = computed(two_ways(), {"x": x, "y": y}, lambda name, values: None, steps)
    for n, count in enumerate(lengths or [5, 5, 5]):
        a, b = np.maximum(x[n, :count], 0), y[n, :count]
        np.testing.assert_allclose(found["both"][n, :count], np.concatenate([(a + b)[::-1], a], -1))
        np.testing.assert_allclose(found["twice"][n, :count], np.maximum(3 * a + 2 * b, 0))
        assert not found["both"][n, count:].any() and not found["twice"][n, count:].any()


def test_a_value_is_dropped_behind_its_last_reader():
    """A walk over a long network holds what is still to be read, no more."""
    class Value:
        pass

    alive: weakref.WeakSet = weakref.WeakSet()
    most = []

    def step(layer, given):
        alive.add(made := Value())
        most.append(len(alive))
        return made

    nodes = tuple(Node(relu(f"r{n}"), (f"r{n - 1}" if n else "x",)) for n in range(20))
    graph = Model("long", (Input("x", STEPS),), nodes, ("r19",))
    assert list(graph.walk({"x": Value()}, step)) == ["r19"]
    assert max(most) == 2
    assert len(graph.walk({"x": Value()}, step, every=True)) == 21


def test_layers_are_mapped_in_their_places():
    graph = two_ways().mapped(lambda layer: replace(layer, relu=False) if layer.kind == "add" else layer)
    assert [layer.relu for layer in graph.layers if layer.kind == "add"] == [False, False]
    assert [node.sources for node in graph.nodes] == [node.sources for node in two_ways().nodes]


def test_a_free_name():
    assert (free_name("input", ["a"]), free_name("input", ["input", "input_1"])) == ("input", "input_2")


def graph(nodes, outputs=("a",), inputs=("x",)):
    return Model("odd", tuple(Input(name, STEPS) for name in inputs), tuple(nodes), tuple(outputs))


@pytest.mark.parametrize(("make", "message"), [
    (lambda: graph([]), "Network 'odd' must have at least one layer, not none; add a GRU or a Linear"),
    (lambda: graph([Node(relu("x"), ("x",))]),
     "The layers of network 'odd' must have different names, but two are called 'x'; rename one"),
    (lambda: graph([Node(relu("a b"), ("x",))]), "The name of a layer must be at most 100 letters, digits and '_', not "
                                                 "'a b' in network 'odd'; rename it"),
    (lambda: graph([Node(relu("a"), ("b",)), Node(relu("b"), ("x",))]),
     "Layer 'a' must take inputs and layers that come before it, not 'b'; there are x"),
    (lambda: graph([Node(relu("a"), ("x", "x"))]), "Layer 'a' must take one source, not 2; correct the network"),
    (lambda: graph([Node(FloatAdd("a", 4), ("x",))]),
     "Layer 'a' must take two sources or more, not 1; correct the network"),
    (lambda: graph([Node(relu("a"), ("x",)), Node(relu("b"), ("x",))]),
     "Each input and layer of network 'odd' must be taken by a layer or be an output, but nothing takes 'b'; leave it "
     "out"),
    (lambda: graph([Node(relu("a"), ("x",))], ("x",)),
     "An output of network 'odd' must be one of its layers, not 'x'; name one"),
    (lambda: graph([Node(relu("a"), ("x",))], ("a", "a")),
     "Network 'odd' must have outputs that differ, not ['a', 'a']; name each once"),
    (lambda: graph([Node(relu("a"), ("x",)), Node(FloatConcat("b", (4, 3)), ("a", "x"))], ("b",)),
     "Layer 'b' must take the 4 and 4 values that come before it, not 4 and 3; give it these sizes"),
    (lambda: two_ways().run(np.zeros((1, 2, 4))),
     "Network 'two' must have one input for this, not 2, x, y; "
     "give a dictionary by name, or take a part of it")])
def test_what_is_no_graph_is_refused(make, message):
    assert refused(make) == message
