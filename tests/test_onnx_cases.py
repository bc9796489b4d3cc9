"""ONNX's own tests: what counts as right, refused and wrong."""
import itertools
from dataclasses import replace

import numpy as np
import pytest

import circulant
from circulant.sim.refusal import Refusal
from circulant.training import export
from tests import onnx_cases


@pytest.fixture(scope="module")
def cases():
    return {case.name: case for case in (*onnx_cases.node_cases(), *onnx_cases.converted_cases())}


def test_all_are_there(cases):
    assert len([case for case in cases.values() if case.name.startswith("test_")]) == len(cases) > 440


@pytest.mark.parametrize(("name", "outcome"), [
    ("test_relu", "right"), ("test_gemm_default_vector_bias", "right"), ("test_Linear", "right"),
    ("test_globalaveragepool", "right"), ("test_Conv3d", "refused")])
def test_an_outcome(cases, name, outcome):
    found = onnx_cases.judged(cases[name])
    assert (found.outcome, bool(found.reason)) == (outcome, outcome != "right"), found


def test_of_a_third_of_all_none_is_wrong_or_a_traceback(cases):
    found = [onnx_cases.judged(case) for case in list(cases.values())[::3]]
    assert [each for each in found if each.outcome not in ("right", "refused")] == []
    assert sum(each.outcome == "right" for each in found) >= 80
    assert all(each.reason and "\n" not in each.reason for each in found if each.outcome == "refused")


@pytest.mark.soak
def test_what_is_right_also_generates_and_some_of_it_is_exact_under_verilator(cases, tmp_path):
    checked = 0
    for number, case in enumerate(list(cases.values())[::5]):
        if onnx_cases.judged(case).outcome != "right":
            continue
        for batch, output in itertools.product((0, 1, None) if case.x.ndim > 1 else (None,), case.expected):
            try:
                module, x, _ = onnx_cases.imported(case, output, tmp_path / "net.onnx", batch)
                network = export(module, x.astype(np.float64))
            except Refusal:
                continue
            design = circulant.generate(network, multipliers=64)
            if number % 8 == 0:
                design.write(tmp_path / case.name)
                found = circulant.verify(tmp_path / case.name, network.vectors(x.astype(np.float64)))
                assert found.words > 0 and found.mismatches == 0, found.first
                checked += 1
            break
    assert checked > 3


@pytest.mark.parametrize(("name", "words"), [
    ("test_averagepool_2d_dilations", "dilations=[2, 2] of an average"),
    ("test_batchnorm_example_training_mode", "training_mode=1 takes the statistics of each batch"),
    ("test_gemm_default_matrix_bias", "its bias must be the same for all samples of a batch")])
def test_what_would_be_computed_wrongly_is_refused(cases, name, words):
    found = onnx_cases.judged(cases[name])
    assert found.outcome == "refused"
    assert words in found.reason


def test_another_expected_output_is_wrong(cases):
    case = cases["test_relu"]
    found = onnx_cases.judged(replace(case, expected={name: array + 0.01 for name, array in case.expected.items()}))
    assert found.outcome == "wrong"
    assert "imported as another function, off by 0.01" in found.reason


def test_an_output_of_another_shape_is_wrong(cases):
    case = cases["test_relu"]
    found = onnx_cases.judged(replace(case, expected={name: array[:, :2] for name, array in case.expected.items()}))
    assert found.reason == "y: the shape (3, 4, 5), expected (3, 2, 5)"
