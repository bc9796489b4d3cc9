"""Data of the comparison: spoken digits and images in noise, and sentences."""
import numpy as np

from circulant.sim.files.data_folder import data_folder
from circulant.training.data import Dataset, files, load_data

__all__ = ["BANDS", "CLASSES", "FRAME", "PHONES", "STACK", "noisy_digits", "noisy_images", "sentences"]

CLASSES, SPEAKERS, BANDS, STACK = 60, 6, 16, 8
NOISE, COPIES, HELD_OUT = 1.0, 4, 300
IMAGES, HELD_IMAGES, IMAGE_NOISE = 6000, 2000, 0.5
HELD_SENTENCES, FRAME, PHONES = 240, 160, 40


def noisy_digits(*, held_out: bool = False) -> Dataset:
    """FSDD's official parts with normal noise on the normalised bands, the test part four times with other noise.

    Parameters:
        held_out: recordings of the training part stand for the test part.
    """
    data = load_data("fsdd", steps=STACK * 10)
    archive = files.load_npz(data_folder() / "fsdd" / "fsdd.npz", ("label", "speaker", "is_test"))
    test = archive["is_test"].astype(bool)
    parts = []
    for x, y, chosen in ((data.train_x, data.train_y, ~test), (data.test_x, data.test_y, test)):
        assert np.array_equal(y, archive["label"][chosen]), "recordings are in the order of the archive"
        labels = y * SPEAKERS + archive["speaker"][chosen]
        parts.append((x[..., :BANDS].reshape(len(x), -1, STACK * BANDS), labels.astype(np.int64)))
    (train_x, train_y), (test_x, test_y) = parts
    if held_out:
        order = np.random.default_rng(0).permutation(len(train_x))
        held, rest = order[:HELD_OUT], order[HELD_OUT:]
        test_x, test_y, train_x, train_y = train_x[held], train_y[held], train_x[rest], train_y[rest]
    test_x, test_y = np.concatenate([test_x] * COPIES), np.concatenate([test_y] * COPIES)
    rng = np.random.default_rng(1)
    noisy = [(x + rng.normal(0, NOISE, x.shape)).astype(np.float32) for x in (train_x, test_x)]
    return Dataset("noisy-digits", noisy[0], train_y, test_x=noisy[1], test_y=test_y, classes=CLASSES)


def noisy_images(*, held_out: bool = False) -> Dataset:
    """MNIST's first 6,000 training images and its test part, with normal noise of half the range of a pixel.

    Parameters:
        held_out: the 2,000 training images that follow stand for the test part.
    """
    data = load_data("mnist")
    test_x, test_y = data.test_x, data.test_y
    if held_out:
        test_x, test_y = (part[IMAGES:IMAGES + HELD_IMAGES] for part in (data.train_x, data.train_y))
    rng = np.random.default_rng(1)
    noisy = [(x + rng.normal(0, IMAGE_NOISE, x.shape)).astype(np.float32) for x in (data.train_x[:IMAGES], test_x)]
    return Dataset("noisy-mnist", noisy[0], data.train_y[:IMAGES], test_x=noisy[1], test_y=test_y, classes=10)


def sentences(*, held_out: bool = False) -> Dataset:
    """Sentences of speechocean762 as the shipped experiments take them.

    Parameters:
        held_out: training sentences of speakers that are left out stand for the test part.
    """
    data = load_data("speechocean762", longest=220, stack=4, held_out=HELD_SENTENCES if held_out else 0)
    assert (data.shape[-1], data.classes) == (FRAME, PHONES), "networks are made for these"
    return data
