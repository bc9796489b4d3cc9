"""ONNX's own tests at the door: what counts as right, refused and wrong."""
from dataclasses import replace

import pytest

from benchmarks import door


@pytest.fixture(scope="module")
def cases():
    return {case.name: case for case in (*door.node_cases(), *door.converted_cases())}


def test_all_are_there(cases):
    assert len([case for case in cases.values() if case.name.startswith("test_")]) == len(cases) > 440


@pytest.mark.parametrize(("name", "outcome"), [
    ("test_relu", "right"), ("test_gemm_default_vector_bias", "right"), ("test_Linear", "right"),
    ("test_globalaveragepool", "right"), ("test_Conv3d", "refused")])
def test_an_outcome(cases, name, outcome):
    found = door.judged(cases[name])
    assert (found.outcome, bool(found.reason)) == (outcome, outcome != "right"), found


def test_another_expected_output_is_wrong(cases):
    case = cases["test_relu"]
    found = door.judged(replace(case, expected={name: array + 0.01 for name, array in case.expected.items()}))
    assert found.outcome == "wrong"
    assert "imported as another function, off by 0.01" in found.reason


def test_an_output_of_another_shape_is_wrong(cases):
    case = cases["test_relu"]
    found = door.judged(replace(case, expected={name: array[:, :2] for name, array in case.expected.items()}))
    assert found.reason == "y: the shape (3, 4, 5), expected (3, 2, 5)"
