"""Random networks on the arrays that their planner chose: both directions, interleaved streams, several block sizes,
and new weights through the configuration port; all of them equal golden."""
from dataclasses import replace

import numpy as np
import pytest

from circulant.hw.design import Design
from circulant.hw.plan.shared.candidates import least_shared
from circulant.hw.plan.shared.groups import shareable
from circulant.hw.planner import plan
from circulant.hw.reload_words import writes
from circulant.hw.stream.pipeline import LEVELS
from circulant.hw.top import Top
from circulant.sim.golden.bidirectional import Bidirectional
from circulant.sim.golden.network import Network
from tests.hw import drawn_layers as layers
from tests.hw.session import Host

COUNT = 30
FEATURES = ("both", "streams", "both reloadable", "streams reloadable", "reloadable")


def recurrent(rng, seed, kind, **sizes):
    if kind == "gru" or kind == "before":
        return layers.gru(seed, reset="before" if kind == "before" else "after", **sizes)
    outputs = sizes["hidden"]
    projected = {"projection": outputs, "hidden": outputs + 3} if kind == "projected" else {}
    return layers.lstm(seed, **(sizes | projected), peephole=bool(rng.integers(2)))


def drawn(seed, weights=0):
    """A network of two to five recurrent and fully connected layers, with other weights of the same structure; its
    streams, and whether it is reloadable."""
    features = FEATURES[seed % len(FEATURES)]
    rng = np.random.default_rng((21, seed))
    both, streams = "both" in features, int(rng.integers(2, 4)) if "streams" in features else 1
    found, size, k = [], int(rng.integers(2, 9)), int(rng.choice([2, 4, 8]))
    inputs, count = size, int(rng.integers(2, 6))
    for n in range(count):
        k = int(rng.choice([1, 2, 4, 8])) if rng.random() < 0.3 else k
        pair, outputs = both and (n == 0 or rng.random() < 0.4), int(rng.integers(2, 2 * k + 3))
        kind = str(rng.choice(["gru", "before", "lstm", "projected"]))
        each = [recurrent(np.random.default_rng((seed, n)), 100 * weights + 10 * n + way, kind, k=k, inputs=size,
                          hidden=outputs) for way in range(1 + pair)]
        if n == count - 1 and rng.random() < (0.8 if pair else 0.4):
            each = [replace(one, returns="last") for one in each]
        elif n == count - 1 and not pair and rng.random() < 0.5:
            each = [layers.linear(100 * weights + 10 * n, k=k, inputs=size, outputs=outputs)]
        name = f"layer{n}"
        layer = replace(each[0], name=name) if not pair else Bidirectional(
            name, *(replace(one, name=f"{name}.{way}") for one, way in zip(each, ("forward", "backward"), strict=True)))
        found.append(layer)
        size = layer.outputs
    return Network.chain("drawn", inputs, True, tuple(found)), streams, "reloadable" in features


def vectors(golden, streams, steps, seed):
    """Sequences (streams, T, n), as vectors in turn, what ends them, and what comes out of golden."""
    x = np.random.default_rng(seed).integers(-25000, 25000, (streams, steps, golden.flow.size))
    y = golden.run_integers(x)
    wanted = y.swapaxes(0, 1).reshape(-1, y.shape[-1]) if y.ndim == 3 else y
    return x.swapaxes(0, 1).reshape(-1, golden.flow.size), np.arange(streams * steps) >= streams * (steps - 1), wanted


@pytest.mark.parametrize("seed", [5, 13, *(pytest.param(seed, marks=pytest.mark.soak)
                                           for seed in range(COUNT) if seed not in (5, 13))])
def test_a_random_network_on_shared_arrays_equals_golden_before_and_after_a_reload(seed):
    golden, streams, reloadable = drawn(seed)
    budget = max(40 + 10 * (seed % 4), least_shared(shareable(golden, streams), LEVELS))
    plans = plan(golden, budget, objective="area", streams=streams, reloadable=reloadable)
    top = Top(golden, plans, max_steps=6, reloadable=reloadable)
    assert len(top.shared) == len(shareable(golden, streams))
    games = [(golden, 4), (golden, 2)]
    if reloadable:
        other, _, _ = drawn(seed, weights=1)
        Host(golden, top).play()  # Elaborated, so that the map is there.
        config = top.config.map
        loads = writes(Design(golden, plans, "", {}, {"configuration": config.as_json()}), other)
        games += [(other, 3)]
    host = Host(golden, top, stall=0.3 if seed % 2 else 0.0)
    expected = []
    for n, (network, steps) in enumerate(games):
        x, ends, wanted = vectors(network, streams, steps, n)
        if network is not golden:
            host.operations([*config.hold(), *config.load(loads), *config.release()])
        host.vectors(x, len(wanted), ends)
        expected.append(wanted)
    played = [y for y in host.play() if isinstance(y, np.ndarray)]
    assert [y.tolist() for y in played] == [wanted.tolist() for wanted in expected]
