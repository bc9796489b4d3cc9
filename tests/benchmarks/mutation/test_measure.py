"""A sample of mutants of a small GRU: the checker finds most, and says of the others what is known."""
import json

import numpy as np
import pytest

from benchmarks.designs import Shape
from benchmarks.mutation.extreme import extreme
from benchmarks.mutation.measure import of_design
from benchmarks.mutation.record import Record
from circulant.hw import generate
from circulant.sim.quantize.quantize import quantize
from tests.sim import samples


@pytest.mark.soak
def test_a_sample_of_mutants_is_caught():
    model = samples.model()
    found = of_design(quantize(model, samples.data(model)), Shape((5, 5), {}, 4, {"multipliers": 12}), count=20, seed=1,
                      prove=False)
    assert found["planted"] == 20 == found["caught"] + len(found["survivors"])
    assert found["caught"] >= 10, found["survivors"]


def test_a_record_goes_on_where_it_stopped(tmp_path):
    path, asked = tmp_path / "folder" / "x.jsonl", []

    def find(name):
        asked.append(name)
        return {"caught": name}

    record = Record(path)
    assert [record.get(name, lambda name=name: find(name)) for name in "aba"] == [
        {"caught": "a"}, {"caught": "b"}, {"caught": "a"}]
    path.write_text(path.read_text() + json.dumps({"c": {"caught": "c"}})[:9])  # It was killed while it wrote.
    again = Record(path)
    assert [again.get(name, lambda name=name: find(name))["caught"] for name in "bcd"] == ["b", "c", "d"]
    assert asked == ["a", "b", "c", "d"]
    assert len(Record(path)) == 4


def test_a_network_of_extreme_weights_has_the_same_verilog_and_reaches_the_ends_of_its_formats():
    model = samples.model()
    made = quantize(model, samples.data(model))
    low, high = (1 << made.layers[0].gates.parts[0].weight.width - 1) * np.array([-1, 1]) - [0, 1]
    for seed in range(3):
        other = extreme(made, seed)
        weights = np.concatenate([part.weights.ravel() for part in other.layers[0].gates.parts])
        assert {int(weights.min()), int(weights.max())} == {int(low), int(high)}
    own, others = (generate(each, multipliers=12, objective="throughput") for each in (made, other))
    assert others.verilog == own.verilog and others.images != own.images
