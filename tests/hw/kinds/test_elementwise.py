"""Joins of streams equal golden, whatever stalls, and their queues keep a whole design from standing still."""
import numpy as np
import pytest

from circulant.hw import generate
from circulant.hw.components.joins import waiting
from circulant.hw.kinds.concat import ConcatLayer
from circulant.hw.kinds.elementwise import PlacesLayer
from circulant.hw.plan.ladders import layer_multiplications
from circulant.hw.planner import plan
from circulant.hw.top import Top
from circulant.hw.unit import unelaborated
from circulant.sim.arith.fixed import Format
from circulant.sim.cosim import verify
from circulant.sim.kinds.add import Add
from circulant.sim.kinds.concat import Concat
from circulant.sim.kinds.difference import Difference
from circulant.sim.kinds.maximum import Maximum
from circulant.sim.kinds.minimum import Minimum
from circulant.sim.kinds.product import FloatProduct, Product
from circulant.sim.quantize.quantize import quantize
from circulant.sim.real.float_model import Model
from circulant.sim.refusal import Refusal
from circulant.sim.shape.graph import Input, Node
from circulant.sim.shape.window import Flow
from tests.hw.golden import blocks
from tests.hw.simulate import Transfers, run, sink, source, stream
from tests.hw.test_top import Beats
from tests.random_graphs import graph
from tests.random_networks import Random

FORMS = Format(8, 4), Format(10, 7), Format(6, 1)

STALLS = [((0.0, 0.0, 0.0), 0.0), ((0.6, 0.0, 0.2), 0.3), ((0.0, 0.7, 0.0), 0.6)]


def network(seed, **options):
    model = graph(seed, **options)
    shape = (8, 5, model.flow.size) if model.sequence else (8, model.flow.size)
    return quantize(model, np.random.default_rng(seed).normal(0, 1, shape), activation_bits=10, weight_bits=8)


def joined(dut, layer, stalls, out):
    """The blocks that a join gives for vectors that come on its streams with stalls of their own; those of golden."""
    rng, k = np.random.default_rng(1), dut.k
    vectors = [rng.integers(form.lo, form.hi + 1, (12, size))
               for form, size in zip(layer.input_formats, layer.sizes, strict=True)]
    came, left = [Transfers() for _ in vectors], Transfers()
    wanted = blocks([y[None] for y in layer(vectors)], k)
    run(dut, *(source(f"i_{n}", blocks([x[None] for x in each], k), passed, stall=stall, seed=n)
               for n, (each, passed, stall) in enumerate(zip(vectors, came, stalls, strict=False))),
        sink("o", left, came, stall=out, quiet=200, count=len(wanted)))
    return left.payloads, wanted


@pytest.mark.parametrize(("stalls", "out"), STALLS)
@pytest.mark.parametrize(("size", "k", "relu", "count"), [(7, 4, False, 2), (5, 1, True, 3), (3, 8, False, 2)])
def test_a_sum_equals_golden(size, k, relu, count, stalls, out):
    layer = Add("sum", size, FORMS[:count], Format(9, 4), relu=relu)
    found, wanted = joined(PlacesLayer(layer, k=k, beside=(0,) * count), layer, stalls, out)
    assert found == wanted


@pytest.mark.parametrize(("stalls", "out"), STALLS)
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize(("kind", "count"), [(Difference, 2), (Product, 2), (Maximum, 3), (Minimum, 2)])
def test_what_is_combined_value_by_value_equals_golden(kind, count, relu, stalls, out):
    layer = kind("both", 7, FORMS[:count], Format(12, 6) if kind is Product else Format(9, 4), relu=relu)
    found, wanted = joined(PlacesLayer(layer, k=4, beside=(0,) * count), layer, stalls, out)
    assert found == wanted
    assert len({value for block in wanted for value in block["data"]}) > 20


def test_a_product_has_a_multiplier_for_each_value_of_a_block():
    """As counted in the Verilog, and in the plan; the budget is kept."""
    r = Random(3)
    nodes = Node(r.linear("a", 6, 8, 4), ("x",)), Node(r.linear("b", 6, 8, 4), ("x",)), Node(
        FloatProduct("gate", 8), ("a", "b")), Node(r.linear("out", 8, 4, 4), ("gate",))
    made = quantize(Model("gated", (Input("x", Flow(6)),), nodes, ("out",)), r.normal(20, 6, scale=1))
    for budget, elements in ((7, 1), (17, 4), (200, 8)):
        design = generate(made, multipliers=budget)
        entry = next(each for each in design.manifest["layers"] if each["name"] == "gate")
        assert (entry["elements"], entry["multipliers"], entry["cycles"]) == (elements, elements, 8 // elements)
        assert design.multipliers == sum(each.multipliers for each in design.plans) <= budget
        assert design.manifest["multiplications"]["per_sequence"] == sum(
            layer_multiplications(stage) for stage in made.stages)
    assert layer_multiplications(made.stages[2]) == 8


@pytest.mark.parametrize(("stalls", "out"), STALLS)
@pytest.mark.parametrize(("sizes", "k"), [((7, 3), 4), ((5, 2, 4), 1), ((3, 9, 6), 8), ((4, 4), 4)])
def test_vectors_side_by_side_equal_golden(sizes, k, stalls, out):
    layer = Concat("both", sizes, FORMS[:len(sizes)], Format(9, 4))
    found, wanted = joined(ConcatLayer(layer, k=k, beside=(0,) * len(sizes)), layer, stalls, out)
    assert found == wanted


@pytest.mark.parametrize("seed", [3, pytest.param(9, marks=pytest.mark.soak), pytest.param(14, marks=pytest.mark.soak)])
@pytest.mark.parametrize("stalls", [(0.0, 0.0), (0.4, 0.7)])
def test_a_graph_whose_branches_cross_equals_golden_and_never_stands_still(seed, stalls):
    made = network(seed)
    assert not made.arrangement.chain
    dut = Beats(made, 400)
    rng, form = np.random.default_rng(2), made.input_format
    shape = (4, made.flow.size) if made.sequence else (1, made.flow.size)
    xs = [rng.integers(form.lo, form.hi + 1, shape) for _ in range(6)]
    ys = [np.atleast_2d(made.run_integers(x[None] if made.sequence else x)[0]) for x in xs]
    wanted = blocks(ys, dut.top.output_block)
    assert stream(dut, blocks(xs, dut.top.input_block), stall_i=stalls[0], stall_o=stalls[1], quiet=600,
                  count=len(wanted)) == wanted


def test_a_queue_that_holds_no_whole_vector_stands_still():
    """A branch with a matrix takes a whole vector before it gives one, which must wait meanwhile in the other one."""
    made = network(4)
    xs = [np.zeros((4, made.flow.size), np.int64)] if made.sequence else [np.zeros((1, made.flow.size), np.int64)]

    def blocks_out(most):
        dut = Beats(made, 400)
        for unit in dut.top.units:
            if hasattr(unit, "depths"):
                unit.depths = [min(most, depth) for depth in unit.depths]
        return stream(dut, blocks(xs * 2, dut.top.input_block), quiet=600, count=2)

    assert blocks_out(500)
    with pytest.raises(AssertionError, match=r"^Deadlock: \[2\] payloads were accepted and 0 given"):
        blocks_out(1)


def test_the_depth_of_a_queue_follows_from_the_stages_of_the_other_way():
    assert [waiting(3, beside) for beside in (0, 1, 2)] == [8, 81, 154]
    layer = Add("sum", 7, FORMS[:2], Format(9, 4))
    with unelaborated():
        dut = PlacesLayer(layer, k=4, beside=(1, 0))
        depths, bits = dut.depths, [memory.bits for memory in dut.parts.memories]
        del dut
    assert depths == [waiting(2, 1), waiting(2, 0)]
    assert bits[:2] == [depths[0] * 33, depths[1] * 41]


def test_planned_cycles_of_a_join_are_the_blocks_of_what_it_gives():
    made = network(3)
    plans = plan(made, 400)
    with unelaborated():
        tops = Top(made, plans).blocks
    for stage, chosen, (_, k) in zip(made.stages, plans, tops, strict=True):
        if stage.kind in ("add", "concat"):
            assert chosen.cycles == -(-stage.outputs // k) and chosen.multipliers == 0


@pytest.mark.parametrize("seed", [5, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(20, 40))])
def test_random_graphs_are_exact_under_verilator(seed, tmp_path):
    made = network(seed)
    design = generate(made, multipliers=400)
    design.write(tmp_path)
    x = np.random.default_rng(seed).normal(0, 1, (8, *((5,) if made.sequence else ()), made.flow.size))
    found = verify(tmp_path, made.vectors(x))
    assert (found.mismatches, design.manifest["estimates"]) == (0, ["cycles"])
    assert found.words == 8 * 3 * (5 if made.sequence else 1)


def test_options_that_need_a_chain_are_refused():
    made = network(3)
    with pytest.raises(Refusal, match=r"^A reloadable design must have only recurrent and fully connected layers, but "
                                      r"layer 'n[0-9]+' is a (add|concat|scale); set hardware.reloadable to false$"):
        generate(made, multipliers=400, reloadable=True)
    with pytest.raises(Refusal, match=r"^hardware.objective must be 'throughput' or 'auto' where layers cannot share "
                                      r"an array, but layer 'n[0-9]+' is of the kind "):
        generate(made, multipliers=400, objective="area")
