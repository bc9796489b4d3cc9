import numpy as np
import pytest

from circulant.sim.arith.fixed import Format
from circulant.sim.golden.network import Network
from circulant.sim.golden.stages import INPUT, flows
from circulant.sim.kinds.activation import FloatActivation
from circulant.sim.kinds.add import Add, FloatAdd
from circulant.sim.kinds.concat import Concat, FloatConcat
from circulant.sim.kinds.scale import Scale
from circulant.sim.quantize.quantize import quantize
from circulant.sim.real import float_model
from circulant.sim.refusal import Refusal
from circulant.sim.shape.graph import Input, Node
from circulant.sim.shape.window import Flow, Window
from tests.random_networks import Random
from tests.sim import samples

FORM = Format(16, 12)


def nested():
    r = Random(4)
    inner = float_model.Residual("inner", 6, None, (), (r.linear("b", 6, 6, 1), r.linear("c", 6, 6, 4)))
    outer = float_model.Residual("outer", 6, None, (r.linear("a", 6, 6, 2), inner), shortcut=())
    return r.network([r.linear("first", 5, 6, 2), outer, r.linear("out", 6, 3, 1)], 5)


def test_sums_within_sums_are_stages_within_stages():
    first, outer, out = nested().stages
    assert [first.name, outer.name, out.name] == ["first", "outer", "out"]
    a, inner = outer.body
    assert (a.name, inner.name, outer.shortcut, inner.body) == ("a", "inner", (), ())
    assert [layer.name for layer in inner.shortcut] == ["b", "c"]


def test_flows_between_stages():
    network = nested()
    assert [flow.size for flow in flows(network.flow, network.stages)] == [5, 6, 6, 3]


def drawn(nodes, outputs):
    """A network over vectors of 4 values, in whose format all is; by name a layer and its sources."""
    made = []
    for name, sources in nodes.items():
        if name.startswith("add"):
            layer = Add(name, 4, (FORM,) * len(sources), FORM)
        elif name.startswith("concat"):
            layer = Concat(name, (4,) * len(sources), (FORM,) * len(sources), FORM)
        else:
            layer = Scale(name, 4, np.full(4, 16), np.zeros(4, np.int64), factor=Format(8, 4), input_format=FORM,
                          output_format=FORM)
        made.append(Node(layer, sources))
    return Network("drawn", (Input("x", Flow(4)),), tuple(made), outputs)


def test_branches_that_cross_are_stages_of_their_own():
    nodes = {"a": ("x",), "b": ("a",), "add1": ("a", "b"), "c": ("b",), "add2": ("add1", "c")}
    found = drawn(nodes, ("add2",)).arrangement
    assert [stage.name for stage in found.each] == ["a", "b", "add1", "c", "add2"]
    assert found.sources == ((INPUT,), (0,), (0, 1), (1,), (2, 3))
    assert not found.chain and found.readers(1) == [2, 3] and found.readers(INPUT) == [0]
    assert nested().arrangement.chain


def test_a_vector_waits_while_the_longest_other_way_has_those_under_way():
    nodes = {"a": ("x",), "b": ("a",), "c": ("b",), "concat": ("c", "a", "b")}
    found = drawn(nodes, ("concat",)).arrangement
    assert found.beside(3) == [1, 2, 2], "the branches part behind a: c is two stages from there, b one"
    chain = {"a": ("x",), "b": ("a",), "add": ("a", "b"), "c": ("add",), "concat": ("c", "add")}
    assert drawn(chain, ("concat",)).arrangement.beside(4) == [0, 1], "what lies before the last fork does not count"


def test_a_second_direction_beside_others_is_one_stage():
    model = samples.chain(samples.bidirectional("gru", 5, 6))
    ends = (Node(FloatActivation("bent", 5, "tanh"), ("input",)),
            Node(FloatConcat("beside", (12, 5)), ("both", "bent")))
    model = float_model.Model("beside", model.inputs, (*model.nodes, *ends), ("beside",))
    found = quantize(model, samples.data(model)).arrangement
    assert found.late == [True, False, True] and found.waiting(2) == [False, True] and found.keeps
    behind = (Node(FloatActivation("bent", 12, "tanh"), ("both",)),
              Node(FloatConcat("beside", (12, 12)), ("both", "bent")))
    model = float_model.Model("behind", model.inputs, (*model.nodes[:-2], *behind), ("beside",))
    found = quantize(model, samples.data(model)).arrangement
    assert [(stage.kind, sources) for stage, sources in zip(found.each, found.sources, strict=True)] == [
        ("bidirectional", (INPUT,)), ("activation", (0,)), ("concat", (0, 1))]


def test_images_whose_branches_cross_are_refused():
    r = Random(7)
    window = Window((3, 3), (1, 1), (1, 1))
    first, second, third = (Node(r.conv(name, 4, 4, 2, grid=(4, 3), window=window, relu=True), (source,))
                            for name, source in (("a", "x"), ("b", "a"), ("c", "b")))
    nodes = (first, second, Node(FloatAdd("sum", 4), ("a", "b")), third,
             Node(FloatAdd("last", 4), ("sum", "c")))
    model = float_model.Model("crossed", (Input("x", Flow(4, (4, 3)), (4, 4, 3)),), nodes, ("last",))
    network = quantize(model, r.normal(6, 4, 4, 3, scale=1))
    with pytest.raises(Refusal) as caught:
        _ = network.stages
    assert str(caught.value) == (
        "A circuit adds images whose branches part and meet one within the other, but layer 'sum' of network 'crossed' "
        "joins others; let each branch end in the sum of its fork")


def test_outputs_are_known_by_the_numbers_of_their_stages():
    found = drawn({"a": ("x",), "b": ("a",), "c": ("x",)}, ("c", "a", "b")).arrangement
    assert (found.sources, found.outputs, found.chain) == (((INPUT,), (0,), (INPUT,)), (2, 0, 1), False)
    assert not drawn({"a": ("x",), "b": ("a",)}, ("a", "b")).arrangement.chain
    assert drawn({"a": ("x",), "b": ("a",)}, ("b",)).arrangement.outputs == (1,)
