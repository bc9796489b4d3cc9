import numpy as np
import pytest

from circulant.sim.arith.fixed import Format
from circulant.sim.golden.network import Network
from circulant.sim.golden.stages import flows
from circulant.sim.kinds.add import Add
from circulant.sim.kinds.concat import Concat
from circulant.sim.kinds.scale import Scale
from circulant.sim.real import float_model
from circulant.sim.refusal import Refusal
from circulant.sim.shape.graph import Input, Node
from circulant.sim.shape.window import Flow
from tests.random_networks import Random

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


@pytest.mark.parametrize(("nodes", "outputs", "message"), [
    ({"a": ("x",), "b": ("a",), "add1": ("a", "b"), "c": ("b",), "add2": ("add1", "c")}, ("add2",),
     "A circuit is built for branches that part and meet again, but layer 'b' of network 'drawn' is part of two sums "
     "that cross; let each branch end in the sum of its fork"),
    ({"a": ("x",), "add": ("a", "x", "x")}, ("add",),
     "A circuit adds two branches, but layer 'add' adds 3; add them one after the other"),
    ({"a": ("x",), "concat": ("a", "x")}, ("concat",),
     "A circuit puts the outputs of both directions of a recurrent layer side by side, but layer 'concat' joins "
     "others; leave it out"),
    ({"a": ("x",), "b": ("x",)}, ("a", "b"),
     "Network 'drawn' must have one output for this, not 2, a, b; take a part of it")])
def test_what_is_no_chain_of_stages_is_refused(nodes, outputs, message):
    with pytest.raises(Refusal) as caught:
        _ = drawn(nodes, outputs).stages
    assert str(caught.value) == message
