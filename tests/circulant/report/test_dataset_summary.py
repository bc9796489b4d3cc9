"""What a data set holds, in figures, words and a picture."""
import io

import numpy as np
import pytest
from matplotlib.image import imread

from circulant.report import dataset_summary
from circulant.training.data import Dataset


def ctc():
    rng = np.random.default_rng(0)
    return Dataset("speech", rng.normal(size=(3, 20, 4)).astype(np.float32),
                   np.array([[1, 2, 1], [2, 0, 0], [1, 1, 0]]),
                   np.zeros((1, 9, 4), np.float32), np.array([[3]]), classes=4, task="ctc",
                   train_lengths=np.array([20, 7, 12]), test_lengths=np.array([9]),
                   train_target_lengths=np.array([3, 1, 2]), test_target_lengths=np.array([1]),
                   symbols=("<blank>", "a", "b", "c"))


def images(classes=3):
    return Dataset("images", np.ones((6, 2, 5, 4), np.float32), np.arange(6) % 3, np.zeros((3, 2, 5, 4), np.float32),
                   np.arange(3), classes=classes)


def test_figures():
    held = dataset_summary.figures(ctc())
    assert (held["task"], held["classes"], held["digest"]) == ("ctc", 4, ctc().digest())
    train = held["train"]
    assert (train["samples"], train["shape"], train["bytes"]) == (3, [20, 4], 3 * 20 * 4 * 4)
    assert train["lengths"] == {"least": 7, "median": 12.0, "greatest": 20, "sum": 39}
    assert train["target_lengths"] == {"least": 1, "median": 2.0, "greatest": 3, "sum": 6}
    assert train["counts"] == [0, 4, 2, 0], "padding is no target"
    assert "lengths" not in dataset_summary.figures(images())["train"]


def numbers():
    y = np.array([[[1.0], [3.0]], [[5.0], [np.nan]]], np.float32)
    return Dataset("numbers", np.zeros((2, 2, 3), np.float32), y, np.zeros((2, 2, 3), np.float32), y,
                   task="regression", train_lengths=np.array([2, 1]), test_lengths=np.array([2, 1]))


def labels():
    y = np.array([[1, 0], [1, 1], [0, 0]])
    return Dataset("labels", np.zeros((3, 4), np.float32), y, np.zeros((3, 4), np.float32), y, task="multi-label")


def test_numbers_and_labels():
    held = dataset_summary.figures(numbers())
    assert held["train"]["targets"] == [{"least": 1.0, "greatest": 5.0, "mean": 3.0,
                                         "deviation": pytest.approx(np.sqrt(8 / 3))}], "padding is no target"
    text = dataset_summary.words(held)
    assert text.startswith("numbers: regression, 1 outputs\n")
    assert "           target 0: 1 … 5, mean 3 ± 1.633\n" in text
    held = dataset_summary.figures(labels())
    assert held["train"]["counts"] == [2, 1]
    assert "labels: multi-label, 2 labels" in dataset_summary.words(held)
    assert "1 … 2 targets per label" in dataset_summary.words(held)


def test_words():
    assert dataset_summary.words(dataset_summary.figures(ctc())).splitlines()[:6] == [
        "speech: ctc, 4 classes, of which 0 is the blank",
        "  names    <blank> a b c",
        f"  train    3 sequences of 20 steps × 4 features, 0.0 MB, values {ctc().train_x.min():.4g} … "
        f"{ctc().train_x.max():.4g}",
        "           7 … 20 steps each, median 12, 39 in all",
        "           1 … 3 symbols each, median 2, 6 in all",
        "           0 … 4 targets per class"]
    assert dataset_summary.words(dataset_summary.figures(images())).splitlines()[1] == (
        "  train    6 images of 2 × 5 × 4, 0.0 MB, values 1 … 1")


@pytest.mark.parametrize(("data", "panels"), [(numbers(), 2), (ctc(), 3), (images(), 1), (images(classes=200), 1)])
def test_picture(data, panels):
    pixels = imread(io.BytesIO(dataset_summary.picture(data)))
    assert pixels.shape[:2] == (480 * panels, 1500)
    assert pixels[..., :3].std() > 0.05, "something is drawn"
