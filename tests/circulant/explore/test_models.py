"""Phase I of E-RNN: which block sizes are trained, and what follows from each training."""
import time
from dataclasses import replace

import pytest

from circulant.explore.bounds import Bounds
from circulant.explore.models import phase_one, points_lost
from circulant.sim.refusal import Refusal, ToolError


def limits(low, high):
    return Bounds(low, high, (), ("", ""))


def sizes(models):
    return [(each.step, each.block_size, each.kept) for each in models.decisions]


def test_a_block_size_is_doubled_while_the_accuracy_holds(experiment, trainer):
    train = trainer({("gru", 8): 0.989, ("gru", 16): 0.987, ("gru", 32): 0.97, ("gru", (16, 32)): 0.98}, seen := [])
    models = phase_one(experiment, limits(1, 64), 0.5, evaluate=train)
    assert sizes(models) == [(1, "8", True), (2, "16", True), (2, "32", False), (3, "gru=16 linear=32", False)]
    assert models.chosen.compression.block_size == 16
    assert [each.compression.block_size for each in models.trained] == [8, 16]
    assert [each.compression.block_size for each in models.left] == [32, {"gru": 16, "linear": 32}]
    assert models.decisions[2].why == ("has accuracy 97.00%, 2.00 points worse than the dense 99.00%, and 0.5 may be "
                                       "lost")
    assert len(seen) == 4


def test_it_is_halved_where_the_first_one_loses_too_much(experiment, trainer):
    train = trainer({("gru", 8): 0.97, ("gru", 4): 0.98, ("gru", 2): 0.99, ("gru", (2, 4)): 0.99}, [])
    models = phase_one(experiment, limits(1, 64), 0.5, evaluate=train)
    assert sizes(models) == [(1, "8", False), (2, "gru=8 linear=1", False), (2, "4", False),
                             (2, "gru=4 linear=1", False), (2, "2", True), (3, "gru=2 linear=4", True)]
    assert models.chosen.compression.block_size == {"gru": 2, "linear": 4}


def test_matrices_outside_the_recurrent_layers_are_dense_where_that_keeps_the_accuracy(experiment, trainer):
    """Then the block size is doubled with them dense, or is the one behind that which lost too much."""
    train = trainer({("gru", 8): 0.97, ("gru", (8, 1)): 0.989, ("gru", (16, 1)): 0.986, ("gru", (32, 1)): 0.97}, [])
    models = phase_one(experiment, limits(1, 64), 0.5, evaluate=train)
    assert sizes(models) == [(1, "8", False), (2, "gru=8 linear=1", True), (2, "gru=16 linear=1", True),
                             (2, "gru=32 linear=1", False)]
    assert models.chosen.compression.block_size == {"gru": 16, "linear": 1}
    train = trainer({("gru", 8): 0.97, ("gru", (8, 1)): 0.97, ("gru", 4): 0.98, ("gru", (4, 1)): 0.99}, [])
    models = phase_one(experiment, limits(1, 64), 0.5, evaluate=train)
    assert sizes(models)[2:] == [(2, "4", False), (2, "gru=4 linear=1", True)]
    models = phase_one(experiment, limits(1, 64), 0.5, evaluate=trainer({("gru", k): 0.9 for k in (8, 4, 2)} | {
        ("gru", 1): 0.99}, []))
    assert sizes(models)[-2:] == [(2, "gru=2 linear=1", False), (2, "1", True)]


def test_it_starts_at_the_smallest_size_that_fits(experiment, trainer):
    models = phase_one(experiment, limits(16, 16), 0.5, evaluate=trainer({("gru", 16): 0.99}, []))
    assert sizes(models)[0] == (1, "16", True)
    models = phase_one(experiment, limits(1, 4), 0.5, evaluate=trainer({("gru", 4): 0.99}, []))
    assert sizes(models)[0] == (1, "4", True), "nor is it larger than the largest one that saves cycles"


def test_a_gru_takes_the_place_of_an_lstm_if_the_accuracy_holds(experiment, trainer):
    lstm = replace(experiment, model=replace(experiment.model, kind="lstm", peephole=True, projection=32))
    train = trainer({("lstm", 8): 0.99, ("lstm", 16): 0.9, ("lstm", (8, 16)): 0.9, ("gru", 8): 0.988}, [])
    models = phase_one(lstm, limits(1, 64), 0.5, evaluate=train)
    assert sizes(models)[-1] == (4, "8", True)
    chosen = models.chosen.model
    assert (chosen.kind, chosen.peephole, chosen.projection) == ("gru", False, 0)
    train = trainer({("lstm", 8): 0.99, ("gru", 8): 0.9}, [])
    assert phase_one(lstm, limits(8, 8), 0.5, evaluate=train).chosen.model.kind == "lstm"
    train = trainer({("lstm", 8): 0.9, ("lstm", (8, 1)): 0.99, ("gru", (8, 1)): 0.99}, [])
    chosen = phase_one(lstm, limits(8, 8), 0.5, evaluate=train).chosen
    assert (chosen.model.kind, chosen.compression.block_size) == ("gru", {"gru": 8, "linear": 1})


def test_a_model_without_a_design_is_not_kept(experiment, trainer):
    models = phase_one(experiment, limits(8, 64), 0.5, evaluate=trainer({("gru", 8): 0.99}, []))
    assert [each.why for each in models.decisions[1:]] == ["has no design: It does not fit"] * 2
    assert models.chosen.compression.block_size == 8


def test_no_training_begins_after_the_time_is_over(experiment, trainer):
    train = trainer({("gru", size): 0.99 for size in (8, 16, 32)}, seen := [])
    models = phase_one(experiment, limits(8, 32), 0.5, deadline=0.0, evaluate=train)
    assert len(seen) == 1, "the first one is needed"
    assert models.ended.startswith("the time was over before rule ")


def test_the_first_model_may_take_all_of_the_time_and_others_their_share(experiment, trainer):
    """Then designs and dense networks still have theirs."""
    train, deadlines = trainer({("gru", size): 0.99 for size in (8, 16)}, []), []

    def evaluate(points, *, deadline):
        deadlines.append(deadline)
        return train(points)

    phase_one(experiment, limits(8, 16), 0.5, deadline=(end := time.monotonic() + 900), share=end - 300,
              evaluate=evaluate)
    assert deadlines[:2] == [end, end - 300]
    assert phase_one(experiment, limits(8, 16), 0.5, deadline=end, share=0.0, evaluate=train).ended == (
        "the time was over before rule 3")


def test_a_training_that_the_deadline_ends(experiment, trainer):
    """What was kept before it stands; without that it is refused."""
    over = {"reason": "the time was over in epoch 3 of 9 of phase 'admm', from which the same command goes on"}
    train = trainer({("gru", 8): 0.99}, [])
    models = phase_one(experiment, limits(8, 32), 0.5, evaluate=lambda points, **options: (
        train(points) if points[0].block_size == "8" else [over]))
    assert models.chosen.compression.block_size == 8 and models.ended == over["reason"]
    with pytest.raises(Refusal, match=r"^--hours must be enough for a model that keeps the accuracy, but the time was "
                                      r"over in epoch 3 of 9 of phase 'admm', from which the same command goes on; "
                                      "allow more$"):
        phase_one(experiment, limits(8, 32), 0.5, evaluate=lambda points, **options: [over])


def test_an_accuracy_that_no_block_size_keeps(experiment, trainer):
    with pytest.raises(Refusal, match=r"Some block size that fits must keep the accuracy, but k = gru=4 linear=1 has "
                                      r"accuracy 90\.00%, 9\.00 points worse than the dense 99\.00%, and 0\.5 may "
                                      "be lost; raise --accuracy-loss, or take a larger --device"):
        phase_one(experiment, limits(4, 8), 0.5, evaluate=trainer({
            ("gru", k): 0.9 for k in (8, (8, 1), 4, (4, 1))}, []))


def test_a_training_that_fails(experiment):
    with pytest.raises(Refusal, match=r"^Trainings must end to choose by them, but the last of 1, k = 8, fails: The "
                                      r"data are missing; correct that, and the same command goes on$"):
        phase_one(experiment, limits(8, 8), 0.5, evaluate=lambda points, **options: [
            {"reason": "The data are missing"}])
    seen = []
    with pytest.raises(ToolError, match=r"but the last of 2, k = 4, fails: No space left; correct that"):
        phase_one(experiment, limits(1, 64), 0.5,
                  evaluate=lambda points, **options: seen.extend(points) or [{"reason": "No space left", "code": 3}])
    assert len(seen) == 2, "the same again is enough"


def test_points_are_hundredths_of_the_metric():
    assert points_lost(0.97, 0.99, higher_is_better=True) == pytest.approx(2)
    assert points_lost(0.25, 0.2, higher_is_better=False) == pytest.approx(5)


def at_widths(accuracies, seen):
    """Trains nothing: the accuracy by units and block size."""
    def evaluate(points, **options):
        model, size = points[0].experiment.model, points[0].experiment.compression.block_size
        seen.append((model.hidden, size))
        return [{"metric": "accuracy", "higher_is_better": True, "dense": 0.99, "reason": "",
                 "circulant": accuracies.get((model.hidden, str(size)), 0.5)}]

    return evaluate


def test_more_units_in_larger_blocks_are_chosen_at_equal_multiplications(experiment):
    hidden = experiment.model.hidden
    train = at_widths({(hidden, "8"): 0.986, (2 * hidden, "64"): 0.988}, seen := [])
    models = phase_one(experiment, limits(8, 8), 0.5, widths=True, evaluate=train)
    assert seen[-1] == (2 * hidden, 64), "four times as many have no blocks that are large enough"
    chosen, last = models.chosen, next(each for each in models.decisions if each.step == 5)
    assert (chosen.model.hidden, chosen.compression.block_size) == (2 * hidden, 64)
    assert last.cell == f"gru, {2 * hidden} hidden"
    assert last.why == ("has accuracy 98.80%, 0.20 points worse than the dense 99.00%, and 0.5 may be lost; the best "
                        "one before is 0.40 points worse")


def test_fewer_units_in_smaller_blocks_are_tried_where_more_are_no_better(experiment):
    hidden = experiment.model.hidden
    train = at_widths({(hidden, "8"): 0.988, (hidden // 2, "2"): 0.989}, [])
    models = phase_one(experiment, limits(8, 8), 0.5, widths=True, evaluate=train)
    assert (models.chosen.model.hidden, models.chosen.compression.block_size) == (hidden // 2, 2)
    models = phase_one(experiment, limits(8, 8), 0.5, evaluate=train)
    assert models.chosen.model.hidden == hidden, "not without being asked for"
