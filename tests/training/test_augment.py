"""Mirrored and moved images, against copies made one by one."""
import pytest
import torch

from circulant.sim.refusal import Refusal
from circulant.training.augment import augment


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


def test_draws_follow_the_generator():
    x = torch.randn(16, 1, 8, 8)
    torch.manual_seed(3)
    one = augment(x, "flip-shift")
    torch.manual_seed(3)
    assert torch.equal(one, augment(x, "flip-shift"))
    assert not torch.equal(one, augment(x, "flip-shift"))
    assert augment(x, "none") is x


def test_refuses_sequences():
    with pytest.raises(Refusal, match=r"images \(N, C, H, W\).*\(20, 8\)"):
        augment(torch.randn(4, 20, 8), "shift")
