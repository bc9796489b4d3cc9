"""A sample of mutants of a small GRU: the checker finds most, and says of the others what is known."""
import json

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks import mutation
from benchmarks.commands import main
from benchmarks.designs import Shape
from benchmarks.mutation.extreme import aligned, broken_lines, each_segment, extreme
from benchmarks.mutation.measure import of_design
from benchmarks.mutation.subject import Subject
from benchmarks.resume import Record
from circulant.hw import generate, writes
from circulant.sim.configuration import WRITE
from circulant.sim.error.ranges import worst_cases
from circulant.sim.exercise.points import reached
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

    record = Record(path, dict)
    assert [record.get(name, lambda name=name: find(name)) for name in "aba"] == [
        {"caught": "a"}, {"caught": "b"}, {"caught": "a"}]
    path.write_text(path.read_text() + json.dumps({"c": {"caught": "c"}})[:9])  # It was killed while it wrote.
    again = Record(path, dict)
    assert [again.get(name, lambda name=name: find(name))["caught"] for name in "bcd"] == ["b", "c", "d"]
    assert asked == ["a", "b", "c", "d"]
    assert len(Record(path, dict)) == 4


def test_a_result_that_holds_no_more_is_found_again(tmp_path):
    record = Record(tmp_path / "x.jsonl", dict)
    assert record["a"] is None
    for stimuli, found in (("few", "few"), ("few", "few"), ("many", "many")):
        record.get("a", lambda stimuli=stimuli: {"stimuli": stimuli},
                   lambda known, stimuli=stimuli: known["stimuli"] == stimuli)
        assert record["a"] == {"stimuli": found}
    assert Record(tmp_path / "x.jsonl", dict)["a"] == {"stimuli": "many"}
    assert (tmp_path / "x.jsonl").read_text().count("\n") == 2, "it was looked for again once"


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


def test_broken_lines_have_the_same_verilog_and_pre_activations_at_the_ends_of_segments():
    model = samples.model(hidden=24)
    made = quantize(model, samples.data(model))
    others = [broken_lines(made, seed) for seed in range(4)]
    zeros = np.zeros((1, 3, made.flow.size), np.int64)

    def ends(network, hit):
        found = reached(network, network.traced(zeros), worst_cases(network, 3))
        return {point for point, hits in found.items() if point[0] == "boundary" and hits.any() in hit}

    every, own = ends(made, (False, True)), ends(made, (True,))
    reaches = set().union(*(ends(other, (True,)) for other in others))
    assert len(reaches) > max(len(every) / 5, 5 * len(own))
    assert any("tanh" in name for _, name in reaches) and any("sigmoid" in name for _, name in reaches)
    tables = [other.layers[0].sigmoid for other in others]
    assert all(np.abs(np.diff(table.values)).max() > 1 << table.output.width - 3 for table in tables), "lines meet"
    own, *changed = (generate(each, multipliers=12, objective="throughput") for each in (made, others[0]))
    assert changed[0].verilog == own.verilog and changed[0].images != own.images


def test_each_segment_begins_at_a_pre_activation_and_the_verilog_is_the_same():
    model = samples.model(hidden=24)
    made = quantize(model, samples.data(model))
    others, zeros = [each_segment(made, seed) for seed in range(8)], np.zeros((1, 3, made.flow.size), np.int64)
    hits = {}
    for other in others:
        for point, hit in reached(other, other.traced(zeros), worst_cases(other, 3)).items():
            if point[0] == "boundary" and point[1].endswith("first"):
                hits[point] = hits.get(point, False) or bool(hit.any())
    assert len(hits) > 30 and sum(hits.values()) >= 0.9 * len(hits), [point for point, hit in hits.items() if not hit]
    values = others[0].layers[0].tanh.values
    steps = np.abs(np.diff(values))
    assert (steps[steps > 0] > 1 << others[0].layers[0].tanh.output.width - 3).all(), "lines are far apart"
    one, other = (generate(each, multipliers=12, objective="throughput") for each in (made, others[0]))
    assert other.verilog == one.verilog and other.images != one.images
    plain = samples.model(sequence=False)
    vectors = quantize(plain, samples.data(plain))
    assert each_segment(vectors).hash == vectors.hash, "no gates"


def test_aligned_samples_reach_both_limits_of_each_value_of_the_spectrum():
    model = samples.model()
    made = quantize(model, samples.data(model))
    product = made.layers[0].gates.parts[0]
    spectra = product.spectra(aligned(made, 40, 4).reshape(-1, product.block_size).T)
    drawn = product.spectra(np.random.default_rng(0).integers(
        product.input.lo, product.input.hi + 1, (product.block_size, 160)))
    assert (np.abs(spectra).max(axis=1) > np.abs(drawn).max(axis=1)).all()
    vectors = samples.model(sequence=False)
    assert aligned(quantize(vectors, samples.data(vectors)), 2, 2) is None


def test_words_of_an_exchange_come_in_a_drawn_order_between_writes_to_no_memory(tmp_path):
    model = samples.model()
    made = quantize(model, samples.data(model))
    subject = Subject(made, Shape((5, 5), {}, 4, {"multipliers": 12, "reloadable": True}), tmp_path, 0)
    session, _ = subject._session(2000)
    usual = [(operation.address, operation.value) for operation in session.config.load(
        writes(generate(made, multipliers=12, reloadable=True, objective="throughput"), session.other))
        if operation.kind == WRITE]
    windows = subject.manifest.configuration.windows
    known, stray = [], []
    for operation in session.load_other:
        if operation.kind == WRITE:
            within = any(each.first <= operation.address < each.first + each.size for each in windows)
            (known if within else stray).append((operation.address, operation.value))
    assert known != usual and sorted(known) == sorted(usual)
    assert len(stray) > len(known) / 8


@pytest.mark.parametrize("proved", [[], ["operator in top, y: …a + b… is …a - b…"]])
def test_a_caught_mutant_that_is_proved_ends_the_command(monkeypatch, tmp_path, proved):
    def measure(names, *, offered, **options):
        return {"benchmark": "mutation", "table": {}, "designs": {
            name: {"offered": offered, "offered_and_proved": proved} for name in names}}

    monkeypatch.setattr(mutation, "measure", measure)
    result = CliRunner().invoke(main, ["mutation", "--design", "digits-gru", "--offered", "10",
                                   "--json", str(tmp_path / "out.json")])
    assert result.exit_code == bool(proved), result.output
    assert json.loads((tmp_path / "out.json").read_text())["designs"]["digits-gru"]["offered"] == 10
