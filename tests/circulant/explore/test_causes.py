from circulant.exits import FAILED, REFUSED
from circulant.explore.causes import ended, hopeless, reasons
from circulant.sim.refusal import Refusal, ToolError


def rows(*whys, code=REFUSED):
    return [{"reason": why, "code": code} if why else {"reason": ""} for why in whys]


def test_the_same_reason_again_and_again_is_hopeless():
    assert hopeless(rows("a", "b", "b", "b"))
    assert not hopeless(rows("b", "b", "", "b"))
    assert not hopeless(rows("b", "b"))
    assert not hopeless(rows("", "", ""))
    assert hopeless(rows("b", "b"), same=2)


def test_reasons_are_counted():
    assert reasons(rows("a", "b", "", "b")) == "b (2 times); a"


def test_failures_of_a_tool_are_no_fault_of_the_user():
    assert isinstance(ended("why", rows("a", "")), Refusal)
    assert isinstance(ended("why", [*rows("a"), *rows("b", code=FAILED)]), ToolError)
