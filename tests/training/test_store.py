"""The file of a training: a round trip, and refusals that name file, field, rule and value."""
import dataclasses

import numpy as np
import pytest
import torch

from circulant.sim.refusal import Refusal
from circulant.training import store
from circulant.training.data import load_data
from circulant.training.models import ModelSettings
from circulant.training.store import load_trained, save_trained
from circulant.training.train import Trained, TrainingSettings, train

STATES = ("dense", "circulant")


@pytest.fixture(scope="module")
def trained() -> Trained:
    data = load_data("digits")
    data = dataclasses.replace(data, train_x=data.train_x[:64], train_y=data.train_y[:64])
    settings = TrainingSettings(dense_epochs=1, admm_epochs=1, retrain_epochs=1)
    return train(data, settings, model=ModelSettings(hidden=16), block_size={"gru": 8, "gru.weight_hh_l0": 16})


def test_round_trip(trained, tmp_path):
    sha = save_trained(tmp_path / "new" / "model.pt", trained)
    assert len(sha) == 64
    got = load_trained(tmp_path / "new" / "model.pt")
    for field in dataclasses.fields(Trained):
        if field.name not in ("dense", "model"):
            assert getattr(got, field.name) == getattr(trained, field.name), field.name
    assert got.block_sizes == {"gru.weight_ih_l0": 8, "gru.weight_hh_l0": 16, "linear.weight": 1}
    for mine, theirs in ((got.dense, trained.dense), (got.model.state_dict(), trained.model.state_dict())):
        assert list(mine) == list(theirs)
        assert all(torch.equal(value, theirs[name]) for name, value in mine.items())
    x = torch.rand(2, 8, 8)
    assert torch.equal(got.model(x), trained.model(x))
    assert torch.equal(got.dense_model()(x), trained.dense_model()(x))


def test_a_training_from_before_there_was_a_choice_started_at_random(trained, tmp_path):
    path = tmp_path / "model.pt"
    save_trained(path, trained)
    document = torch.load(path, weights_only=True)
    assert document["meta"]["settings"].pop("start") == "auto"
    torch.save(document | {"hash": store._digest(document["meta"], {name: document[name] for name in STATES})}, path)
    assert load_trained(path).settings == dataclasses.replace(trained.settings, start="random")


def test_nothing_but_the_file_is_left(trained, tmp_path):
    for _ in range(2):
        save_trained(tmp_path / "model.pt", trained)
    assert [path.name for path in tmp_path.iterdir()] == ["model.pt"]


def change(path, **fields):
    document = torch.load(path, weights_only=True)
    torch.save({**document, **fields}, path)


@pytest.mark.parametrize(("fields", "message"), [
    ({"format": "other"}, r"model\.pt: field 'format' must be 'circulant-trained', not 'other'"),
    ({"version": 1}, r"model\.pt: field 'version' must be 2, not 1; train again"),
    ({"hash": "0" * 64}, r"model\.pt: field 'hash' must be that of the contents .*, not '000000000000'"),
    ({"dense": None}, r"model\.pt must hold the fields 'meta', 'dense' and 'circulant' as written"),
    ({"meta": {1: {2}}}, r"model\.pt must hold the fields 'meta', 'dense' and 'circulant' as written"),
    ({"dense": {"linear.bias": torch.zeros(10)}}, r"model\.pt: field 'hash' must be that of the contents"),
])
def test_changed_fields_are_refused(trained, tmp_path, fields, message):
    path = tmp_path / "model.pt"
    save_trained(path, trained)
    change(path, **fields)
    with pytest.raises(Refusal, match=message):
        load_trained(path)


def test_damaged_files_are_refused(trained, tmp_path):
    path = tmp_path / "model.pt"
    save_trained(path, trained)
    whole = path.read_bytes()
    for damaged in (b"", b"no archive", whole[:len(whole) // 2]):
        path.write_bytes(damaged)
        with pytest.raises(Refusal, match=r"model\.pt must be a file of a training, but it cannot be read"):
            load_trained(path)


def test_a_flipped_bit_is_refused_or_harmless(trained, tmp_path):
    path = tmp_path / "model.pt"
    save_trained(path, trained)
    whole, rng, refused = path.read_bytes(), np.random.default_rng(0), 0
    for place in rng.integers(0, len(whole), 150):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        try:
            got = load_trained(path)
        except Refusal:
            refused += 1
        else:
            assert got.history == trained.history
            assert all(torch.equal(value, trained.dense[name]) for name, value in got.dense.items())
    assert refused > 75, f"most bits matter, but only {refused} of 150 were noticed"


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "model.pt"
    torch.save([1, 2], path)
    with pytest.raises(Refusal, match=r"field 'format' must be 'circulant-trained', not None"):
        load_trained(path)
    torch.save({"format": torch.nn.Linear(1, 1)}, path)
    with pytest.raises(Refusal, match="cannot be read"):
        load_trained(path)


def test_missing_file(tmp_path):
    with pytest.raises(Refusal, match=r"model\.pt must exist, but it is missing; run the training first$"):
        load_trained(tmp_path / "model.pt")
