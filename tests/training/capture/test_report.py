"""The report: its table, its JSON, and the refusal."""
import json

import pytest
import torch
from torch import nn

from circulant.sim.refusal import Refusal
from circulant.training.capture import ConversionReport, Entry, inspect


def report(*statuses):
    return ConversionReport("Net", tuple(Entry(f"n{i}", "Linear", status, "because", "N × 4")
                                         for i, status in enumerate(statuses)))


def test_table():
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Dropout(), nn.Flatten(), nn.Linear(16, 2))
    lines = str(inspect(model, torch.zeros(2, 1, 4, 4))).splitlines()
    assert lines[0].split() == ["node", "kind", "becomes", "result", "note"]
    assert lines[2].startswith("0     Conv2d       converted  N × 4 × 2 × 2  dense")
    assert lines[3].startswith("1     BatchNorm2d  folded     N × 4 × 2 × 2  into 0, exactly")
    assert lines[4].startswith("2     Dropout      skipped")
    assert lines[-1] == "Sequential: 3 converted, 1 folded, 1 skipped"


def test_json():
    made = report("converted", "refused").as_json()
    assert json.loads(json.dumps(made)) == made
    assert (made["model"], made["ok"], made["exportable"]) == ("Net", False, False)
    assert made["nodes"][1] == {"name": "n1", "kind": "Linear", "status": "refused", "note": "because",
                                "shape": "N × 4"}


@pytest.mark.parametrize(("statuses", "ok", "exportable"), [
    (("converted", "folded", "skipped"), True, True), (("converted", "captured"), True, False),
    (("converted", "captured", "refused"), False, False)])
def test_verdicts(statuses, ok, exportable):
    made = report(*statuses)
    assert (made.ok, made.exportable) == (ok, exportable)
    if ok:
        made.require()
    else:
        with pytest.raises(Refusal, match=r"^1 part of the model cannot be converted: n2 \(Linear: because\)$"):
            made.require()


def test_a_report_is_its_entries():
    made = report("converted", "skipped", "converted")
    assert [entry.name for entry in made] == ["n0", "n1", "n2"]
    assert [entry.name for entry in made.of("converted")] == ["n0", "n2"]


def test_equal_causes_stand_together_the_commonest_first():
    entries = [Entry(f"a{n}", "Conv2d", "refused", "no dilation; leave it out") for n in range(5)]
    entries += [Entry("b", "erf", "refused", "not supported"), Entry("forward", "", "refused", "it is wrong")]
    with pytest.raises(Refusal, match=r"^7 parts of the model cannot be converted: a0, a1, a2 and 2 more \(5 × Conv2d: "
                                      r"no dilation; leave it out\), b \(erf: not supported\), forward \(it is w"):
        ConversionReport("Net", tuple(entries[5:] + entries[:5])).require()
    with pytest.raises(Refusal, match=r"p8 \(x: 8\), and 3 for other reasons$"):
        ConversionReport("Net", tuple(Entry(f"p{n}", "x", "refused", str(n)) for n in range(12))).require()
