"""CTC decoding against the definition: all paths of tiny cases, and torch's loss; phone errors against hand cases."""
import itertools
import math
from collections import defaultdict

import numpy as np
import pytest

from circulant.sim.refusal import Refusal
from circulant.training.data.phones import folding
from circulant.training.task.decode import beam, edits, greedy, phone_error_rate


def outputs(seed, *shape, sharpness=1.0):
    logits = np.random.default_rng(seed).normal(0, sharpness, shape)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def collapsed(path):
    return tuple(symbol for symbol, _ in itertools.groupby(path) if symbol)


def all_labellings(logs):
    """The probability of every sequence of symbols, by summing over every path."""
    total = defaultdict(float)
    for path in itertools.product(range(logs.shape[1]), repeat=len(logs)):
        total[collapsed(path)] += math.exp(sum(logs[step, symbol] for step, symbol in enumerate(path)))
    return total


def log_probability(logs, labels):
    """By torch, which has its own forward algorithm."""
    import torch

    loss = torch.nn.functional.ctc_loss(
        torch.from_numpy(logs)[:, None], torch.from_numpy(np.asarray(labels, np.int64))[None],
        torch.tensor([len(logs)]), torch.tensor([len(labels)]), reduction="none")
    return -float(loss[0])


@pytest.mark.parametrize(("path", "labels"), [
    ([0, 0, 0], []), ([1, 1, 1], [1]), ([1, 0, 1], [1, 1]), ([2, 1, 1, 0, 1], [2, 1, 1]), ([0, 3, 3, 0, 0, 2], [3, 2])])
def test_greedy_on_paths(path, labels):
    logs = np.log(np.where(np.eye(4)[path] > 0, 0.97, 0.01))[None]
    assert greedy(logs)[0].tolist() == labels


def test_greedy_on_outputs():
    logs = outputs(0, 20, 30, 5)
    for labels, row in zip(greedy(logs), logs, strict=True):
        assert tuple(labels) == collapsed(row.argmax(-1).tolist())
        assert labels.dtype == np.int64


@pytest.mark.parametrize(("steps", "classes"), [(1, 2), (3, 2), (4, 3), (5, 3), (4, 4), (6, 3)])
def test_an_exhaustive_beam_is_exact(steps, classes):
    logs = outputs(steps, 12, steps, classes, sharpness=0.5)
    for row, labels, score in zip(logs, *beam(logs, width=10_000), strict=True):
        table = all_labellings(row)
        best = max(table, key=table.__getitem__)
        assert tuple(labels) == best
        assert score == pytest.approx(math.log(table[best]), abs=1e-9)


@pytest.mark.parametrize("width", [1, 2, 4, 16])
def test_the_score_is_a_lower_bound_of_the_probability(width):
    logs = outputs(width, 20, 25, 6, sharpness=2)
    for row, labels, score in zip(logs, *beam(logs, width=width), strict=True):
        assert score <= log_probability(row, labels) + 1e-9


def test_the_beam_finds_what_is_at_least_as_probable_as_the_greedy_path():
    logs = outputs(7, 60, 30, 8, sharpness=3)
    better = 0
    for row, one, other in zip(logs, beam(logs, width=64)[0], greedy(logs), strict=True):
        found, path = log_probability(row, one), log_probability(row, other)
        assert found >= path - 1e-9
        better += found > path + 1e-9
    assert better > 20, "on such outputs the best path is often not that of the best labelling"


def test_wider_beams_find_no_less():
    logs = outputs(3, 30, 40, 10, sharpness=1.5)
    scores = [beam(logs, width=width)[1].mean() for width in (1, 4, 16, 64)]
    assert scores == sorted(scores)
    assert scores[0] < scores[-1]


def test_a_case_in_which_they_differ():
    logs = np.log(np.array([[0.6, 0.4], [0.6, 0.4]]))[None]  # Graves's: the blank path has 0.36, "a" has 0.64.
    assert greedy(logs)[0].tolist() == []
    labels, score = beam(logs)
    assert labels[0].tolist() == [1]
    assert score[0] == pytest.approx(math.log(0.64))


def test_classes_that_are_impossible():
    logs = np.full((1, 4, 3), -np.inf)
    logs[0, [0, 1, 2, 3], [1, 0, 1, 1]] = 0.0
    for width in (1, 3, 50):
        labels, score = beam(logs, width=width)
        assert labels[0].tolist() == [1, 1]
        assert score[0] == 0.0


def test_steps_beyond_the_length_are_not_read():
    logs, lengths = outputs(5, 300, 12, 4), np.random.default_rng(5).integers(1, 13, 300)
    together, scores = beam(logs, lengths, width=8)
    spoilt = np.where(np.arange(12)[:, None] < lengths[:, None, None], logs, np.nan)
    assert [one.tolist() for one in together] == [one.tolist() for one in beam(spoilt, lengths, width=8)[0]]
    for at in range(0, 300, 17):
        alone, score = beam(logs[at:at + 1, :lengths[at]], width=8)
        assert together[at].tolist() == alone[0].tolist()
        assert scores[at] == pytest.approx(score[0], abs=1e-12)
        assert greedy(logs, lengths)[at].tolist() == greedy(logs[at:at + 1, :lengths[at]])[0].tolist()


def test_a_long_sequence_keeps_its_prefixes_apart():
    """Against a search over dictionaries, which tells prefixes apart by what they are."""
    logs = outputs(11, 1, 60, 5, sharpness=1.5)
    prefixes = {(): (0.0, -math.inf)}
    for row in logs[0]:
        after = defaultdict(lambda: (-math.inf, -math.inf))
        for prefix, (blank, symbol) in prefixes.items():
            both = np.logaddexp(blank, symbol)
            after[prefix] = (np.logaddexp(after[prefix][0], both + row[0]), after[prefix][1])
            for label in range(1, 5):
                repeated = bool(prefix) and prefix[-1] == label
                if repeated:
                    after[prefix] = (after[prefix][0], np.logaddexp(after[prefix][1], symbol + row[label]))
                longer = (*prefix, label)
                gain = (blank if repeated else both) + row[label]
                after[longer] = (after[longer][0], np.logaddexp(after[longer][1], gain))
        prefixes = dict(sorted(after.items(), key=lambda entry: -np.logaddexp(*entry[1]))[:20])
    best = max(prefixes, key=lambda prefix: np.logaddexp(*prefixes[prefix]))
    labels, score = beam(logs, width=20)
    assert tuple(labels[0]) == best
    assert score[0] == pytest.approx(np.logaddexp(*prefixes[best]), abs=1e-9)


@pytest.mark.parametrize(("found", "target", "wrong"), [
    ([1, 2, 3], [1, 2, 3], 0), ([], [1, 2, 3], 3), ([1, 9, 3], [1, 2, 3], 1), ([1, 3], [1, 2, 3], 1),
    ([1, 2, 2, 3], [1, 2, 3], 1), ([3, 1, 2], [1, 2, 3], 2), ([4, 5, 6, 7], [1], 4), ([300, 2], [300], 1)])
def test_edits_by_hand(found, target, wrong):
    padded = np.array([[*target, 0, 0]])
    assert edits([np.array(found, np.int64)], padded, [len(target)]).tolist() == [wrong]
    assert phone_error_rate([found], padded, [len(target)]) == wrong / len(target)


def test_the_rate_is_over_all_symbols():
    found = [[1], [1, 2, 3, 4], [7, 7]]
    targets, lengths = np.array([[1, 0, 0, 0], [1, 2, 3, 5], [2, 0, 0, 0]]), np.array([1, 4, 1])
    assert phone_error_rate(found, targets, lengths) == (0 + 1 + 2) / 6, "not the mean of the sequences' rates"


def test_folded_symbols():
    fold, names = folding(("<blank>", "sil", "cl", "q", "ao", "aa"))
    assert names[fold[4]] == "aa"
    assert phone_error_rate([[1, 4]], np.array([[2, 3, 5]]), [3], fold=fold) == 0.0
    assert phone_error_rate([[1, 4]], np.array([[2, 3, 5]]), [3]) == 1.0


@pytest.mark.parametrize(("logs", "lengths", "message"), [
    (np.zeros((2, 3)), None, r"^Log-probabilities must be floats of shape \(N, steps, classes\) .* not float64 of"),
    (np.zeros((2, 3, 1)), None, r"at least one symbol, not float64 of shape \(2, 3, 1\)"),
    (np.zeros((2, 3, 4), int), None, r"not int64 of shape \(2, 3, 4\)"),
    (np.zeros((2, 3, 4)), None, r"sum up to 1 at each step, but those of sequence 0 sum up to 4 … 4; take log_softmax"),
    (np.full((2, 3, 4), np.nan), None, "sum up to nan"),
    (outputs(0, 2, 3, 4), [1], r"^Lengths must be 2 integers from 1 to 3, not \[1\]; give those of this batch$"),
    (outputs(0, 2, 3, 4), [1, 4], r"not \[1, 4\]"),
    (outputs(0, 2, 3, 4), [0, 3], r"not \[0, 3\]"),
    (outputs(0, 2, 3, 4), [1.0, 2.0], r"not \[1.0, 2.0\]"),
])
@pytest.mark.parametrize("decode", [greedy, beam])
def test_what_is_not_decoded(decode, logs, lengths, message):
    with pytest.raises(Refusal, match=message):
        decode(logs, lengths)


@pytest.mark.parametrize("width", [0, -1, 2.0, True])
def test_wrong_width(width):
    with pytest.raises(Refusal, match=rf"^The width of a beam must be an integer of at least 1, not {width}; 16 is a"):
        beam(outputs(0, 1, 2, 3), width=width)


def test_wrong_counts():
    with pytest.raises(Refusal, match=r"^Symbols and targets must be of as many .* not 1, \(2, 3\) and \(2,\); give"):
        edits([[1]], np.ones((2, 3), int), [1, 1])
    with pytest.raises(Refusal, match=r"^A phone error rate must be of targets with at least one symbol"):
        phone_error_rate([[1]], np.zeros((1, 1), int), [0])
