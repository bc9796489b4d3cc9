"""Points are counted where the arithmetic is, and only there."""
import numpy as np

from circulant.sim.error.ranges import worst_cases
from circulant.sim.exercise.points import reached
from circulant.sim.golden.network import Network
from tests.sim import samples


def points(network, x):
    return reached(network, network.traced(x), worst_cases(network, x.shape[1]))


def test_a_segment_is_reached_where_its_table_is_asked_for_it():
    layer = samples.gru()
    network = Network.chain("net", 5, True, (layer,))
    x = np.random.default_rng(0).integers(-2000, 2000, (4, 3, 5))
    found, seen = points(network, x), network.traced(x)["gru.gates.output"].integers
    table = layer.sigmoid
    for n in range(table.segments):
        inside = np.searchsorted(table.start, np.clip(seen, table.start[0], None), "right") - 1 == n
        assert np.array_equal(found["segment", f"gru.sigmoid[{n}]"], inside.any(axis=(1, 2, 3))), n


def test_the_end_of_a_segment_is_a_single_argument():
    layer = samples.gru()
    network = Network.chain("net", 5, True, (layer,))
    x = np.random.default_rng(1).integers(-20000, 20000, (4000, 1, 5))
    found, seen = points(network, x), network.traced(x)["gru.tanh.input"].integers
    hits = [(seen == start).any(axis=(1, 2)) for start in layer.tanh.start[1:]]
    assert np.any(hits)
    for n, hit in enumerate(hits, 1):
        assert np.array_equal(found["boundary", f"gru.tanh[{n}] first"], hit)


def test_limits_and_roundings_count_by_the_place_in_a_block():
    layer = samples.linear(4, 4, 4)
    network = Network.chain("net", 4, False, (layer,))
    quiet, loud = np.zeros((1, 4), np.int64), np.full((1, 4), layer.input_format.lo)
    low = reached(network, network.traced(loud), worst_cases(network))
    assert low["saturation", "linear.product.input low 3"].all()
    assert not reached(network, network.traced(quiet), worst_cases(network))["saturation",
                                                                            "linear.product.input low 3"].any()
    x = np.random.default_rng(2).integers(-30000, 30000, (50, 4))
    found, sums = reached(network, network.traced(x), worst_cases(network)), network.traced(x)["linear.product.sums"]
    shift = sums.format.frac - layer.product.product.frac
    for j in range(4):
        half = sums.integers[:, 0, j] & (1 << shift) - 1
        assert np.array_equal(found["rounding", f"linear.product up {j}"], half >> shift - 1 == 1)


def test_a_limit_that_nothing_can_reach_is_no_point():
    layer = samples.linear(4, 4, 4, output=(40, 10))
    network = Network.chain("net", 4, False, (layer,))
    found = reached(network, network.traced(np.zeros((1, 4), np.int64)), worst_cases(network))
    assert ("saturation", "linear.product.output high 0") not in found
    assert ("saturation", "linear.product.input high 0") in found
