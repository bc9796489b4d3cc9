"""Costs of designs."""
import shutil

import pytest

from benchmarks import cost
from circulant.sim.refusal import Refusal


def test_missing_tools_are_named(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda tool: None)
    with pytest.raises(Refusal, match=r"PATH has no gcc and no valgrind; install what is missing$"):
        cost.measure()
