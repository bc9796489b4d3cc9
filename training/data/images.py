"""Images with a class each: scikit-learn's digits, MNIST, CIFAR-10."""
import io
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from circulant.sim.refusal import Refusal
from circulant.training.data import files
from circulant.training.data.assemble import Images, image_set
from circulant.training.data.cache import cached
from circulant.training.data.dataset import Dataset
from circulant.training.settings.data import DataSettings

__all__ = ["cifar10", "digits", "idx", "mnist"]

TEST_DIGITS = 360

NUMERALS = tuple("0123456789")
CIFAR10 = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")

JPEG = "cifar10_jpeg_q75.npz"
BATCHES = (*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin")
RECORD = 1 + 3 * 32 * 32
"""Bytes of an image in the binary version of CIFAR-10: class, then red, green and blue rows."""


def digits(options: DataSettings, progress: files.Progress = files.silent) -> Dataset:
    """scikit-learn's 1797 handwritten digits of 8 × 8 pixels; the seed splits 360 off for the test, all classes alike.

    The layout is "rows" unless another is asked for: a sequence of 8 steps with 8 features.
    """
    try:
        from sklearn.datasets import load_digits
        from sklearn.model_selection import train_test_split
    except ImportError:
        raise Refusal("The data set 'digits' must be read through scikit-learn, which is not installed; "
                      "run: pip install 'circulant[training]'") from None
    bunch = load_digits()
    train, test = train_test_split(np.arange(len(bunch.target)), test_size=TEST_DIGITS, random_state=options.seed,
                                   stratify=bunch.target)
    images = Images(bunch.images.astype(np.uint8)[:, None], bunch.target.astype(np.int64), (train, test), NUMERALS, 16)
    return image_set("digits", images, options, layout="rows")


def mnist(options: DataSettings, progress: files.Progress = files.silent) -> Dataset:
    """MNIST from its four IDX files, compressed or not; 60,000 and 10,000 images (1, 28, 28)."""
    folder = files.locate("mnist", options.path)
    (train_x, train_y), (test_x, test_y) = (
        (idx(_either(folder, f"{part}-images-idx3-ubyte"), 3), idx(_either(folder, f"{part}-labels-idx1-ubyte"), 1))
        for part in ("train", "t10k"))
    if train_x.shape[1:] != test_x.shape[1:] or len(train_x) != len(train_y) or len(test_x) != len(test_y):
        raise Refusal(f"The images and labels in {folder} must be as many as each other and of one size, not "
                      f"{train_x.shape}, {train_y.shape}, {test_x.shape}, {test_y.shape}; fetch the data set again")
    parts = (np.arange(len(train_x)), np.arange(len(train_x), len(train_x) + len(test_x)))
    images = Images(np.concatenate([train_x, test_x])[:, None], np.concatenate([train_y, test_y]).astype(np.int64),
                    parts, NUMERALS)
    return image_set("mnist", images, options)


def cifar10(options: DataSettings, progress: files.Progress = files.silent) -> Dataset:
    """CIFAR-10, 50,000 and 10,000 images (3, 32, 32), from its binary version or from shared's JPEGs.

    The JPEGs are of quality 75, so an accuracy on them must be called one on "CIFAR-10, JPEG q75". Their pixels may
    differ by a few units between versions of the decoder; decoded ones are kept in the cache.
    """
    folder = files.locate("cifar10", options.path)
    folder = folder if folder.is_dir() else folder.parent
    binary = [folder / name for name in BATCHES]
    if binary[0].exists():
        records = np.concatenate([_batch(path) for path in binary])
        test = np.arange(len(records)) >= len(records) - len(records) // len(BATCHES)
        labels, pixels = records[:, 0], records[:, 1:].reshape(-1, 3, 32, 32)
    else:
        labels, pixels, test = _jpegs(folder / JPEG, progress)
    images = Images(pixels, labels.astype(np.int64), (np.flatnonzero(~test), np.flatnonzero(test)), CIFAR10)
    return image_set("cifar10", images, options)


def idx(path: Path, rank: int) -> NDArray[np.uint8]:
    """The array of bytes in an IDX file (two zero bytes, type 8, rank, sizes as big-endian 32-bit integers, data).

    Raises:
        Refusal: when it is missing, damaged, or no IDX file of bytes of this rank.
    """
    raw = files.unpacked(path)
    begin = 4 + 4 * rank
    sizes = tuple(map(int, np.frombuffer(raw[4:begin], ">u4"))) if len(raw) >= begin else ()
    if raw[:4] != bytes((0, 0, 8, rank)) or len(raw) != begin + int(np.prod(sizes)):
        raise Refusal(f"{path} must be an IDX file of bytes with {rank} dimensions and as much data as they say, but "
                      f"it begins with {raw[:4].hex()} and has {len(raw)} bytes; fetch the data set again")
    return np.frombuffer(raw, np.uint8, offset=begin).reshape(sizes)


def _either(folder: Path, name: str) -> Path:
    return next((path for path in (folder / f"{name}.gz", folder / name) if path.exists()), folder / f"{name}.gz")


def _batch(path: Path) -> NDArray[np.uint8]:
    raw = files.unpacked(path)
    if not raw or len(raw) % RECORD:
        raise Refusal(f"{path} must hold records of {RECORD} bytes, but has {len(raw)} bytes; fetch the data set again")
    return np.frombuffer(raw, np.uint8).reshape(-1, RECORD)


def _jpegs(path: Path, progress: files.Progress) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.bool_]]:
    """Labels, pixels (N, 3, 32, 32), and which images are of the test set."""
    import PIL
    from PIL import Image

    archive = files.load_npz(path, ("header", "payload", "offsets", "label", "is_test"))

    def decode() -> dict[str, NDArray[np.uint8]]:
        header, payload, offsets = archive["header"].tobytes(), archive["payload"].tobytes(), archive["offsets"]
        pixels = np.empty((len(offsets) - 1, 32, 32, 3), np.uint8)
        for number, (begin, end) in enumerate(pairwise(offsets)):
            if number % 1000 == 0:
                progress("decoding images", number, len(pixels))
            pixels[number] = np.asarray(Image.open(io.BytesIO(header + payload[begin:end])))
        return {"pixels": np.ascontiguousarray(pixels.transpose(0, 3, 1, 2))}

    source = {"source": files.fingerprint([path]), "decoder": f"Pillow {PIL.__version__}"}
    return archive["label"], cached("cifar10", source, decode)["pixels"], archive["is_test"].astype(bool)
