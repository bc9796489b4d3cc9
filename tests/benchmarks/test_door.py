"""ONNX's own tests at the door: what counts as right, refused and wrong."""
import itertools
from dataclasses import replace

import numpy as np
import pytest

import circulant
from benchmarks import door, torch_programs
from circulant.sim.refusal import Refusal
from circulant.training import export


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


def test_of_a_third_of_all_none_is_wrong_or_a_traceback(cases):
    """The command judges all of them."""
    found = [door.judged(case) for case in list(cases.values())[::3]]
    assert [each for each in found if each.outcome not in ("right", "refused")] == []
    assert sum(each.outcome == "right" for each in found) >= 80
    assert all(each.reason and "\n" not in each.reason for each in found if each.outcome == "refused")


@pytest.mark.soak
def test_what_is_right_also_generates_and_some_of_it_is_exact_under_verilator(cases, tmp_path):
    checked = 0
    for number, case in enumerate(list(cases.values())[::5]):
        if door.judged(case).outcome != "right":
            continue
        for batch, output in itertools.product((0, 1, None) if case.x.ndim > 1 else (None,), case.expected):
            try:
                module, x, _ = door.imported(case, output, tmp_path / "net.onnx", batch)
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
    found = door.judged(cases[name])
    assert found.outcome == "refused"
    assert words in found.reason


def test_another_expected_output_is_wrong(cases):
    case = cases["test_relu"]
    found = door.judged(replace(case, expected={name: array + 0.01 for name, array in case.expected.items()}))
    assert found.outcome == "wrong"
    assert "imported as another function, off by 0.01" in found.reason


def test_an_output_of_another_shape_is_wrong(cases):
    case = cases["test_relu"]
    found = door.judged(replace(case, expected={name: array[:, :2] for name, array in case.expected.items()}))
    assert found.reason == "y: the shape (3, 4, 5), expected (3, 2, 5)"


def test_the_figures_are_of_nodes_files_and_torch_programs(cases, monkeypatch):
    monkeypatch.setattr(door, "node_cases", lambda: [cases["test_relu"], cases["test_Conv3d"]])
    monkeypatch.setattr(door, "converted_cases", lambda: [cases["test_Linear"]])
    monkeypatch.setattr(torch_programs, "PROGRAMS", [
        each for each in torch_programs.PROGRAMS if each.name in ("batch_norm_first", "kept_cell")])
    said = []
    found = door.measure(said.append)
    assert found["onnx_node"] == {"right": 1, "refused": 1, "wrong": 0, "tracebacks": 0}
    assert found["onnx_converted"] == {"right": 1, "refused": 0, "wrong": 0, "tracebacks": 0}
    assert found["torch"] == {"programs": 2, "right": 1, "refused": 1, "wrong": 0, "tracebacks": 0}
    assert door.table(found)["torch"] == "2 programs, 1 right, 1 refused, 0 wrong, 0 tracebacks"
    assert len(said) == 5 and any(each.startswith("kept_cell: refused (") for each in said)
