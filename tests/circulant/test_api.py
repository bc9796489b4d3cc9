"""The Python API refuses what the command line would: one sentence, never the traceback of something inside."""

import numpy as np
import pytest
from torch import nn

import circulant
from circulant.sim.refusal import Refusal
from circulant.training.loop.train import train_direct
from tests.circulant.conftest import small_network

NETWORK, INPUTS = small_network()
X, Y = np.zeros((8, 4), np.float32), np.zeros(8, np.int64)
MODEL = nn.Sequential(nn.Linear(4, 4))
DATA = circulant.Dataset("mine", X, Y, X, Y, classes=2)


@pytest.mark.parametrize(("call", "words"), [
    (lambda: circulant.train_admm(MODEL, X), "train_admm must be given a Dataset or a tuple or a list or a DataLoader "
     "as data, not a numpy array; make one with circulant.load_data, or circulant.Dataset of arrays"),
    (lambda: circulant.train_admm(MODEL, X, epoch=3), "train_admm must be given arguments that it knows, not 'epoch'; "
     "did you mean 'epochs'?"),
    (lambda: circulant.train_admm(MODEL, X, tolerence=3), "did you mean 'tolerance'?"),
    (lambda: circulant.train_admm(MODEL, X, learning_rate=3), "not 'learning_rate'; here that is lr"),
    (lambda: circulant.train_admm(MODEL, X, start="dense"), "train_admm must be given arguments that it knows, not "
     "'start', which does nothing there: it has no phase 'direct'; leave it out"),
    (lambda: circulant.train_admm(MODEL, X, device="cpu"), "it trains where the model is; move that"),
    (lambda: train_direct(MODEL, X, tolerance=1), "'tolerance', which does nothing there: it has no phase 'admm'"),
    (lambda: train_direct(MODEL, X, retrain_epochs=1), "it has no phase 'retrain'; leave it out"),
    (lambda: circulant.train_admm(MODEL, DATA, lr=0, seed=-1), "training.learning_rate must be a number from 1e-08 to "
     "10, not 0; training.seed must be an integer from 0 to 2147483647, not -1"),
    (lambda: circulant.generate(MODEL), "generate must be given a Network as network, not a Sequential; make one "
     "of a torch model with circulant.export"),
    (lambda: circulant.generate(NETWORK, multiplier=3), "did you mean 'multipliers'?"),
    (lambda: circulant.generate(NETWORK, multipliers="many"), "an integer as multipliers, not 'many'"),
    (lambda: circulant.verify("design", X), "verify must be given a Vectors or a text or a Path as vectors, not a "
     "numpy array; make them with Network.vectors"),
    (lambda: circulant.inspect(MODEL, {"a": X}), "The sample must be of the inputs of the model, input, not of a; "),
    (lambda: circulant.inspect(MODEL, "a"), "inspect must be given an array of numbers as sample, not 'a'"),
    (lambda: circulant.inspect(NETWORK, X), "inspect must be given a Module as model, not a Network; give a "
     "torch.nn.Module"),
    (lambda: circulant.compress(MODEL, blocksize=8), "did you mean 'block_size'?"),
    (lambda: circulant.compress(MODEL), "compress must be called as compress(model, block_size), but it lacks"),
    (lambda: circulant.initialise({}, 8), "initialise must be given a Module as model, not a dict"),
    (lambda: circulant.export(MODEL, X, weigth_bits=8), "did you mean 'weight_bits'?"),
    (lambda: circulant.export(MODEL, X, twidle_bits=8), "did you mean 'twiddle_bits'?"),
    (lambda: circulant.export(MODEL, "digits"), "export must be given an array of numbers as sample_inputs, not"),
    (lambda: circulant.load_data(3), "load_data must be given a text as name, not 3"),
    (lambda: circulant.load_data("digits", subst=3), "did you mean 'subset'?"),
    (lambda: circulant.Dataset("mine", [[0.0]], train_y=Y, test_x=X, test_y=Y, classes=2),
     "Dataset must be given a numpy array as train_x, not a "
     "list; convert it with numpy.asarray"),
    (lambda: circulant.Dataset("mine", X, train_y=Y, test_x=X, test_y=Y, classes=2, test_length=Y),
     "did you mean 'test_lengths'?"),
    (lambda: circulant.Vectors([[1]], [[2]], "hash"), "Vectors must be given a numpy array as inputs, not a list"),
    (lambda: circulant.Network.load(5), "Network.load must be given a text or a Path as folder, not 5"),
    (lambda: NETWORK.vectors("digits"), "Network.vectors must be given an array of numbers as x, not 'digits'"),
    (lambda: NETWORK.save("/proc/foo"), "/proc/foo/weights.npz cannot be used: No such file or directory"),
])
def test_one_sentence(call, words):
    with pytest.raises(Refusal) as refused:
        call()
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.fixture(scope="module")
def design():
    return circulant.generate(NETWORK, multipliers=16, objective="throughput")


def test_a_design_in_a_folder_that_cannot_be(design):
    with pytest.raises(Refusal, match=r"^/proc/foo cannot be used: No such file or directory; choose another path$"):
        design.write("/proc/foo")


def test_what_is_printed_is_a_line(design):
    data = circulant.Dataset("mine", X, train_y=Y, test_x=X, test_y=Y, classes=2)
    vectors = NETWORK.vectors(INPUTS)
    assert repr(NETWORK) == f"<Network 'small' gru → linear, 4 → 3 per sequence, {NETWORK.hash[:12]}>"
    assert [line.split()[:2] for line in str(NETWORK).splitlines()] == [
        ["input", "input"], ["gru", "gru"], ["linear", "linear"]], "but a network as a text is drawn, node by node"
    assert repr(data) == "<Dataset 'mine' classification, 2 classes, train 8, test 8 × (4,)>"
    assert repr(vectors) == f"<Vectors 7 × (5, 4) → (3,) of network {NETWORK.hash[:12]}>"
    assert repr(design) == (f"<Design of 'small': {design.multipliers} multipliers, {design.memory_bits:,} memory "
                            f"bits, {len(design.images)} images>")
    result = NETWORK.run(INPUTS)
    assert repr(result) == "<Result (7, 3)>"


class Reader(nn.Module):
    """Reads the rows of an image, and gives an output for the last of them, or for each."""

    def __init__(self, recurrent, last):
        super().__init__()
        self.conv, self.fc, self.last = nn.Conv2d(1, 2, 3, padding=1), nn.Linear(8, 2), last
        self.gru = nn.GRU(8, 8, batch_first=True) if recurrent else None

    def forward(self, x):
        rows = self.conv(x).permute(0, 2, 1, 3).flatten(2)
        if self.gru is not None:
            rows, _ = self.gru(rows)
        return self.fc(rows[:, -1] if self.last else rows)


IMAGES = np.random.default_rng(0).uniform(-1, 1, (4, 1, 3, 4)).astype(np.float32)


@pytest.mark.parametrize("model", [
    Reader(True, True), Reader(True, False), Reader(False, False), nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten()),
    nn.Sequential(nn.Conv2d(1, 2, 3))], ids=["last step", "every step", "every row", "flat", "image"])
def test_what_is_exportable_is_made_and_what_is_not_is_refused(model):
    """One truth of both sides, which never import each other."""
    report = circulant.inspect(model, IMAGES)
    if report.exportable:
        assert circulant.generate(circulant.export(model, IMAGES), multipliers=200).multipliers <= 200
        return
    assert report.of("captured")
    with pytest.raises(Refusal, match="The golden model must have a layer for everything that is exported"):
        circulant.export(model, IMAGES)
