"""What is played: every sequence once, and some of them under every disturbance."""
import pytest

from circulant.sim.cosim.stimuli import exercised, looped, make


@pytest.mark.parametrize("count", [1, 3, 300])
@pytest.mark.parametrize("steps", [1, 99, 100, 306])
def test_every_sequence_and_every_disturbance(count, steps):
    runs = make(count, True, steps)
    times = {1: 8, 3: 3, 300: 1}[count]
    assert runs[0].sequences == tuple(range(count)) * times, "the first run is all of them, until their pace shows"
    assert all(0 <= i < count for run in runs for i in (*run.sequences, *run.interrupted))
    stalled = [run for run in runs if (run.idle, run.pause) != ("none", "none")]
    assert {(run.idle, run.pause) for run in stalled} == {
        (idle, pause) for idle in ("none", "short", "long") for pause in ("none", "short", "long", "until valid")
    } - {("none", "none")}
    each = min(count, 4 if steps < 100 else 2)
    assert all(len(run.sequences) == each for run in stalled), "long sequences are disturbed often enough in two"
    assert any(run.isolated for run in runs)
    assert {run.reset_after for run in runs if run.interrupted} == {0.07, 0.31, 0.5, 0.77, 0.98, 1.2, None}
    assert len({run.name for run in runs}) == len(runs), "a name seeds what is drawn"


@pytest.mark.parametrize(("count", "total", "times"), [(1, 1, 32), (3, 6, 6), (9, 36, 1), (8, 31, 2), (40, 40, 1)])
def test_short_sequences_are_played_more_often(count, total, times):
    assert make(count, False, total=total)[0].sequences == tuple(range(count)) * times


def test_the_longest_sequence_shows_the_latency():
    isolated, = (run for run in make(9, False, longest=7) if run.isolated)
    assert isolated.sequences == (7, 8, 0, 1)


@pytest.mark.parametrize(("vectors", "stepwise", "streams", "sequences"), [
    ([2, 9, 3], False, 1, (1,) * 6), ([2, 9, 3], True, 1, (1,) * 4), ([50, 33, 784], True, 1, (1,)),
    ([66, 33, 784], True, 2, (0,)), ([1], True, 1, (0,) * 32)])
def test_a_closed_loop_has_enough_samples_and_no_more(vectors, stepwise, streams, sequences):
    run = looped(vectors, stepwise, streams)
    assert run.sequences == sequences and run.closed and run.driven


def test_without_stalls():
    runs = make(8, False)
    assert all((run.idle, run.pause) == ("none", "none") for run in runs)
    assert any(run.interrupted for run in runs), "resets stay"


@pytest.mark.parametrize(("vectors", "moments", "swept"), [(8, 2, 300), (784, 1, 12)])
def test_drawn_sequences_are_played_after_short_resets_and_at_last_back_to_back(vectors, moments, swept):
    runs = exercised(10, 5, vectors, 1000)
    assert runs[-1].sequences == (10, 11, 12, 13, 14) and not runs[-1].interrupted
    assert all(10 <= i < 15 for run in runs for i in (*run.sequences, *run.interrupted))
    resets = [run for run in runs if run.interrupted]
    assert sorted(run.reset_cycles for run in resets) == [1] * moments + [2] * moments + [4] * moments
    assert len({run.reset_after for run in resets}) == len(resets), "each at a moment of its own"
    assert len({run.name for run in runs}) == len(runs)
    full = runs[-2]
    assert full.full == 1250 and full.sequences == tuple(10 + n % 5 for n in range(64)), "enough for any queue"
    sweep = runs[-3]
    assert len(sweep.moments) == len(sweep.sequences) == swept and set(sweep.sequences) == {10}
    assert 0 <= min(sweep.moments)[0] < max(sweep.moments)[0] <= 1500, "from the start to behind the end of a sequence"
    assert [cycles for _, cycles in sweep.moments].count(1) > swept / 2


@pytest.mark.parametrize(("cycles", "sequences", "full"), [(3, 64, 64), (20_000, 20, 25_000), (10 ** 7, 1, 25_000)])
def test_a_circuit_is_filled_with_as_many_sequences_as_their_time_allows(cycles, sequences, full):
    filled = exercised(0, 4, 8, cycles)[-2]
    assert (len(filled.sequences), filled.full) == (sequences, full)


def test_resets_at_many_moments_are_those_of_a_short_sequence():
    swept = exercised(10, 5, 8, 1000, short=3, span=375)[-3]
    assert set(swept.sequences) == {13}
    assert 350 < max(swept.moments)[0] <= 375, "to behind its end"
    assert len({moment for moment, _ in swept.moments}) > 200, "nearly each cycle of its own"


@pytest.mark.parametrize(("cycles", "moments"), [(1000, 266), (10, 1200), (1_000_000, 30)])
def test_resets_also_find_a_circuit_that_is_stalled(cycles, moments):
    stalled, swept = exercised(10, 5, 8, cycles)[-4:-2]
    assert stalled.seed and not swept.seed and set(stalled.sequences) == set(swept.sequences) == {10}
    assert (len(stalled.moments), len(swept.moments)) == (moments, 300), "as many as their time allows"
    assert max(stalled.moments)[0] > 1.45 * cycles


def test_frames_that_end_too_early_have_others_behind_them():
    assert not any(run.misplaced for run in exercised(10, 5, 8, 1000))
    runs = exercised(10, 5, 8, 1000, misplaced=[0, 1, 2, 3, 4])
    found, stalled, swept = [run for run in runs if run.misplaced]
    assert stalled.moments and swept.moments and set(stalled.sequences) == set(swept.sequences) == {10}
    assert found.sequences == (10, 11, 11, 12, 12, 13, 13, 14) and found.driven
    (found,) = [run for run in exercised(10, 5, 8, 1000, misplaced=[4]) if run.misplaced]
    assert found.sequences == (14, 10)
