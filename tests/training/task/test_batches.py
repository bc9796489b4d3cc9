"""Order, padding and cutting of batches."""
import numpy as np
import pytest
import torch

from circulant.training.data import Dataset
from circulant.training.task.batches import Part


def ragged(count: int = 200, seed: int = 0) -> Dataset:
    """Sequences of one class each, with lengths from 1 to 9 and ones in their valid steps."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 10, count)
    x = (np.arange(9) < lengths[:, None])[..., None] * np.ones((1, 1, 2))
    x, y = x.astype(np.float32), np.arange(count) % 2
    return Dataset("ragged", x, y, x[:50], y[:50], classes=2, train_lengths=lengths, test_lengths=lengths[:50])


def part(exact: bool = False, name: str = "train") -> Part:
    return Part(ragged(), name, torch.device("cpu"), exact=exact)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("seed", [None, 0, 1])
def test_every_sample_once(exact, seed):
    generator = None if seed is None else torch.Generator().manual_seed(seed)
    batches = part(exact).order(16, generator)
    assert sorted(torch.cat(batches).tolist()) == list(range(200))
    assert max(map(len, batches)) == 16
    assert len(batches) == len(part(exact).order(16)), "the number of batches decides the learning rate"


def test_the_generator_decides_the_order():
    orders = [torch.cat(part().order(16, torch.Generator().manual_seed(seed))) for seed in (0, 0, 1)]
    assert torch.equal(orders[0], orders[1])
    assert not torch.equal(orders[0], orders[2])


def test_sequences_meet_others_of_their_length():
    parts = part()
    kept = [parts.take(batch) for batch in parts.order(16, torch.Generator().manual_seed(0))]
    padded = sum(batch.x.shape[0] * batch.x.shape[1] for batch in kept)
    assert padded <= 1.1 * sum(int(batch.lengths.sum()) for batch in kept)
    firsts = [int(batch.lengths[0]) for batch in kept]
    assert firsts != sorted(firsts), "short sequences must not come first"


def test_exact_batches_have_no_padding():
    parts = part(exact=True)
    for chosen in parts.order(16, torch.Generator().manual_seed(0)):
        batch = parts.take(chosen)
        assert batch.x.shape[1] == batch.lengths.min() == batch.lengths.max()
        assert batch.x.all()


def test_batches_are_cut_after_the_longest():
    batch = part(name="test").take(torch.tensor([3, 1]))
    assert batch.x.shape == (2, int(batch.lengths.max()), 2)
    assert batch.indices.tolist() == [3, 1]


def test_without_lengths_the_order_is_that_of_the_generator():
    data = ragged()
    data = Dataset("plain", data.train_x, data.train_y, data.test_x, data.test_y, classes=2)
    parts = Part(data, "train", torch.device("cpu"))
    wanted = torch.randperm(200, generator=torch.Generator().manual_seed(5)).split(16)
    for one, other in zip(parts.order(16, torch.Generator().manual_seed(5)), wanted, strict=True):
        assert torch.equal(one, other)
    assert parts.take(wanted[0]).lengths is None


def test_read_only_data():
    data = ragged()
    data.train_x.setflags(write=False)
    assert Part(data, "train", torch.device("cpu")).take(torch.tensor([0])).x.shape[0] == 1
