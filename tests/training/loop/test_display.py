"""Progress on stderr: a bar for each phase on a terminal, a line for each elsewhere, nothing where it is not wanted."""
import pytest

from circulant.training.loop.display import Display

EPOCHS = (("dense", 1, 2, {"loss": 1.0}), ("dense", 2, 2, {"loss": 0.5, "accuracy": 0.9}),
          ("admm", 1, 3, {"loss": 0.25, "accuracy": 0.8, "primal": 0.125}))


@pytest.fixture
def shown(capsys, monkeypatch):
    def show(terminal, visible=True):
        monkeypatch.setenv("FORCE_COLOR" if terminal else "NO_COLOR", "1")
        monkeypatch.delenv("NO_COLOR" if terminal else "FORCE_COLOR", raising=False)
        monkeypatch.setenv("COLUMNS", "150")
        with Display("accuracy", visible=visible) as display:
            for each in EPOCHS:
                display(*each)
        said = capsys.readouterr()
        assert said.out == ""
        return said.err

    return show


def test_a_line_for_each_phase(shown):
    assert shown(terminal=False).splitlines() == [
        "dense baseline: 2 of 2, loss 0.5, accuracy 90.00%", "ADMM: 1 of 3, loss 0.25, accuracy 80.00%, residual 0.12"]


def test_a_bar_for_each_phase(shown):
    said = shown(terminal=True)
    assert all(text in said for text in ("dense baseline", "2/2", "accuracy 90.00%", "ADMM", "1/3", "residual 0.12"))


@pytest.mark.parametrize("terminal", [False, True])
def test_silence(shown, terminal):
    assert shown(terminal, visible=False) == ""
