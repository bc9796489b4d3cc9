import dataclasses
from functools import partial

import numpy as np
import pytest

from circulant.sim.arith.fixed import Format
from circulant.sim.golden.bidirectional import Bidirectional
from circulant.sim.golden.network import Network
from circulant.sim.refusal import Refusal
from tests.hw.drawn_layers import lstm
from tests.refused import refused
from tests.sim import samples


def both(kind="gru", **options):
    make = {"gru": lambda **given: samples.gru(5, **given), "lstm": lambda seed, **given: dataclasses.replace(
        lstm(seed, k=4, inputs=5, hidden=6, **{key: value for key, value in given.items() if key != "name"}),
        name=given["name"])}[kind]
    return Bidirectional("both", *(make(name=f"both.{direction}", seed=seed, **options)
                                   for seed, direction in enumerate(("forward", "backward"))))


def alone(layer):
    return Network.chain("pair", layer.inputs, True, (layer,))


def stimuli(layer, steps=5):
    form = layer.input_format
    return np.random.default_rng(0).integers(form.lo, form.hi + 1, (3, steps, layer.inputs))


@pytest.mark.parametrize(("kind", "options", "outputs"), [
    ("gru", {}, 12), ("gru", {"reset": "before"}, 12), ("lstm", {}, 12), ("lstm", {"projection": 4}, 8)])
def test_the_outputs_stand_side_by_side(kind, options, outputs):
    sequence = both(kind, returns="sequence", **options)
    last, x = alone(both(kind, returns="last", **options)), stimuli(sequence)
    y = alone(sequence).run_integers(x)
    assert (y.shape, sequence.outputs) == ((3, 5, outputs), outputs)
    half = outputs // 2
    np.testing.assert_array_equal(y[..., :half], sequence.forward(x))
    np.testing.assert_array_equal(y[..., half:], sequence.backward(x[:, ::-1])[:, ::-1])
    # The first step is the last one that the backward layer takes.
    np.testing.assert_array_equal(last.run_integers(x), np.concatenate([y[:, -1, :half], y[:, 0, half:]], axis=1))


def test_its_nodes_are_seen_as_one_stage_again():
    layer = both(returns="sequence")
    network = alone(layer)
    assert [(node.name, node.layer.kind, node.sources) for node in network.nodes] == [
        ("both.forward", "gru", ("input",)), ("both.reversed", "reverse", ("input",)),
        ("both.backward", "gru", ("both.reversed",)), ("both.restored", "reverse", ("both.backward",)),
        ("both", "concat", ("both.forward", "both.restored"))]
    (stage,) = network.stages
    assert (stage.name, stage.forward, stage.backward) == ("both", layer.forward, layer.backward)


def test_pieces_of_a_sequence_are_refused():
    network = alone(both(returns="sequence"))
    with pytest.raises(Refusal, match=r"^A sequence can be continued piece by piece if all layers run forward, but "
                                      r"layer 'both' is bidirectional; run whole sequences$"):
        network.resume(stimuli(network.stages[0]), network.initial(3))


def test_formats_and_products():
    layer = both()
    assert (layer.kind, layer.inputs, layer.outputs, layer.returns) == ("bidirectional", 5, 12, "last")
    assert (layer.input_format, layer.output_format) == (Format(16, 12), Format(16, 15))
    assert layer.directions == {"forward": layer.forward, "backward": layer.backward}
    assert layer.products["forward.candidate_input"] is layer.forward.candidate
    assert layer.products["backward.recurrent_product"] is layer.backward.gates.parts[1]
    assert len(layer.products) == 8


refusal = partial(refused, dataclasses.replace)


def test_init_wrong_name():
    layer = both()
    assert refusal(layer, name="other") == (
        "The forward layer of 'other' must be called 'other.forward', not 'both.forward'; rename it")


@pytest.mark.parametrize("options", [{"returns": "sequence"}, {"inputs": 4}])
def test_init_no_pair(options):
    other = samples.gru(name="both.backward", **options)
    given = ("gru", options.get("inputs", 5), options.get("returns", "last"))
    assert refusal(both(), backward=other) == (
        "Both directions of layer 'both' must have the kind, inputs and what is returned of the first, "
        f"('gru', 5, 'last'), not {given}; export them again")


@pytest.mark.parametrize(("options", "what", "rule", "given"), [
    ({"input": (16, 11)}, "argument", Format(16, 12), Format(16, 11)),
    ({"state": (15, 14)}, "value", Format(16, 15), Format(15, 14))])
def test_init_wrong_format(options, what, rule, given):
    other = samples.gru(name="both.backward", **options)
    assert refusal(both(), backward=other) == (
        f"Layer 'both': the backward layer's {what} must have the {rule}, not {given}; quantize it again")
