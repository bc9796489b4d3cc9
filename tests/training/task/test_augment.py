"""Mirrored and moved images, delayed and masked sequences, against copies made one by one."""
import pytest
import torch

from circulant.sim.refusal import Refusal
from circulant.training.task import augment as module
from circulant.training.task.augment import SPEEDS, delay, mask, paced
from circulant.training.task.batches import Batch


def batch(x, lengths=None, symbols=None) -> Batch:
    y = torch.zeros(len(x), 3 if symbols else 1, dtype=torch.long)
    return Batch(x, y, lengths if lengths is None else torch.tensor(lengths),
                 symbols if symbols is None else torch.full((len(x),), symbols), torch.arange(len(x)))


def augment(x, name, frames=1):
    return module.augment(batch(x), name, frames).x


@pytest.fixture(autouse=True)
def _seed():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


def test_flip():
    x = torch.randn(200, 3, 4, 5)
    y = augment(x, "flip")
    mirrored = [bool(torch.equal(b, a.flip(-1))) for a, b in zip(x, y, strict=True)]
    kept = [bool(torch.equal(b, a)) for a, b in zip(x, y, strict=True)]
    assert all(m != k for m, k in zip(mirrored, kept, strict=True)), "each image must be whole or mirrored"
    assert 70 < sum(mirrored) < 130


def test_shift():
    x = torch.randn(300, 2, 7, 6)
    y = augment(x, "shift")
    seen = set()
    for before, after in zip(x, y, strict=True):
        framed = torch.zeros(2, 11, 10)
        framed[:, 2:9, 2:8] = before
        places = [(i, j) for i in range(5) for j in range(5) if torch.equal(after, framed[:, i:i + 7, j:j + 6])]
        assert len(places) == 1, "an image must be moved as a whole, with zeros where nothing is"
        seen.update(places)
    assert len(seen) == 25, "every shift of up to two pixels must occur"


@pytest.mark.parametrize("name", ["flip", "shift", "flip-shift"])
def test_images_stay_as_they_lie_in_memory(name):
    """Convolutions are faster by a third with channels last, which an augmentation must not undo."""
    x = torch.randn(8, 3, 6, 5)
    assert augment(x, name).is_contiguous()
    assert augment(x.contiguous(memory_format=torch.channels_last), name).is_contiguous(
        memory_format=torch.channels_last)


def test_draws_follow_the_generator():
    x = torch.randn(16, 1, 8, 8)
    torch.manual_seed(3)
    one = augment(x, "flip-shift")
    torch.manual_seed(3)
    assert torch.equal(one, augment(x, "flip-shift"))
    assert not torch.equal(one, augment(x, "flip-shift"))
    assert augment(x, "none") is x


def test_delay():
    x = torch.randn(200, 5, 3 * 4)
    seen = set()
    for before, after in zip(x, delay(x, 3), strict=True):
        frames = torch.cat([before.reshape(15, 4), torch.zeros(2, 4)])
        late = [d for d in range(3) if torch.equal(after, frames[d:d + 15].reshape(5, 12))]
        assert len(late) == 1, "a sequence must begin at another frame, and end with zeros"
        seen.update(late)
    assert seen == {0, 1, 2}
    assert torch.equal(delay(x, 1), x)
    torch.manual_seed(3)
    one = delay(x, 3)
    torch.manual_seed(3)
    assert torch.equal(augment(x, "delay", 3), one)


def test_mask():
    bands, frames = 20, 2
    x = torch.rand(300, 30, frames * bands) + 1
    widths = set()
    for before, after in zip(x, mask(x, frames), strict=True):
        before, after = before.reshape(60, bands), after.reshape(60, bands)
        hidden = after == 0
        assert torch.equal(torch.where(hidden, before, after), before), "what is not hidden must stay"
        whole_bands, whole_frames = hidden.all(0), hidden.all(1)
        assert torch.equal(hidden, whole_bands | whole_frames[:, None]), "a mask must be of whole bands or frames"
        for runs, widest in ((whole_bands, 4), (whole_frames, 3)):
            lengths = [len(run) for run in "".join("x" if at else " " for at in runs).split()]
            assert len(lengths) <= 2
            assert sum(lengths) <= 2 * widest
            widths.update((widest, length) for length in lengths)
    assert {(4, 4), (4, 1), (3, 3), (3, 1)} <= widths


@pytest.mark.parametrize("name", ["delay", "mask", "speed"])
def test_refuses_images_that_are_to_be_delayed_or_masked(name):
    with pytest.raises(Refusal, match=r"sequences \(N, T, features\).*\(1, 8, 8\)"):
        augment(torch.randn(4, 1, 8, 8), name)


def test_a_batch_is_faster_or_slower_as_a_whole():
    x, seen = torch.arange(40.0).reshape(1, 20, 2).repeat(3, 1, 1), set()
    for _ in range(30):
        found = paced(batch(x, [20, 10, 1]), 1)
        steps = found.x.shape[1]
        seen.add(steps)
        speed = next(speed for speed in SPEEDS if round(20 / speed) == steps)
        assert found.lengths.tolist() == [steps, round(10 / speed), 1]
        inner = slice(1, steps - 1)
        wanted = 2 * ((torch.arange(steps) + 0.5) * 20 / steps - 0.5)  # Frames lie in the middle of their steps.
        assert torch.allclose(found.x[0, inner, 0], wanted[inner], atol=1e-4), "a ramp stays one, and is not moved"
    assert seen == {18, 20, 22}
    assert paced(batch(torch.randn(2, 10, 6)), 3).x.shape[2] == 6


def test_a_batch_keeps_its_pace_where_its_symbols_need_the_steps():
    x = torch.randn(2, 9, 4)
    assert {paced(batch(x, [9, 9], symbols=4)).x.shape[1] for _ in range(30)} == {9, 10}
    assert {paced(batch(x, [9, 9], symbols=3)).x.shape[1] for _ in range(30)} == {8, 9, 10}


def test_targets_at_each_step_have_no_other_speed():
    each = batch(torch.randn(2, 9, 4))._replace(y=torch.zeros(2, 9))
    with pytest.raises(Refusal, match=r"^training\.augment = 'speed-mask' must have one target for a sequence"):
        module.augment(each, "speed-mask")


def test_refuses_sequences():
    with pytest.raises(Refusal, match=r"images \(N, C, H, W\).*\(20, 8\)"):
        augment(torch.randn(4, 20, 8), "shift")
