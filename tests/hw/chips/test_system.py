"""Samples that go to unequal chips in turn, the whole network on each."""
import numpy as np
import pytest

from circulant.hw.chips.folders import generate_chips
from circulant.hw.chips.search import search
from circulant.sim.chips import SYSTEM
from circulant.sim.cosim import verify
from circulant.sim.kinds.flatten import FloatFlatten
from circulant.sim.shape.window import Window
from tests.hw.chips.networks import cluster
from tests.random_networks import Random


def vectors_and_chips():
    r = Random(3)
    return r.network([r.linear("l0", 22, 32, 4, relu=True), r.linear("l1", 32, 13, 4)], 22), (20, 44), (1, 0, 1, 0, 1)


def images_and_chips():
    """The faster one takes two pixels in a beat."""
    r = Random(3)
    layers = [r.conv("conv", 3, 5, 1, grid=(4, 6), window=Window((3, 3), padding=(1, 1))),
              FloatFlatten("flat", 5, (4, 6), "pixels"), r.linear("out", 120, 6, 2)]
    return r.network(layers, 3, shape=(3, 4, 6)), (12, 26), (1, 0, 1)


@pytest.mark.parametrize("of", [vectors_and_chips, images_and_chips])
def test_a_faster_chip_has_more_of_a_turn(of, tmp_path):
    network, multipliers, turns = of()
    found = search(network, cluster(*multipliers), streams=True)
    plan, timing = found.planned, found.planned.timing
    assert found.lines()[0].endswith(f": streams, in turn on {', '.join(f'chip{n}' for n in turns)}")
    assert timing.period == max(timing.parts[n] * turns.count(n) for n in (0, 1)) / len(turns)
    assert timing.period < 0.7 * timing.parts[1] and "cycles" not in timing.estimates
    (taken, given), (_, more) = ([each.depth for each in plan.waits(n).memories] for n in (0, 1))
    assert more * turns.count(0) == given * turns.count(1), "all results of a turn, beside the next sample"
    folder = generate_chips(plan).write(tmp_path / "chips")
    inputs = np.random.default_rng(0).normal(0, 1, (60, *(network.inputs[0].shape or (network.flow.size,))))
    played = verify(folder / SYSTEM, network.vectors(inputs))
    assert played.mismatches == 0 and played.words_compared > 60 * network.flows[network.result].size
    assert played.cycles_per_step == pytest.approx(timing.period, rel=0.01) and taken < 60
    assert timing.latency is None or played.latency_spaced <= timing.latency
