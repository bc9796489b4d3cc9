"""Data sets by name: what all of them promise, the bits of the shipped ones, and refusals."""
import collections
import subprocess
import sys

import numpy as np
import pytest

from circulant.sim.refusal import Refusal
from circulant.training.data import BLANK, DATASETS, load_data
from tests.data import real

PARTS = {"mnist": {"subset": 6000}, "cifar10": {"subset": 2000, "test_subset": 500},
         "speechocean762": {"subset": 500, "test_subset": 500}}
"""What is enough to see the contract kept, where all would take long."""

REAL = [pytest.param(name, marks=[real(name)] if name != "digits" else [])
        for name in ("digits", "mnist", "cifar10", "fsdd", "speechocean762")]


@pytest.mark.parametrize("name", REAL)
def test_every_data_set_keeps_its_contract(name):
    data = load_data(name, **PARTS.get(name, {}))
    assert data.name == name
    assert len(data.symbols) == data.classes
    for x, y, lengths in ((data.train_x, data.train_y, data.train_lengths),
                          (data.test_x, data.test_y, data.test_lengths)):
        assert x.dtype == np.float32
        assert y.dtype == np.int64
        assert len(x) == len(y)
        assert set(y.ravel()) == set(range(data.classes)), "every class must be in both parts"
        if lengths is not None:
            assert lengths.max() == x.shape[1], "no step is of no sequence"
            beyond = np.arange(x.shape[1]) >= lengths[:, None]
            assert not x[beyond].any(), "padding is zero"
    if data.task == "ctc":
        assert data.symbols[BLANK] == "<blank>"
    assert data.inputs == {2: data.shape[-1], 3: data.shape[-1], 4: data.shape[0]}[data.train_x.ndim]


@pytest.mark.parametrize(("name", "options", "digest"), [
    pytest.param("digits", {}, "78ee1b37", id="digits"),
    pytest.param("mnist", {"layout": "rows", "normalise": "train"}, "a90b1c1e", marks=real("mnist"), id="mnist"),
    pytest.param("fsdd", {}, "ca0ee575", marks=real("fsdd"), id="fsdd"),
    pytest.param("speechocean762", {"subset": 300, "longest": 400, "test_subset": 100}, "12a70526",
                 marks=real("speechocean762"), id="speechocean762"),
])
def test_the_bits_are_these_on_every_machine(name, options, digest):
    """CIFAR-10 is not among them: its JPEGs depend on the version of the decoder."""
    assert load_data(name, **options).digest()[:8] == digest


@pytest.mark.parametrize("name", REAL)
def test_the_seed_chooses_a_subset_of_all_classes_alike(name):
    one, same, other = (load_data(name, subset=40, test_subset=20, seed=seed) for seed in (1, 1, 2))
    assert (len(one.train_x), len(one.test_x)) == (40, 20)
    assert one.digest() == same.digest()
    assert one.digest() != other.digest()
    if one.task == "classification":
        assert np.bincount(one.train_y).tolist() == [4] * 10
        assert np.bincount(one.test_y).tolist() == [2] * 10


@pytest.mark.parametrize(("name", "train", "test"), [
    ("digits", 1437, 360), pytest.param("mnist", 60_000, 10_000, marks=real("mnist")),
    pytest.param("cifar10", 50_000, 10_000, marks=real("cifar10")), pytest.param("fsdd", 2700, 300, marks=real("fsdd")),
    pytest.param("speechocean762", 2500, 2500, marks=real("speechocean762"))])
def test_a_subset_has_at_most_what_there_is(name, train, test):
    for option, samples in (("subset", train), ("test_subset", test)):
        with pytest.raises(Refusal, match=rf"^A subset must have at most the {samples} samples that there are, not "
                                          "100000; 0 takes all$"):
            load_data(name, **{option: 100_000})


@pytest.mark.parametrize("name", ["digits", *(pytest.param(name, marks=[real(name)]) for name in
                                              ("fsdd", "speechocean762"))])
def test_held_out_samples_are_of_the_train_part_alone(name):
    """Settings can be chosen on them: no training sample is among them, and no test sample is looked at."""
    whole, cut = (load_data(name, normalise="none", held_out=count) for count in (0, 200))
    assert (len(cut.train_x), len(cut.test_x)) == (len(whole.train_x) - 200, 200), "ten speakers have 20 sentences each"
    count = collections.Counter(row.tobytes() for row in _rows(whole, "train"))
    count.subtract(row.tobytes() for part in ("train", "test") for row in _rows(cut, part))
    assert not any(count.values()), "both parts together are the training set"
    if whole.task == "classification":
        assert np.bincount(cut.test_y).tolist() == [20] * 10


def _rows(data, part):
    """Samples without padding."""
    x, lengths = getattr(data, f"{part}_x"), getattr(data, f"{part}_lengths")
    return [row if lengths is None else row[:length] for row, length in
            zip(x, lengths if lengths is not None else x, strict=True)]


@pytest.mark.parametrize("count", [1437, 2000])
def test_training_samples_have_to_be_left(count):
    with pytest.raises(Refusal, match=r"^data.held_out must leave training samples, but takes 1437 of 1437; lower it"):
        load_data("digits", held_out=count)


def test_unknown_name():
    names = "'digits', 'mnist', 'cifar10', 'fsdd', 'speechocean762', 'timit', 'npz', 'python', 'saved'"
    with pytest.raises(Refusal, match=rf"^A data set must be one of {names}, not 'digit'; did you mean 'digits'\?$"):
        load_data("digit")


def test_unknown_option():
    with pytest.raises(Refusal, match=r"^load_data must be given arguments that it knows, not 'band'; did you mean "
                                      r"'bands'\?$"):
        load_data("fsdd", band=3)


@pytest.mark.parametrize("name", DATASETS)
def test_an_option_that_a_data_set_would_not_obey(name):
    with pytest.raises(Refusal, match=rf"^The data set '{name}' takes the options seed, subset, test_subset, .*, not "):
        load_data(name, **({"layout": "flat"} if name in ("fsdd", "timit", "speechocean762", "npz") else {"bands": 3}))


@pytest.mark.parametrize("name", [name for name in DATASETS if name not in ("digits", "npz", "python", "saved")])
def test_data_that_are_not_there(name, monkeypatch, tmp_path):
    monkeypatch.setenv("CIRCULANT_DATA", str(tmp_path))
    with pytest.raises(Refusal, match=rf"^The data set '{name}' must be in {tmp_path}/{name}, but that does not exist; "
                                      "name its folder in data.path, or .* CIRCULANT_DATA$"):
        load_data(name)
    with pytest.raises(Refusal, match=rf"^The data set '{name}' must be in {tmp_path}/nowhere, but"):
        load_data(name, path=str(tmp_path / "nowhere"))


@real("fsdd")
def test_progress_is_reported_where_it_is_slow(monkeypatch, tmp_path):
    monkeypatch.setenv("CIRCULANT_CACHE", str(tmp_path))
    seen = []
    load_data("fsdd", progress=lambda *report: seen.append(report))
    assert seen[0] == ("log-mel features", 0, 3000)
    assert len(seen) == 30
    load_data("fsdd", progress=lambda *report: seen.append(report))
    assert len(seen) == 30, "the second time they come from the cache"


WITHOUT_TORCH = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
from circulant.training.data import load_data
from circulant.training import Dataset
assert isinstance(load_data("digits"), Dataset)
try:
    from circulant.training import compress
except ImportError:
    sys.exit(0)
sys.exit("torch was found")
"""


def test_data_needs_no_torch():
    """In a process of its own, since this one has imported torch."""
    done = subprocess.run([sys.executable, "-c", WITHOUT_TORCH], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
