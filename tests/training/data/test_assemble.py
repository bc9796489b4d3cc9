"""From raw samples to a data set: subsets, normalisation over the right part, padding."""
import dataclasses

import numpy as np
import pytest

from circulant.sim.refusal import Refusal
from circulant.training.data.assemble import Images, Utterances, chosen, divided, image_set, padded, utterance_set
from circulant.training.settings.data import DataSettings

CLASSES = np.array([0] * 10 + [1] * 6 + [2] * 4)


def utterances(**changes):
    rng = np.random.default_rng(0)
    frames = [rng.integers(-2000, 2000, (steps, 3)).astype(np.int32) for steps in (4, 9, 6, 5, 7, 8)]
    made = Utterances(frames, np.array([0, 1, 0, 1, 0, 1]), (np.arange(4), np.array([4, 5])), ("a", "b"))
    return dataclasses.replace(made, **changes)


def made(data=None, **options):
    return utterance_set("u", data or utterances(), DataSettings("fsdd", **options), deltas="none", normalise="none")


@pytest.mark.parametrize(("count", "each"), [(3, [1, 1, 1]), (9, [3, 3, 3]), (14, [5, 5, 4]), (18, [8, 6, 4])])
def test_a_subset_has_all_classes_alike(count, each):
    part = np.arange(20) + 100
    classes = np.concatenate([np.full(100, 7), CLASSES])
    kept = chosen(part, classes, count, seed=3)
    counts = np.bincount(classes[kept], minlength=3)
    assert sorted(counts, reverse=True) == each
    assert (np.diff(kept) > 0).all(), "in the order of the part, none twice"
    assert set(kept) <= set(part)


def test_a_subset_without_classes():
    kept = [chosen(np.arange(50), None, 10, seed) for seed in range(3)]
    assert all(len(set(one)) == 10 for one in kept)
    assert len({tuple(one) for one in kept}) == 3


def test_the_stream_of_a_seed_is_frozen():
    assert chosen(np.arange(1000), None, 5, seed=0).tolist() == [298, 553, 672, 859, 993]


def test_no_subset_is_everything():
    assert chosen(np.arange(5), None, 0, 0).tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(Refusal, match=r"^A subset must have at most the 5 samples that there are, not 6; 0 takes all$"):
        chosen(np.arange(5), None, 6, 0)


def test_padding():
    x, lengths = padded([np.ones((2, 3), np.float32), np.ones((4, 3), np.float32)])
    assert x[:, :, 0].tolist() == [[1, 1, 0, 0], [1, 1, 1, 1]]
    assert lengths.tolist() == [2, 4]
    rising = np.arange(1, 5, dtype=np.float32)[:, None]
    x, _ = padded([rising[:2], rising], steps=3)
    assert x[:, :, 0].tolist() == [[0, 1, 2], [1, 2, 3]]


def test_the_train_part_alone_normalises():
    """Whatever the test set holds, the training set stays the same, and has mean 0 and variance 1."""
    data = utterances()
    loud = utterances(frames=[*data.frames[:4], *(frames * 5 for frames in data.frames[4:])])
    one, other = made(data, normalise="train"), made(loud, normalise="train")
    assert np.array_equal(one.train_x, other.train_x)
    assert not np.array_equal(one.test_x, other.test_x)
    frames = np.concatenate([x[:length] for x, length in zip(one.train_x, one.train_lengths, strict=True)])
    assert np.abs(frames.mean(0)).max() < 1e-3
    assert np.abs(frames.std(0) - 1).max() < 1e-3


def test_a_subset_normalises_by_what_it_keeps():
    kept = made(subset=2, normalise="train")
    frames = np.concatenate([x[:length] for x, length in zip(kept.train_x, kept.train_lengths, strict=True)])
    assert np.abs(frames.mean(0)).max() < 1e-3


def test_stacking_and_the_longest():
    data = made(stack=2, longest=3)
    assert data.train_lengths.tolist() == [2, 3, 3], "of 4, 9, 6 and 5 frames, 9 are 5 steps"
    assert data.test_lengths.tolist() == [4, 4]
    assert data.inputs == 6


def test_symbols_are_padded_with_blanks():
    targets = [np.array(target) for target in ([1, 2], [2], [1, 2, 1], [1], [2, 1], [1])]
    data = made(utterances(targets=targets, symbols=("<blank>", "a", "b")))
    assert data.task == "ctc"
    assert data.train_y.tolist() == [[1, 2, 0], [2, 0, 0], [1, 2, 1], [1, 0, 0]]
    assert data.test_target_lengths.tolist() == [2, 1]
    with pytest.raises(Refusal, match=r"^data.steps must be 0 for 'u', not 4: sequences that are cut lose some of the"):
        made(utterances(targets=targets, symbols=("<blank>", "a", "b")), steps=4)


def test_nothing_is_left():
    with pytest.raises(Refusal, match=r"^data.longest must leave training sequences, but the shortest of 'u' has 4 st"):
        made(longest=3)


def test_images_of_more_than_a_block():
    """Blocks bound the memory, and change nothing."""
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (2300, 2, 3, 4), np.uint8)
    images = Images(pixels, np.arange(2300) % 3, (np.arange(2200), np.arange(2200, 2300)), ("a", "b", "c"))
    train = image_set("i", images, DataSettings(normalise="train")).train_x
    floats = pixels[:2200].astype(float)
    mean, deviation = floats.mean((0, 2, 3), keepdims=True), floats.std((0, 2, 3), keepdims=True)
    assert np.abs(train - (floats - mean) / deviation).max() < 1e-6
    sample = image_set("i", images, DataSettings(normalise="sample")).train_x
    mean, deviation = floats.mean((2, 3), keepdims=True), floats.std((2, 3), keepdims=True)
    assert np.abs(sample - (floats - mean) / deviation).max() < 1e-6


def test_held_out_speakers_are_of_one_part():
    speakers = np.array(["a"] * 3 + ["b"] * 2 + ["c"] * 4 + ["t"])
    parts = (np.arange(9), np.array([9]))
    seen = set()
    for seed in range(20):
        rest, test = divided(parts, None, DataSettings(held_out=3, seed=seed), speakers)
        assert sorted([*rest, *test]) == list(range(9)), "the true test set is in neither"
        assert not set(speakers[rest]) & set(speakers[test])
        assert len(test) in (3, 4, 5, 6), "whole speakers until there are three samples"
        seen.add(tuple(test))
    assert len(seen) > 2, "the seed chooses"
    assert divided(parts, None, DataSettings(), speakers) is parts


def test_each_class_has_to_stay():
    classes = np.array([0] * 10 + [1] * 2)
    parts = (np.arange(12), np.array([], np.int64))
    rest, _ = divided(parts, classes, DataSettings(held_out=2))
    assert np.bincount(classes[rest]).tolist() == [9, 1]
    with pytest.raises(Refusal, match=r"^data.held_out must leave training samples of each class, but takes 6 of 12; "):
        divided(parts, classes, DataSettings(held_out=6))
