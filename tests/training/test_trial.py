"""A user's model on a first batch: what does not fit the data is refused before anything is trained."""
import numpy as np
import pytest

from circulant.sim.refusal import Refusal
from circulant.training.data import Dataset
from circulant.training.models.models import build
from circulant.training.settings.model import ModelSettings
from circulant.training.trial import require_fit

X, Y = np.zeros((4, 5, 3), np.float32), np.arange(4) % 2
DATA = Dataset("mine", X, Y, X, Y, classes=2)

HEAD = """
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru, self.linear = nn.GRU({inputs}, 4, batch_first=True), nn.Linear(4, {outputs})

    def forward(self, x{more}):
        steps, last = self.gru(x)
        {end}
"""


def trial(tmp_path, **change):
    named = {"inputs": 3, "outputs": 2, "more": "", "end": "return self.linear(steps[:, -1])"} | change
    (tmp_path / "net.py").write_text(HEAD.format(**named))
    settings = ModelSettings("python", path=f"{tmp_path}/net.py:Net")
    model = build(settings, DATA.shape, 2)
    require_fit(settings, model, DATA)
    return model


def test_a_model_that_fits_stays_as_it_is(tmp_path):
    assert trial(tmp_path).training
    assert trial(tmp_path, more=", lengths=None").training


@pytest.mark.parametrize(("change", "words"), [
    ({"inputs": 7}, r"net\.py, line 11: RuntimeError: .* \(samples of 'mine' have the shape \(5, 3\)\)$"),
    ({"end": "return steps, last"}, r"must return one tensor from its forward, not a tuple of 2; return the"),
    ({"end": "return None"}, r"must return one tensor from its forward, not a NoneType; return the outputs alone$"),
    ({"end": "return steps"}, r"^A classification into 2 classes must have outputs \(N, 2\), not \(2, 5, 4\); end"),
    ({"outputs": 1}, r"^A classification into 2 classes must have outputs \(N, 2\), not \(2, 1\); "),
])
def test_refused(tmp_path, change, words):
    with pytest.raises(Refusal, match=words):
        trial(tmp_path, **change)
