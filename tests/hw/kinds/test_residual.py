"""Residual sums equal golden, never stand still, and their queues are as deep as the windows demand."""
import math
from dataclasses import replace

import numpy as np
import pytest

from circulant.hw.array.line_shape import LineBufferShape
from circulant.hw.array.plans import ResidualPlan
from circulant.hw.kinds.conv.conv import ConvLayer
from circulant.hw.kinds.residual import ResidualLayer, needed, waiting
from circulant.hw.plan.ladders import ladder, layer_entry, layer_multiplications
from circulant.hw.planner import plan
from circulant.hw.unit import Site, unit
from circulant.sim.arith.fixed import Format
from circulant.sim.golden.network import Network
from circulant.sim.golden.residual import Residual
from circulant.sim.kinds.conv import FloatConv
from circulant.sim.kinds.flatten import FloatFlatten
from circulant.sim.kinds.linear import FloatLinear
from circulant.sim.quantize.quantize import quantize
from circulant.sim.real import float_model
from circulant.sim.shape.window import Window
from tests.hw.golden import blocks, numbers
from tests.hw.simulate import cycles, stream
from tests.hw.test_top import Beats
from tests.random_networks import Random
from tests.sim.kinds.test_conv import conv

SAME, HALF, AT_ONCE = Window((3, 3), padding=(1, 1)), Window((3, 3), (2, 2), (1, 1)), Window((1, 1), (2, 2))
WIDE = Window((1, 1), padding=(1, 1))


def named(layer, name, given):
    """Another name, and an input of the format that comes before it."""
    return replace(layer, name=name, product=replace(layer.product, input=given))


def residual(kind):
    windows = {"same": (SAME, SAME), "half": (HALF, SAME), "wide": (WIDE, Window((3, 3), padding=(0, 0)))}[kind]
    first = conv(4, 4, 2, (6, 6), windows[0], relu=True)
    given = first.product.input
    second = named(conv(4, 4, 2, first.output_grid, windows[1]), "second", first.output_format)
    shortcut = () if kind != "half" else (named(conv(4, 4, 2, (6, 6), AT_ONCE), "shortcut", given),)
    first = replace(first, name="first")
    made_of = shortcut[0].output_format if shortcut else given
    return Residual("sum", inputs=4, grid=(6, 6), body=(first, second), shortcut=shortcut, input_format=given,
                    output_format=Format(9, made_of.frac - 1), relu=True)


def golden(layer, x):
    """The integers of the graph that the stage stands for."""
    return Network.chain("sums", layer.inputs, False, (layer,), (layer.inputs, *layer.grid)).run_integers(x)


def made(kind):
    layer = residual(kind)
    units = [[ConvLayer(LineBufferShape(each, 9 if each.window.positions == 9 else 1, 2, 2, 2)) for each in chain]
             for chain in (layer.body, layer.shortcut)]
    return layer, ResidualLayer(layer, k=2, body=units[0], shortcut=units[1])


@pytest.mark.parametrize(("kind", "stalls"), [
    ("same", (0.0, 0.0)), ("same", (0.4, 0.4)), ("half", (0.0, 0.6)), ("wide", (0.0, 0.2))])
def test_equals_golden(kind, stalls):
    layer, dut = made(kind)
    x = numbers(layer.input_format, 3, 6, 6, 4)
    given, wanted = ([block for image in images for block in blocks([image.reshape(-1, 4)], k)]
                     for images, k in ((x, 2), (golden(layer, x), 4 if kind == "half" else 2)))
    assert stream(dut, given, stall_i=stalls[0], stall_o=stalls[1], quiet=300,
                  count=len(wanted)) == wanted


@pytest.mark.parametrize("where", ["body", "shortcut"])
def test_a_sum_within_a_sum_equals_golden(where):
    """Of images, in the body or the shortcut of another one, where a branch passes them as they are."""
    rng, grid = np.random.default_rng(5), (4, 4)

    def layer(name, inputs, k):
        return FloatConv(name, inputs=inputs, outputs=2, grid=grid, window=SAME, relu=True, bias=rng.normal(
            0, 0.3, 2), weight=rng.normal(0, 0.4, (9, 2 // k, -(-inputs // k), k)))

    inner = float_model.Residual("inner", 2, grid=grid, body=(layer("within", 2, 2),), shortcut=(), relu=True)
    branches = ((inner,), ()) if where == "body" else ((layer("beside", 2, 2),), (inner,))
    outer = float_model.Residual("outer", 2, grid=grid, body=branches[0], shortcut=branches[1], relu=True)
    model = float_model.Model.chain("nested", 1, False, (
        layer("first", 1, 1), outer, FloatFlatten("flatten", 2, grid, "pixels"),
        FloatLinear("out", 32, 3, rng.normal(0, 0.3, (3, 32, 1)), rng.normal(0, 0.5, 3))), (1, *grid))
    images = rng.uniform(-1, 1, (3, 1, *grid))
    network = quantize(model, images, activation_bits=9, weight_bits=7, twiddle_bits=8)
    dut, vectors = Beats(network, 60), network.vectors(images)
    given = [beat for image in vectors.inputs for beat in blocks([image.reshape(-1, dut.top.input_block)],
                                                                 dut.top.input_block)]
    wanted = [beat for row in vectors.outputs for beat in blocks([row[None]], dut.top.output_block)]
    assert stream(dut, given, stall_i=0.2, stall_o=0.2, quiet=600, count=len(wanted)) == wanted


def test_an_image_takes_no_longer_than_its_slowest_layer():
    layer, dut = made("same")
    x = numbers(layer.input_format, 5, 6, 6, 4)
    given = [block for image in x for block in blocks([image.reshape(-1, 4)], 2)]
    _, went = cycles(dut, given, quiet=300)
    ends = went[len(went) // 5 - 1::len(went) // 5]
    assert np.diff(ends)[-2:].tolist() == [2 * math.prod(layer.grid)] * 2, "blocks come in"


def test_what_has_to_wait_follows_from_the_windows():
    """A 3 x 3 window sees a row and a pixel more; two of them two rows and two pixels, the own one among them."""
    layer = residual("same")
    assert needed(layer.body, (6, 6))[:7].tolist() == [15, 16, 17, 18, 18, 18, 21]
    assert waiting(layer) == (1, 2 * 6 + 2 + 1)
    wide = residual("wide")
    assert needed(wide.body[:1], (6, 6))[:18].tolist() == [1] * 8 + [1, 1, 2, 3, 4, 5, 6, 6, 6, 7], (
        "above the image its first pixel, beside it the lines above")
    assert needed(wide.body, (6, 6))[:7].tolist() == [8, 9, 10, 11, 12, 12, 14]
    half = residual("half")
    seen = needed(half.body, (6, 6))
    assert len(seen) == 9
    assert seen[0] == 3 * 6 + 4, "the pixel at (1, 1) of the first layer's output, whose window ends at (3, 3)"
    assert waiting(half)[0] == 0, "the shortcut sees a pixel at once"


@pytest.mark.parametrize(("relu", "stalls"), [(False, (0.0, 0.8)), (True, (0.4, 0.5))])
def test_sums_of_vectors(relu, stalls):
    """One around two layers whose blocks differ, and behind it one of two branches, as units in a row."""
    r = Random(4)
    network = r.network([
        float_model.Residual("itself", 6, None, (r.linear("first", 6, 9, 4, relu=True), r.linear("second", 9, 6, 2)),
                             shortcut=(), relu=relu),
        float_model.Residual("both", 6, None, (r.linear("fewer", 6, 5, 1), r.activation("bent", 5, "tanh")),
                             shortcut=(r.linear("shortcut", 6, 5, 8),), relu=relu)], 6)
    x = r.inputs(network, samples=12)
    values = x[:, None]
    for layer, chosen in zip(network.stages, plan(network, 60), strict=True):
        dut = unit(layer, chosen, Site(k=4))
        alone = Network.chain("alone", layer.inputs, False, (layer,))
        given, values = blocks(values, 4), alone.run_integers(values[:, 0])[:, None]
        wanted = blocks(values, dut.o.payload.shape().members["data"].length)
        assert stream(dut, given, stall_i=stalls[0], stall_o=stalls[1], quiet=300, count=len(wanted)) == wanted
    assert np.array_equal(values[:, 0], network.run_integers(x))
    assert len(np.unique(values)) > 10


def rungs(layer):
    found = ladder(layer, streams=1, count=36).rungs
    assert all(len(rung) == 1 and isinstance(rung[0], ResidualPlan) for rung in found)
    return [rung[0] for rung in found]


def test_each_branch_has_a_plan_for_each_of_its_layers():
    for each in rungs(residual("half")):
        assert (len(each.body), len(each.shortcut)) == (2, 1)
    assert all(each.shortcut == () for each in rungs(residual("same")))


def test_rungs_go_from_the_smallest_to_the_fastest():
    found = rungs(residual("half"))
    assert len(found) > 3
    assert [each.multipliers for each in found] == sorted(each.multipliers for each in found)
    assert [each.cycles for each in found] == sorted((each.cycles for each in found), reverse=True)


def test_no_layer_is_larger_than_the_speed_of_all_asks_for():
    layer = residual("half")
    own = [[rung[0] for rung in ladder(each, streams=1, count=1).rungs] for each in (*layer.body, *layer.shortcut)]
    for each in rungs(layer):
        for chosen, others in zip((*each.body, *each.shortcut), own, strict=True):
            assert chosen.cycles <= each.cycles
            assert all(other.cycles > each.cycles for other in others if other.multipliers < chosen.multipliers)


def test_the_work_is_that_of_all_layers():
    layer = residual("half")
    work = [layer_multiplications(each) for each in (*layer.body, *layer.shortcut)]
    assert layer_multiplications(layer) == sum(work) > 0


def test_an_entry_names_each_layer_and_what_waits():
    layer = residual("half")
    rung = rungs(layer)[-1]
    entry = layer_entry(layer, rung)
    assert [each["name"] for each in (*entry["body"], *entry["shortcut"])] == ["first", "second", "shortcut"]
    assert (entry["cycles"], entry["multipliers"]) == (rung.cycles, rung.multipliers)
    assert entry["floor"] == -(-layer_multiplications(layer) // rung.multipliers) <= entry["cycles"]
    assert (entry["waiting"]["body"], entry["waiting"]["shortcut"]) == waiting(layer)
