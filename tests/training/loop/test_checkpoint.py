"""The file of an unfinished training: a round trip, and refusals in one sentence."""
import pytest
import torch

from circulant.sim.refusal import Refusal
from circulant.training.loop.checkpoint import Checkpoint

ABOUT = {"data": {"name": "digits"}, "training": {"seed": 0, "rho": {"gru": 0.1}}, "phases": ("dense", "admm")}
STATE = {"weights": {"a": torch.arange(6.0).view(2, 3)}, "epoch": 3, "history": [{"loss": 0.5}], "admm": None}


@pytest.fixture
def kept(tmp_path) -> Checkpoint:
    checkpoint = Checkpoint(tmp_path / "new" / "training.pt", ABOUT)
    checkpoint.save(STATE)
    return checkpoint


def test_round_trip(kept):
    state = kept.load()
    assert torch.equal(state["weights"].pop("a"), STATE["weights"]["a"])
    assert state == {**STATE, "weights": {}}
    assert kept.fits()
    assert [path.name for path in kept.path.parent.iterdir()] == ["training.pt"], "nothing but the file may be left"
    kept.remove()
    assert not kept.fits()


@pytest.mark.parametrize(("change", "message"), [
    ({"training": {"seed": 1, "rho": {"gru": 0.1}}}, r"made with training\.seed = 0, not 1; go on with what it was"),
    ({"training": {"seed": 0, "rho": 0.1}}, r"made with training\.rho = {'gru': 0\.1}, not 0\.1"),
    ({"phases": ["direct"]}, r"made with phases = \['dense', 'admm'\], not \['direct'\]"),
    ({"processes": 2}, r"made with processes = None, not 2"),
])
def test_of_another_training(kept, change, message):
    other = Checkpoint(kept.path, {**ABOUT, **change})
    with pytest.raises(Refusal, match=rf"training\.pt must be a checkpoint of this training, but it was {message}"):
        other.load()
    assert not other.fits()


def test_a_file_from_before_there_were_choices_has_made_none(kept):
    for start in ("projected", "dense"):
        now = Checkpoint(kept.path, {**ABOUT, "training": {
            **ABOUT["training"], "start": start, "rate_scaling": "none"}})
        assert now.fits() == (start == "projected")
    with pytest.raises(Refusal, match=r"made with training\.start = 'projected', not 'dense'"):
        now.load()


def test_missing(tmp_path):
    with pytest.raises(Refusal, match=r"training\.pt must exist to go on from it, but it is missing; train again$"):
        Checkpoint(tmp_path / "training.pt", ABOUT).load()


def test_damaged(kept):
    whole = kept.path.read_bytes()
    for damaged in (b"", b"no archive", whole[:len(whole) // 2]):
        kept.path.write_bytes(damaged)
        with pytest.raises(Refusal, match=r"training\.pt must be a checkpoint, but it cannot be read"):
            kept.load()


@pytest.mark.parametrize(("field", "value", "message"), [
    ("format", "other", r"field 'format' must be 'circulant-checkpoint', not 'other'"),
    ("version", 0, r"field 'version' must be 2, not 0"),
    ("state", torch.zeros(4, dtype=torch.uint8), r"field 'hash' must be '[0-9a-f]{64}', not '"),
])
def test_changed_fields(kept, field, value, message):
    torch.save({**torch.load(kept.path, weights_only=True), field: value}, kept.path)
    with pytest.raises(Refusal, match=message):
        kept.load()


def test_a_save_that_fails_leaves_the_file(kept):
    with pytest.raises(Exception, match="pickle"):
        kept.save({"weights": lambda: None})
    assert kept.load()["epoch"] == 3
    assert [path.name for path in kept.path.parent.iterdir()] == ["training.pt"]
