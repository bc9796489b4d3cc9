"""Steps in which equal ones are played once: as those of a play of all of them."""
import numpy as np
import pytest

from circulant.hw.plan.shared.play import Play, working
from circulant.hw.plan.shared.replay import Replay
from circulant.hw.planner import alternatives
from tests.hw.plan.shared.drawn_stacks import drawn_stack


@pytest.mark.parametrize("seed", [0, 4, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(5, 60))])
def test_each_step_of_sequences_of_any_length_is_that_of_a_play_of_all(seed: int, monkeypatch: pytest.MonkeyPatch):
    network, asked = drawn_stack(seed)
    plans = next(each.plans for each in alternatives(network, **asked) if each.plans[0].sharing is not None)
    arrays, elements = list(dict.fromkeys(each.sharing for each in plans)), [each.elements for each in plans]
    rng, lasts, streams = np.random.default_rng(seed), set[int](), arrays[0].streams
    replay, play, cycles, number = Replay(arrays, elements, lasts=lasts), Play(
        arrays, elements, closed=True, lasts=lasts), 0, 0
    for length in (30, *rng.integers(1, 4, 20).tolist(), 12, *[2] * 20):
        lasts.update(number + length * streams + n for n in range(-streams, 0))
        for _ in range(length * streams):
            cycles, number = replay.taken(), number + 1
            assert (cycles, replay.cycle, replay.steps) == (play.taken(), play.cycle, number)
            assert replay.state() == play.state()
            assert replay.done == min(layer.done for layer in play.layers[:working(arrays)])
    played = list[int]()
    monkeypatch.setattr(Play, "taken", lambda self, plain=Play.taken: played.append(plain(self)) or played[-1])
    assert [replay.taken() for _ in range(20)][-1] > cycles and len(played) < 20, "what comes again is not played"
