"""The curves that TensorBoard shows."""
import sys

import pytest

from circulant.sim.refusal import Refusal
from circulant.training.loop.curves import Curves


def test_every_figure_is_a_curve(tmp_path):
    curves = Curves(tmp_path)
    for epoch in (1, 2):
        curves("admm", epoch, 2, {"loss": 1 / epoch, "accuracy": 0.5,
                                  "matrices": {"gru.weight_hh_l0": {"primal": 0.1, "rho": 0.01}}})
    curves("retrain", 1, 1, {"loss": 0.25})
    curves.close()
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(tmp_path))
    events.Reload()
    assert set(events.Tags()["scalars"]) == {"admm/loss", "admm/accuracy", "admm/gru.weight_hh_l0/primal",
                                             "admm/gru.weight_hh_l0/rho", "retrain/loss"}
    assert [(event.step, event.value) for event in events.Scalars("admm/loss")] == [(1, 1.0), (2, 0.5)]


def test_a_missing_tensorboard_is_said(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(Refusal, match=r"^Curves must be written through tensorboard, .*'circulant\[logs\]'"):
        Curves(tmp_path)
    assert not list(tmp_path.iterdir())
