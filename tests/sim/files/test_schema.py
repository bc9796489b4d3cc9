"""A rule says what may stand in a file, and its refusal names file, field, rule and value."""
import math

import pytest

from circulant.sim.files.schema import (
    SHA,
    Anything,
    Choice,
    Flag,
    Int,
    Kinds,
    Later,
    Listing,
    Mapped,
    Null,
    Number,
    Table,
    Text,
    Where,
    differing,
    require,
)
from tests.refused import refused

SIZES = Table({"width": Int(1, 62)}, {"name": Text(3)})
TREE = Table({"inner": Listing(Later(lambda: TREE), most=2)})


def refusal(rule, value):
    said = refused(require, rule, value, "file.json", "write it again")
    assert said.startswith("file.json") and said.endswith("; write it again") and "\n" not in said
    return said.removeprefix("file.json").removesuffix("; write it again")


@pytest.mark.parametrize(("rule", "legal", "illegal"), [
    (Int(0, 3), [0, 3], [True, 1.0, "1", -1, 4, None, [], 10 ** 30]),
    (Number(), [0, -1.5, 1e300], [True, math.nan, math.inf, "1", None]),
    (Number(0), [0, 0.1], [-0.1]),
    (Number(0, 1e12), [0, 1e12], [-0.1, 1e300, 10**400]),
    (Flag(), [True, False], [0, 1, "true", None]),
    (Text(3), ["", "abc"], ["abcd", 3, None, b"a"]),
    (Text(9, "[a-z]+", "a word"), ["ab"], ["", "a b", "ab\n"]),
    (SHA, ["0" * 64], ["0" * 63, "G" * 64, None]),
    (Choice(("a", "b")), ["a"], ["c", None, [], {}]),
    (Null(Int(1, 2)), [None, 1], [0, "x"]),
    (Listing(Int(0, 1), 1, 2), [[0], [0, 1]], [[], [0, 0, 0], [2], (0,), "ab", {0: 0}, None]),
    (Mapped(Int(0, 1)), [{}, {"x": 1}], [{"x": 2}, [], None]),
    (SIZES, [{"width": 3}, {"width": 3, "name": "x"}], [{}, {"width": 0}, {"width": 1, "more": 1}, [], None]),
    (Table({}, open=True), [{"more": 1}], [[]]),
    (Kinds("kind", {"a": Table({"kind": Choice(("a",)), "x": Int(0, 1)})}), [{"kind": "a", "x": 1}],
     [{"kind": "b"}, {"x": 1}, {"kind": []}, {"kind": "a"}, None]),
    (TREE, [{"inner": []}, {"inner": [{"inner": []}]}], [{"inner": [{"inner": [1]}]}]),
    (Where(SIZES, lambda sizes: sizes["width"] != 13, "lucky"), [{"width": 3}], [{"width": 13}, {"width": "x"}, {}]),
    (Anything(), [None, 1, [[]]], []),
])
def test_a_rule(rule, legal, illegal):
    for value in legal:
        require(rule, value, "file.json")
    for value in illegal:
        assert refusal(rule, value)


@pytest.mark.parametrize(("rule", "value", "said"), [
    (Table({"a": Listing(SIZES)}), {"a": [{"width": 1}, {"width": 99}]},
     ": field 'a[1].width' must be an integer from 1 to 62, not 99"),
    (SIZES, {}, ": field 'width' must be there, but it is missing"),
    (SIZES, {"width": 1, "hight": 2}, ": field 'hight' must not be there, since this version knows no such field"),
    (SIZES, [1], " must be an object, not [1]"),
    (Mapped(Choice(("a", "b", "c"))), {"x\ny": "d"}, ": field 'x\\ny' must be 'a', 'b' or 'c', not 'd'"),
    (Listing(Int(0, 1), 2, 2), [1], " must be a list of 2 elements, not [1]"),
    (Number(0), -2, " must be a finite number of at least 0, not -2"),
    (Number(0, 1e12), 1e300, " must be a number from 0 to 1e+12, not 1e+300"),
    (SIZES, {"name": 3}, ": field 'width' must be there, but it is missing; field 'name' must be a text of at most 3 "
     "characters, not 3"),
    (Listing(Int(0, 1)), [2, 0, 3, 4, 5], ": field '[0]' must be an integer from 0 to 1, not 2; field '[2]' must be an "
     "integer from 0 to 1, not 3; field '[3]' must be an integer from 0 to 1, not 4; and 1 more"),
    (Null(SIZES), 3, " must be null or an object, not 3"),
])
def test_its_words(rule, value, said):
    assert refusal(rule, value) == said


def test_a_long_value_is_cut():
    assert len(refusal(Int(0, 1), "x" * 10_000)) < 200
    assert len(refusal(Mapped(Int(0, 1)), {"x" * 10_000: 2})) < 500


def test_where_two_documents_differ():
    assert list(differing({"a": [1, {"b": 2}], "c": 1}, {"a": [1, {"b": 3}], "d": 1})) == [
        ("a[1].b", 2, 3), ("c", 1, None), ("d", None, 1)]
    assert list(differing({"a": 1}, {"a": 1})) == []
    assert list(differing([1], [1.0])) == [("[0]", 1, 1.0)]
    assert list(differing(True, 1)) == [("", True, 1)]
