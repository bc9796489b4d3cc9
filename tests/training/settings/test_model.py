"""The settings of a model: what is out of range is refused, and so is what the kind does not have."""
import pytest

from circulant.sim.refusal import Refusal
from circulant.sim.settings import choices, keys
from circulant.training.models.causal import BODIES
from circulant.training.models.models import MODELS
from circulant.training.models.sequences import CELLS
from circulant.training.settings.model import OPTIONS, ModelSettings


def test_every_choice_is_implemented():
    assert set(choices(ModelSettings, "kind")) == {*MODELS, "saved"}
    assert set(choices(ModelSettings, "cell")) == CELLS.keys() | BODIES.keys()
    assert all(set(options) < keys(ModelSettings).keys() for options in OPTIONS.values())


@pytest.mark.parametrize(("settings", "message"), [
    ({"kind": "gruu"}, r"^model\.kind must be one of 'gru', 'lstm', .*, not 'gruu'; did you mean 'gru'\?$"),
    ({"hidden": 0}, r"^model\.hidden must be an integer from 1 to 4096, not 0$"),
    ({"layers": 1.5}, r"^model\.layers must be an integer from 1 to 8, not 1\.5$"),
    ({"dropout": 1.0}, r"^model\.dropout must be a number from 0 to 0\.9, not 1\.0$"),
    ({"kind": "mlp", "widths": (8, 0)}, r"^model\.widths must be a list, each an integer from 1 to 65536, not "),
    ({"width": -1}, r"^model\.width must be an integer from 1 to 1024, or 0 for the network's own number, not -1$"),
    ({"kind": "cnn", "width": 8, "widths": (8, 12)}, r"^A model 'cnn' must be given width or widths, not both 8 and "
                                                     r"\(8, 12\); leave one out$"),
    ({"kind": "lenet5", "window": 4}, r"^A window must have an odd side, .*, not 4; choose 3 or 5$"),
    ({"peephole": True, "width": 4}, r"^A model 'gru' must be given the options kind, dense, hidden, layers, "
                                     r"bidirectional, dropout, not peephole = True, width = 4; leave them out$"),
    ({"kind": "labeller", "peephole": True}, r"^Peepholes and a projection must be asked of cell 'lstm', not of 'gru'"),
    ({"kind": "labeller", "cell": "lstmm"}, r"^model\.cell must be one of 'gru', 'lstm', .*, not 'lstmm'"),
    ({"kind": "labeller", "cell": "tcn", "dropout": 0.1}, r"^A model 'labeller' of 'tcn' must be given the options "
                                                          r"kind, dense, cell, hidden, layers, front, not dropout = "),
    ({"kind": "crnn", "cell": "lru"}, r"^A model 'crnn' must have a cell of 'gru', 'lstm', 'reset_gru', not 'lru'; "),
    ({"kind": "lstm", "projection": 64}, r"^A projection must be below the 64 hidden units, not 64; choose 0"),
])
def test_settings_wrong(settings, message):
    with pytest.raises(Refusal, match=message):
        ModelSettings(**settings)
