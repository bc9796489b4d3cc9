"""Images: the bytes of the files, the layouts, and what is refused."""
import gzip

import numpy as np
import pytest

from circulant.sim.files.data_folder import data_folder
from circulant.sim.refusal import Refusal
from circulant.training.data import load_data
from circulant.training.data.images import idx
from tests.data import real


def write_idx(path, array):
    header = bytes((0, 0, 8, array.ndim)) + b"".join(size.to_bytes(4, "big") for size in array.shape)
    path.write_bytes(header + array.astype(np.uint8).tobytes())


@pytest.fixture
def tiny(tmp_path):
    """Four files of MNIST's names, not compressed, with 5 and 2 images of 2 × 3."""
    rng = np.random.default_rng(0)
    for part, count in (("train", 5), ("t10k", 2)):
        write_idx(tmp_path / f"{part}-images-idx3-ubyte", rng.integers(0, 256, (count, 2, 3)))
        write_idx(tmp_path / f"{part}-labels-idx1-ubyte", np.arange(count))
    return tmp_path


def test_digits():
    from sklearn.datasets import load_digits

    data = load_data("digits")
    assert data.train_x.shape == (1437, 8, 8)
    assert data.test_x.shape == (360, 8, 8)
    counts = np.bincount(data.test_y)
    assert counts.min() >= 34, f"the split must be stratified, not {counts}"
    images = load_digits().images
    together = np.concatenate([data.train_x, data.test_x]) * 16
    assert sorted(map(bytes, together)) == sorted(map(bytes, images.astype(np.float32))), "no image lost, none twice"
    assert data.train_x.min() == 0
    assert data.train_x.max() == 1


def test_the_seed_chooses_the_split():
    one, same, other = (load_data("digits", seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(one.test_x, same.test_x)
    assert not np.array_equal(one.test_x, other.test_x)


@real("mnist")
def test_mnist():
    raw = gzip.decompress((data_folder() / "mnist" / "t10k-images-idx3-ubyte.gz").read_bytes())[16:]
    images = np.frombuffer(raw, np.uint8).reshape(-1, 28, 28)
    data = load_data("mnist", subset=100)
    assert data.test_x.shape == (10_000, 1, 28, 28)
    assert np.array_equal(data.test_x[:, 0], (images / 255).astype(np.float32))
    assert data.test_y[:10].tolist() == [7, 2, 1, 0, 4, 1, 4, 9, 5, 9]


@real("cifar10")
def test_cifar10():
    data = load_data("cifar10", subset=100, test_subset=1000)
    assert data.shape == (3, 32, 32)
    assert data.symbols[0] == "airplane"
    blue_over_red = [(data.test_x[data.test_y == label, 2] - data.test_x[data.test_y == label, 0]).mean()
                     for label in range(10)]
    assert np.argmax(blue_over_red) in (0, 8), "airplanes and ships are the blue ones, in the sky and on the sea"


def test_layouts(tiny):
    image, flat, rows = (load_data("mnist", path=str(tiny), layout=layout).train_x
                         for layout in ("image", "flat", "rows"))
    assert (image.shape, flat.shape, rows.shape) == ((5, 1, 2, 3), (5, 6), (5, 2, 3))
    assert np.array_equal(image[:, 0], rows)
    assert np.array_equal(image.reshape(5, 6), flat)


def test_rows_of_colours(tmp_path):
    rng = np.random.default_rng(0)
    for number in range(1, 7):
        pixels = rng.integers(0, 256, (10, 3072), np.uint8)
        name = f"data_batch_{number}.bin" if number < 6 else "test_batch.bin"
        (tmp_path / name).write_bytes(np.hstack([np.arange(10, dtype=np.uint8)[:, None], pixels]).tobytes())
    data = load_data("cifar10", path=str(tmp_path))
    assert np.array_equal(data.test_x.reshape(10, -1), (pixels / 255).astype(np.float32)), "the binary version"
    assert len(data.train_x) == 50
    rows = load_data("cifar10", path=str(tmp_path), layout="rows").test_x
    assert rows.shape == (10, 32, 96)
    assert np.array_equal(rows[3, 5].reshape(3, 32), data.test_x[3, :, 5])
    (tmp_path / "test_batch.bin").write_bytes(b"x")
    with pytest.raises(Refusal, match=r"test_batch.bin must hold records of 3073 bytes, but has 1 bytes; fetch the da"):
        load_data("cifar10", path=str(tmp_path))


@pytest.mark.parametrize("name", ["digits", pytest.param("cifar10", marks=real("cifar10"))])
def test_normalised(name):
    train = load_data(name, normalise="train", layout="image", subset=1200)
    axes = (0, 2, 3)
    assert np.abs(train.train_x.mean(axes, dtype=float)).max() < 1e-6
    assert np.abs(train.train_x.std(axes, dtype=float) - 1).max() < 1e-6
    sample = load_data(name, normalise="sample", layout="image", subset=10, test_subset=300)
    assert np.abs(sample.test_x.mean((2, 3), dtype=float)).max() < 1e-6
    assert np.abs(sample.test_x.std((2, 3), dtype=float) - 1).max() < 1e-5


@pytest.mark.parametrize(("raw", "begins"), [
    (b"", ""), (b"\0\0\x08\x03\0", "00000803"), (b"\0\0\x0d\x01\0\0\0\x01x", "00000d01"),
    (bytes((0, 0, 8, 3)) + bytes((0, 0, 0, 2)) * 3 + b"x" * 7, "00000803")])
def test_what_is_no_idx_file(tmp_path, raw, begins):
    (tmp_path / "x").write_bytes(raw)
    with pytest.raises(Refusal, match=rf"x must be an IDX file of bytes with 3 dimensions .* begins with {begins} and h"
                                      f"as {len(raw)} bytes; fetch"):
        idx(tmp_path / "x", 3)


def test_labels_of_other_images(tiny):
    write_idx(tiny / "t10k-labels-idx1-ubyte", np.arange(3))
    with pytest.raises(Refusal, match=r"must be as many as each other and of one size, not \(5, 2, 3\), \(5,\), \(2, "):
        load_data("mnist", path=str(tiny))


def test_a_file_that_is_missing(tiny):
    (tiny / "train-labels-idx1-ubyte").unlink()
    with pytest.raises(Refusal, match=r"train-labels-idx1-ubyte.gz must be a readable file, but it is not"):
        load_data("mnist", path=str(tiny))
