"""A model of a user's file: what it is called with, its seed, and what is refused."""
import pytest
import torch

from circulant.sim.refusal import Refusal
from circulant.training.models.models import build, described
from circulant.training.models.python import identity
from circulant.training.settings.model import ModelSettings


@pytest.fixture
def settings(tmp_path):
    def write(text, name="Net", **arguments):
        (tmp_path / "net.py").write_text(f"from torch import nn\n{text}\n")
        return ModelSettings("python", path=f"{tmp_path}/net.py:{name}", arguments=arguments)

    return write


NET = "class Net(nn.Linear):\n    def __init__(self, inputs=3, outputs=2):\n        super().__init__(inputs, outputs)"


def test_it_is_made_of_its_arguments_from_the_seed(settings):
    this = settings(NET, inputs=5)
    one, same, other = (build(this, (5,), 2, seed=seed) for seed in (1, 1, 2))
    assert one.weight.shape == (2, 5)
    assert torch.equal(one.weight, same.weight)
    assert not torch.equal(one.weight, other.weight)
    assert build(settings("def Net():\n    return nn.Sequential()"), (1, 2, 3), 2) is not None, "any shape is its own"


def test_it_is_known_by_its_content(settings, tmp_path):
    this = settings(NET)
    before = identity(this)
    (tmp_path / "deep").mkdir()
    moved = ModelSettings("python", path=f"{(tmp_path / 'net.py').rename(tmp_path / 'deep' / 'net.py')}:Net")
    assert identity(moved) == before == described(moved)["path"]
    assert identity(settings(NET + "\n")) != before


@pytest.mark.parametrize(("text", "words"), [
    ("Net = 3", r"^model\.path = 'net\.py:Net' must be a class or a function that makes a torch\.nn\.Module, not"),
    ("def Net():\n    return 3", r"must make a torch\.nn\.Module, not a int; return the model$"),
    ("def Net():\n    return nn.Linear(0.5, 2)", r"^model\.path = 'net\.py:Net' must run, but .*net\.py, line 3: Type"),
])
def test_refused(settings, text, words):
    with pytest.raises(Refusal, match=words):
        build(settings(text), (3,), 2)


def test_what_a_run_folder_keeps_is_not_built():
    with pytest.raises(Refusal, match=r"^model\.kind = 'saved' must stand in a run folder that keeps its network"):
        build(ModelSettings("saved"), (3,), 2)
