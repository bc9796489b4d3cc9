"""Frames with a misplaced tlast: what is left out is zero, or behind the end."""
import numpy as np
import pytest

from circulant.sim.cosim.frames import misplaced

VALUES = np.array([1, 2, 0, 3, 0, 0, 0, 4, 5, 0, 0, 0], np.uint8)


def frame(*marks):
    return VALUES[:, None], np.isin(np.arange(len(VALUES)), marks)


def text(made):
    beats, last = made
    return [f"{value}{'!' * bool(mark)}" for value, mark in zip(beats[:, 0].tolist(), last, strict=True)]


@pytest.mark.parametrize(("marks", "each", "sent"), [
    ([11], None, "1 2 0 3 0 0 0 4 5!"),  # a sample
    ([11], 4, "1 2 0 3 0 0 0 4 5!"),  # a sequence of three vectors
    ([7, 11], 4, "1 2 0 3 0 0 0 4! 5!"),  # of two interleaved streams, which end with their last vectors
    ([3, 7, 11], 4, "1 2 0 3! 0 0 0 4! 5!"),
    ([11], 3, "1 2 0 3 0 0 0 4 5 0!"),  # one beat of a vector comes
    ([11], 1, "1 2 0 3 0 0 0 4 5 0 0 0!"),  # nothing can be misplaced
])
def test_zeros_at_the_end_are_not_sent(marks, each, sent):
    assert text(misplaced(frame(*marks), each=each)) == sent.split()


def test_a_late_sample_goes_on_behind_its_end():
    late = text(misplaced(frame(11), each=None, late=True))
    assert late[:12] == [str(value) for value in VALUES]
    assert late[12:] == ["254", "253", "255!"], "none of them is what the sample begins with"


def test_no_sequence_is_late():
    assert text(misplaced(frame(11), each=4, late=True)) == text(misplaced(frame(11), each=4))
