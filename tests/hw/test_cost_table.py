"""The costs of many candidates at once are those of the planner, one by one."""
import numpy as np
import pytest

from circulant.hw.cost_table import Candidates, CostTable
from circulant.hw.foreseen import foreseen
from circulant.hw.plan.families import FAMILIES
from circulant.hw.planner import plan
from circulant.hw.resources import parts
from circulant.sim.kinds.conv import FloatConv
from circulant.sim.kinds.flatten import FloatFlatten
from circulant.sim.kinds.gru import FloatGru
from circulant.sim.kinds.linear import FloatLinear
from circulant.sim.quantize.bitwidth_cost import weight_bits
from circulant.sim.quantize.quantize import quantize
from circulant.sim.real import float_model
from circulant.sim.refusal import Refusal

SIZES = (1, 2, 4)
INPUTS, HIDDEN, CLASSES = 6, 8, 5


def network(gru, linear, weights, activations):
    """A GRU and a classifier, of a block size each. A matrix depends on its own one alone, and so do the ranges, which
    set how long the tables of activations are."""
    rng = np.random.default_rng(0)

    def columns(k, *shape):
        *stacked, rows, inputs = shape
        return np.random.default_rng((k, *shape)).normal(0, 0.5, (*stacked, -(-rows // k), -(-inputs // k), k))

    layers = (FloatGru("gru", INPUTS, HIDDEN, columns(gru, 3, HIDDEN, INPUTS), columns(gru, 3, HIDDEN, HIDDEN),
                       *rng.normal(0, 0.4, (2, 3, HIDDEN))),
              FloatLinear("linear", HIDDEN, CLASSES, columns(linear, CLASSES, HIDDEN),
                          rng.normal(0, 1, CLASSES)))
    made = float_model.Model.chain("drawn", INPUTS, True, layers)
    return quantize(made, rng.normal(0, 0.5, (4, 5, INPUTS)), weight_bits=weights, activation_bits=activations)


@pytest.fixture(scope="module")
def table():
    return CostTable(lambda k, weights, activations: network(k, k, weights, activations), SIZES, family="ecp5")


def draw(count, seed=0):
    rng = np.random.default_rng(seed)
    return Candidates({"gru": rng.choice(SIZES, count), "linear": rng.choice(SIZES, count)},
                      weight_bits=rng.choice([4, 12], count), activation_bits=rng.choice([8, 16], count),
                      multipliers=rng.integers(2, 40, count))


def test_drawn_candidates_cost_what_the_planner_says(table):
    given = draw(16)
    found = table.cost(given)
    assert 0 < found.legal.sum() < 16, "some budgets are too small"
    for at in range(16):
        made = network(int(given.block_size["gru"][at]), int(given.block_size["linear"][at]),
                       int(given.weight_bits[at]), int(given.activation_bits[at]))
        if not found.legal[at]:
            with pytest.raises(Refusal, match="needs at least"):
                plan(made, int(given.multipliers[at]))
            continue
        plans = plan(made, int(given.multipliers[at]))
        demand = FAMILIES["ecp5"].demand(foreseen(parts(made, plans), len(made.stages)))
        assert (found.cycles[at], found.multipliers[at], found.dsps[at], found.block_rams[at], found.memory_bits[at],
                found.weight_bits[at]) == (
            max(each.cycles for each in plans), sum(each.multipliers for each in plans), demand.dsps,
            demand.block_rams, sum(memory.bits for memory in parts(made, plans).memories), weight_bits(made))
        assert (found.luts[at], found.flip_flops[at]) == pytest.approx(
            (demand.luts.count, demand.flip_flops.count), rel=0.002)


def test_each_cost_is_its_own_whatever_stands_beside_it(table):
    """Chunks, order and repetitions do not matter, and what is known is not computed again."""
    given = draw(80, seed=1)
    every = table.cost(given)
    known = len(table.entries)
    turned = Candidates({name: sizes[::-1] for name, sizes in given.block_size.items()}, given.weight_bits[::-1],
                        activation_bits=given.activation_bits[::-1], multipliers=given.multipliers[::-1])
    again = table.cost(turned)
    assert len(table.entries) == known
    for name in ("legal", "cycles", "multipliers", "dsps", "block_rams", "memory_bits", "weight_bits"):
        assert np.array_equal(getattr(every, name), getattr(again, name)[::-1]), name
    assert not every.cycles[~every.legal].any()


def test_networks_over_images_are_refused():
    from circulant.sim.shape.window import Window

    rng = np.random.default_rng(0)
    conv = FloatConv("conv", inputs=2, outputs=2, grid=(4, 4), window=Window((3, 3), (1, 1), (1, 1)),
                     weight=rng.normal(0, 0.5, (9, 1, 1, 2)), bias=rng.normal(0, 0.3, 2), relu=True)
    image = float_model.Model.chain("drawn", 2, False, (conv, FloatFlatten("flatten", 2, (4, 4), "channels"),
                                                  FloatLinear("linear", 32, 3, rng.normal(0, 1, (2, 16, 2)),
                                                              rng.normal(0, 1, 3))), (2, 4, 4))
    made = quantize(image, rng.normal(0, 1, (4, 2, 4, 4)), weight_bits=8, activation_bits=12)
    with pytest.raises(Refusal, match="must take vectors or sequences to be costed together, but 'drawn' takes images"):
        CostTable(lambda *of: made, SIZES, family="ecp5")
