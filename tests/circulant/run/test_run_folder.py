import json
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from circulant.experiment import Experiment, Quantization, Simulation, Training, load
from circulant.hardware import Hardware
from circulant.run.run_folder import BRANCHES, STEPS, Run, record, require, sha256
from circulant.sim import artifact
from circulant.sim.refusal import Refusal
from tests.circulant.conftest import make_generated, make_quantized, make_trained
from tests.refused import refused

refusal = partial(refused, require)


@pytest.mark.parametrize("step", STEPS)
def test_a_finished_step_is_found(finished, step):
    found = require(finished, step)
    assert found["experiment"] == json.loads(json.dumps(finished.experiment.tables(STEPS[step].tables)))
    assert len(found["hash"]) == 64


def test_a_step_that_reads_no_table_obeys_none(finished):
    assert record(finished, "reload", {})["experiment"] == {}
    assert require(finished, "simulate")["experiment"] == {"simulation": {"samples": 0, "drawn": 32}}


def test_a_record_keeps_the_experiment(finished):
    assert load(finished.folder) == finished.experiment


@pytest.mark.parametrize(("step", "name"), [(step.name, name) for step in STEPS.values() for name in step.files]
                         + [(step.name, step.record) for step in STEPS.values()])
def test_a_missing_file_is_named_with_the_step_that_makes_it(finished, step, name):
    finished.path(name).unlink()
    assert refusal(finished, step) == (f"{finished.path(name)} is missing; "
                                       f"run `circulant {step} {finished.folder}` first")


def test_without_any_step_the_first_is_named(fresh):
    assert refusal(fresh, "train") == (f"{fresh.path('model.pt')} is missing; "
                                       f"run `circulant train --out {fresh.folder}` first")


@pytest.mark.parametrize(("make", "step", "before", "again"), [
    (lambda run: make_trained(run, seconds=2.0), "quantize", "training.json", "quantize"),
    (lambda run: make_quantized(run, seed=2), "simulate", "quantization.json", "generate"),
    (lambda run: make_quantized(run, seed=2), "generate", "quantization.json", "generate")])
def test_a_step_done_anew_makes_the_later_ones_stale(finished, make, step, before, again):
    make(finished)
    said = refusal(finished, step)
    assert f"must follow {before} beside it, but that is newer; run `circulant {again} " in said


def test_the_same_step_done_again_with_the_same_result_makes_nothing_stale(finished):
    make_generated(finished)
    require(finished, "simulate")


@pytest.mark.parametrize(("table", "step", "key", "was"), [
    ({"quantization": Quantization(weight_bits=9)}, "quantize", "quantization.weight_bits", 12),
    ({"hardware": Hardware(9)}, "generate", "hardware.multipliers", 64)])
def test_another_experiment_than_the_one_that_was_obeyed(finished, table, step, key, was):
    other = Run(finished.folder, replace(finished.experiment, **table))
    assert refusal(other, step) == (
        f"{key} must stay {was}, with which `circulant {step}` made {finished.folder}, not 9; to change it, run "
        f"`circulant {step} {finished.folder} --set {key}=9` first")
    require(other, "train")


@pytest.mark.parametrize(("field", "value", "words"), [
    ("version", 2, "field 'version' must be 1, not 2"),
    ("format", "x", "field 'format' must be 'circulant-training', not 'x'"),
    ("accuracy", {"dense": 1.0}, "field 'hash' must be that of the contents")])
def test_a_damaged_record(finished, field, value, words):
    path = finished.path("training.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | {field: value}))
    assert re.search(re.escape(f"{path}: {words}"), refusal(finished, "train"))


def test_a_key_that_is_younger_than_a_record(finished):
    """Its default is what the step did before there was such a key."""
    path = finished.path("training.json")
    body = {key: value for key, value in json.loads(path.read_text()).items() if key not in ("version", "hash")}
    assert body.pop("format") == "circulant-training"
    del body["experiment"]["training"]["augment"]
    artifact.write_json(path, "circulant-training", 1, body)
    require(finished, "train")
    other = Run(finished.folder, replace(finished.experiment, training=Training(augment="flip")))
    assert refusal(other, "train").startswith("training.augment must stay 'none', with which `circulant train` made")


def test_a_table_that_is_younger_than_a_record(finished):
    path = finished.path("verification.json")
    body = {key: value for key, value in json.loads(path.read_text()).items() if key not in ("version", "hash")}
    assert body.pop("format") == "circulant-verification"
    body["experiment"] = {}
    artifact.write_json(path, "circulant-verification", 1, body)
    require(finished, "simulate")
    other = Run(finished.folder, replace(finished.experiment, simulation=Simulation(samples=2)))
    assert refusal(other, "simulate").startswith("simulation.samples must stay 0, with which `circulant simulate`")


def test_c_is_a_branch_that_no_step_follows(finished):
    assert not BRANCHES.keys() & STEPS.keys()
    assert all(step.after not in BRANCHES for step in (*STEPS.values(), *BRANCHES.values()))
    assert refusal(finished, "generate --target c") == (
        f"{finished.path('c/manifest.json')} is missing; run `circulant generate {finished.folder} --target c` first")


def test_sha256(tmp_path):
    (tmp_path / "x").write_bytes(b"abc")
    assert sha256(tmp_path / "x") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


@pytest.mark.parametrize("folder", ["/proc/run", "x" * 300, "file/run", "new/\0"])
def test_a_folder_that_cannot_be_written_is_found_by_trying(tmp_path, monkeypatch, folder):
    """Not by permissions, which an administrator's processes have everywhere."""
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("")
    with pytest.raises(Refusal, match=r" must be a folder that can be written to, but .*; choose another --out$"):
        Run(Path(folder), Experiment()).require_writable()
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_folder_that_can_be_written_is_not_made_by_looking(tmp_path):
    Run(tmp_path / "a" / "b", Experiment()).require_writable()
    assert not list(tmp_path.iterdir())
    (tmp_path / "a").mkdir()
    Run(tmp_path / "a", Experiment()).require_writable()
    assert (tmp_path / "a").is_dir()
