"""The file of a training: a round trip, and refusals that name file, field, rule and value."""
import dataclasses
import os
import zipfile

import numpy as np
import pytest
import torch

from circulant.sim.refusal import Refusal
from circulant.training import store
from circulant.training.data import load_data
from circulant.training.loop.train import Trained, TrainingSettings, train
from circulant.training.models.models import ModelSettings
from circulant.training.store import load_trained, save_trained

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
        if field.name not in ("dense", "model", "notes"):
            assert getattr(got, field.name) == getattr(trained, field.name), field.name
    assert got.block_sizes == {"gru.weight_ih_l0": 8, "gru.weight_hh_l0": 16, "linear.weight": 1}
    for mine, theirs in ((got.dense, trained.dense), (got.model.state_dict(), trained.model.state_dict())):
        assert list(mine) == list(theirs)
        assert all(torch.equal(value, theirs[name]) for name, value in mine.items())
    x = torch.rand(2, 8, 8)
    assert torch.equal(got.model(x), trained.model(x))
    assert torch.equal(got.dense_model()(x), trained.dense_model()(x))


@pytest.mark.parametrize("model", [ModelSettings(hidden=16), ModelSettings(kind="resnet8", width=8)])
def test_a_resumed_training_gives_the_same_bytes(tmp_path, model):
    data = load_data("digits", layout="image" if model.kind == "resnet8" else "auto", subset=40, test_subset=20)
    settings = TrainingSettings(dense_epochs=2, admm_epochs=2, retrain_epochs=2, checkpoint_epochs=1)

    def stop(phase, epoch, epochs, metrics):
        if (phase, epoch) == ("admm", 2):
            raise KeyboardInterrupt

    def sitting(name, **options):
        return save_trained(tmp_path / name, train(data, settings, model=model, block_size=4, **options))

    whole = sitting("whole.pt")
    with pytest.raises(KeyboardInterrupt):
        sitting("none", checkpoint=tmp_path / "checkpoint.pt", progress=stop)
    assert sitting("resumed.pt", checkpoint=tmp_path / "checkpoint.pt", resume=True) == whole
    assert (tmp_path / "resumed.pt").read_bytes() == (tmp_path / "whole.pt").read_bytes()


def test_a_training_from_before_there_was_a_choice_started_at_random(trained, tmp_path):
    path = tmp_path / "model.pt"
    save_trained(path, trained)
    document = torch.load(path, weights_only=True)
    assert document["meta"]["settings"].pop("start") == "auto"
    torch.save(document | {"hash": store._digest(document["meta"], {name: document[name] for name in STATES})}, path)
    assert load_trained(path).settings == dataclasses.replace(trained.settings, start="projected")


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


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)])
def test_what_is_no_file_is_refused(tmp_path, make):
    make(tmp_path / "model.pt")
    with pytest.raises(Refusal, match=r"must be a file of a training, but it cannot be read \(it is a (pip|fold|dev)"):
        load_trained(tmp_path / "model.pt")


@pytest.mark.parametrize(("change", "message"), [
    (lambda document: document["meta"]["model"].update(hidden=4096), "the dense state must be that of the model"),
    (lambda document: document["meta"]["model"].update(layers=10 ** 9), "model.layers must be an integer from 1 to 8"),
    (lambda document: document["meta"]["model"].update(kind="x"), "model.kind must be one of"),
    (lambda document: document["meta"]["model"].update(more=1), "unexpected keyword argument 'more'"),
    (lambda document: document["meta"]["settings"].update(seed="x"), "seed must be an integer"),
    (lambda document: document["meta"].update(classes=-1), "field 'classes' must be an integer from 1 to"),
    (lambda document: document["meta"].update(scores={"dense": float("nan")}),
     r"field 'scores\.dense' must be a finite"),
    (lambda document: document["meta"].pop("history"), "field 'history' must be there, but it is missing"),
    (lambda document: document["meta"]["block_sizes"].update({"linear.weight": 3}), "Block size must be a power"),
    (lambda document: document["circulant"].pop("linear.bias"), "must hold the weights of the model that it describes"),
    (lambda document: document["dense"].update({"linear.bias": torch.zeros(1).expand(1 << 40)}), "cannot be read "
     r"\(it has more values than bytes\)"),
])
def test_nonsense_under_a_right_hash_is_refused(trained, tmp_path, change, message):
    path = tmp_path / "model.pt"
    save_trained(path, trained)
    document = torch.load(path, weights_only=True)
    change(document)
    if "bytes" not in message:
        document["hash"] = store._digest(document["meta"], {part: document[part] for part in ("dense", "circulant")})
    torch.save(document, path)
    with pytest.raises(Refusal, match=rf"model\.pt.*{message}"):
        load_trained(path)


def test_a_compressed_archive_is_refused(trained, tmp_path):
    """Its memory could be a thousand times the file."""
    path = tmp_path / "model.pt"
    save_trained(path, trained)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    with pytest.raises(Refusal, match="it is compressed, or declares more than it has"):
        load_trained(path)
