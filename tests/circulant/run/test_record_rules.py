"""What a record of nonsense is refused with, under a hash that is right."""
import json

import pytest

from circulant.report import gantt
from circulant.run.record_rules import UNITS
from circulant.run.run_folder import BRANCHES, STEPS, record, recorded
from circulant.sim import artifact
from tests.refused import refused


def rewrite(run, step, change):
    path = run.path(STEPS[step].record)
    body = {key: value for key, value in json.loads(path.read_text()).items() if key not in ("version", "hash")}
    kind = body.pop("format")
    change(body)
    artifact.write_json(path, kind, 1, body)
    return path


def test_the_records_of_a_run_keep_to_them(finished):
    for step in STEPS:
        recorded(finished, step)
    for step in BRANCHES:
        record(finished, step, {})
        recorded(finished, step)


def test_the_chart_of_a_shared_array_is_of_one_sample_and_has_no_period(finished):
    rewrite(finished, "generate", lambda body: body["hardware"]["layers"][0].update(chart={
        "rows": {"array: gru, input": [[0, 3]], "array: linear, input": [[9, 11]]}}))
    assert "period" not in recorded(finished, "generate")["hardware"]["layers"][0]["chart"]


def test_the_units_are_those_that_are_drawn():
    assert tuple(gantt.UNITS) == UNITS


@pytest.mark.parametrize(("step", "change", "words"), [
    ("train", lambda body: body.pop("hashes"), "field 'hashes' must be there, but it is missing"),
    ("train", lambda body: body.pop("accuracy"), "field 'accuracy' must be there, but it is missing"),
    ("train", lambda body: body.update(metric=["x"]), "field 'metric' must be a text of at most 100 characters, not "),
    ("train", lambda body: body["accuracy"].update(dense="x"), "field 'accuracy.dense' must be a finite number"),
    ("train", lambda body: body["history"][1].pop("loss"), "field 'history[1].loss' must be there"),
    ("train", lambda body: body["history"][1].update(accuracy=None), "field 'history[1].accuracy' must be a finite"),
    ("train", lambda body: body.update(experiment=3), "field 'experiment' must be an object, not 3"),
    ("train", lambda body: body["matrices"]["linear.weight"].update(block_size=0), "must be an integer from 1 to"),
    ("quantize", lambda body: body["ranges"][0]["bits"].pop(), "field 'ranges[0]' must be an object with a count for"),
    ("quantize", lambda body: body["hashes"].update(vectors=3), "field 'hashes.vectors' must be a SHA-256"),
    ("quantize", lambda body: body.update(picking={"lost": 1}), "field 'picking.pick_on' must be there"),
    ("quantize", lambda body: body.update(outcome={"names": ["a", "b"], "confusion": [[1, 2], [3]]}), "a square of "),
    ("quantize", lambda body: body.update(outcome={"target": [1.0], "output": [1.0]}), "beside as many targets with "),
    ("generate", lambda body: body["hardware"].update(multipliers=0), "field 'hardware.multipliers' must be an"),
    ("generate", lambda body: body["hardware"]["multiplications"].update(per_step=0, per_sequence=0), "not both none"),
    ("generate", lambda body: body["hardware"]["layers"][0]["chart"].update(period=1e-6), "1000 periods at the most"),
    ("generate", lambda body: body["hardware"]["layers"][0]["chart"]["rows"].update(x=[[0, 1]]), "spans of the units"),
    ("generate", lambda body: body["hardware"]["layers"][0].pop("columns"), "an object with rows and columns"),
    ("generate", lambda body: body["hardware"]["layers"][0].update(cycles=1e300), "must be a number from 0 to 1e+12"),
    ("generate", lambda body: body["hardware"].update(resources=None), "field 'hardware.resources' must be an object"),
    ("generate", lambda body: body["hardware"]["resources"]["products"].append([1, 2]), "must be a list of 3 elements"),
    ("generate", lambda body: body["hardware"]["resources"]["memories"].append([1, 2, 3, 4]), "three integers from 1 "),
    ("generate", lambda body: body["hardware"]["resources"]["logic"].update(sums="x"), "resources.logic.sums' must be"),
    ("simulate", lambda body: body["verification"].update(mismatches=2), "with the first mismatch, where there is one"),
    ("simulate", lambda body: body["verification"].update(cycles_per_step="x"), "must be a number from 0 to 1e+12"),
])
def test_nonsense_is_refused_with_the_step_to_run(finished, step, change, words):
    path = rewrite(finished, step, change)
    said = refused(recorded, finished, step)
    assert said.startswith(f"{path}: field ") and words in said and "\n" not in said
    assert said.endswith(f"; run `circulant {step} {finished.folder}` again")
