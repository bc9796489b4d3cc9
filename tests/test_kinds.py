"""Passes over a network and kinds of layers: each pass has an implementation for each kind, or refuses it."""
import ast
from types import SimpleNamespace

import pytest

import circulant.hw.c.source
import circulant.hw.top
from circulant.hw.ctext.unit import stage
from circulant.hw.plan.ladders import ladder, layer_entry, layer_multiplications
from circulant.hw.unit import Site, unit
from circulant.sim.golden.bidirectional import Bidirectional
from circulant.sim.golden.residual import Residual
from circulant.sim.kinds import registry
from circulant.sim.kinds.cell import RecurrentLayer
from circulant.sim.passes.bases import (
    bitwidth_fields,
    layer_arrays,
    layer_bits,
    layer_worst_cases,
    matrices,
    propagate,
    quantize_layer,
    quantize_layer_like,
)
from circulant.sim.refusal import Refusal
from tests.sources import ROOT, python_files, tree

KINDS = {name: kind.golden for name, kind in registry.KINDS.items()}
STAGES = KINDS | {kind.kind: kind for kind in (Bidirectional, Residual)}
FLOAT_KINDS = {name: kind.real for name, kind in registry.KINDS.items() if kind.real}

PASSES = {
    "layer_arrays": layer_arrays, "matrices": matrices, "layer_bits": layer_bits,
    "bitwidth_fields": bitwidth_fields, "layer_worst_cases": layer_worst_cases, "error bound": propagate,
    "quantize_layer_like": quantize_layer_like,
}
"""Passes over golden layers."""

BUILT = {
    "unit": unit, "ladder": ladder, "layer_multiplications": layer_multiplications, "layer_entry": layer_entry,
    "stage": stage,
}
"""Passes over stages."""

WITHIN = {"add", "concat"}
"""Kinds of layers that a circuit has as parts of stages."""

REGISTERED = circulant.hw.top, circulant.hw.c.source
"""Modules that import every implementation of hardware and of C."""

REFUSED = {
    "error bound": {"argmax"},  # A class has no error; the bound is that of the network before its choice.
    "quantize_layer_like": {"argmax"},  # It is added to a golden network, and never quantized.
    "stage": {"bidirectional"},
}
"""The kinds that a pass refuses."""

CALLS = {
    "error bound": lambda layer: propagate(layer, None, {}, ()),
    "quantize_layer_like": lambda layer: quantize_layer_like(layer, None),
    "unit": lambda layer: unit(layer, None, Site()),
    "ladder": lambda layer: ladder(layer, streams=1, count=1),
    "layer_multiplications": layer_multiplications,
    "layer_entry": lambda layer: layer_entry(layer, None),
    "stage": lambda layer: stage(layer, None, "l0", foreign=True),
}


@pytest.mark.parametrize(("name", "kind"), [
    *((name, kind) for name in PASSES for kind in KINDS),
    *((name, kind) for name in BUILT for kind in STAGES if kind not in WITHIN)])
def test_a_pass_has_an_implementation_for_each_kind_or_refuses_it(name, kind):
    function = (PASSES | BUILT)[name]
    known = function.dispatch((KINDS | STAGES)[kind]) is not function.dispatch(object)
    assert known is (kind not in REFUSED.get(name, ()))


@pytest.mark.parametrize(("name", "kind"), [(name, kind) for name, kinds in REFUSED.items() for kind in sorted(kinds)])
def test_what_a_pass_refuses_it_names(name, kind):
    layer = object.__new__((KINDS | STAGES)[kind])
    object.__setattr__(layer, "name", "odd")
    with pytest.raises((Refusal, TypeError), match="odd|" + type(layer).__name__):
        CALLS[name](layer)


def test_a_kind_that_no_pass_knows_is_refused():
    odd = SimpleNamespace(name="odd", kind="odd")
    for call in (lambda: unit(odd, None, Site()), lambda: ladder(odd, streams=1, count=1),
                 lambda: layer_multiplications(odd), lambda: layer_entry(odd, None)):
        with pytest.raises(Refusal, match=r"^The hardware must have a unit for each layer, but has none for 'odd'"):
            call()
    rule = r"^A layer must be of a kind that can be .*, not SimpleNamespace; register it"
    for call in (lambda: layer_arrays(odd), lambda: registry.layer_as_json(odd), lambda: matrices(odd),
                 lambda: layer_bits(odd), lambda: bitwidth_fields(odd), lambda: layer_worst_cases(odd, 1.0, 1),
                 lambda: quantize_layer(odd, None, None, None)):
        with pytest.raises(TypeError, match=rule):
            call()


@pytest.mark.parametrize("kind", FLOAT_KINDS)
def test_every_float_layer_is_quantized_to_its_kind(kind):
    assert quantize_layer.dispatch(FLOAT_KINDS[kind]) is not quantize_layer.dispatch(object)
    assert kind in KINDS


def questions(path):
    """The lines of a file that ask for the kind of a layer."""
    asked = {kind.__name__ for kind in KINDS.values()} | {RecurrentLayer.__name__, "FloatCell"}
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance":
            names = {getattr(each, "id", getattr(each, "attr", "")) for each in ast.walk(node.args[1])}
            if asked & names:
                yield f"{path.relative_to(ROOT)}:{node.lineno}: {ast.unparse(node)}"


def test_few_places_ask_for_the_kind_of_a_layer():
    found = [line for path in python_files("hw", "sim", "training", "circulant", "boards") for line in questions(path)]
    assert len(found) <= 20, "\n".join(found)


def test_the_count_sees_a_question():
    source = ROOT / "sim" / "golden" / "network.py"
    assert any("Argmax" in line for line in questions(source))
