"""The tables of docs/results.md: what is collected from run folders, what counts as reached, what a document keeps."""
import csv
import io
import json
from dataclasses import replace
from itertools import pairwise

import click
import pytest

from benchmarks import results
from benchmarks.experiments import EXPERIMENTS, TITLES, Row, rows
from circulant import training
from circulant.experiment import load
from circulant.sim import artifact

MATRICES = {"gru.weight_ih_l0": {"groups": 3, "rows": 64, "columns": 32, "block_size": 8},
            "linear.weight": {"groups": 1, "rows": 10, "columns": 64, "block_size": 1}}


def trained(row: Row, seed: int, score: float, below, metric: str = "accuracy", matrices=MATRICES,
            sets=()) -> None:
    folder = row.folder(seed, below)
    folder.mkdir(parents=True)
    _, name, *words = row.arguments(seed)
    experiment = load(name, [*(word for before, word in pairwise(words) if before == "--set"), *sets])
    artifact.write_json(folder / "training.json", "circulant-training", 1, {
        "metric": metric, metric: {"dense": 0.9, "circulant": score}, "history": [{}] * 50, "matrices": matrices,
        "experiment": experiment.tables(("data", "model", "compression", "training")),
        "seconds": 100.0, "processor_seconds": 90.0,
        "machine": {"processor": "Z80", "gpu": "", "threads": 1, "cores": 2, "torch": "2.0"}})


def row(experiment: str, label: str) -> Row:
    return next(row for row in rows(experiment) if row.label == label)


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_row_is_a_legal_experiment(experiment):
    base, *others = rows(experiment)
    assert (base.label, base.base) == ("start", ""), "the others start from the first row's dense baseline, if any"
    for each in (base, *others):
        _, name, *words = each.arguments(3)
        loaded = load(name, [word for before, word in pairwise(words) if before == "--set"])
        assert loaded.training.seed == 3
        assert loaded.training.dense == (str(row(experiment, each.base).folder(3).absolute()) if each.base else "")
        alone = not loaded.training.dense_epochs
        assert each.base or each.label.startswith("start") or alone, "it is trained alone, or from a baseline"


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_a_row_starts_from_a_dense_model_of_its_own_shape(experiment):
    def shape(each: Row):
        return replace(load(experiment, each.sets).model, dropout=0, dense=())

    for each in rows(experiment):
        assert not each.base or shape(each) == shape(row(experiment, each.base)), each.label


def test_a_row_of_admm_is_compared_with_the_twin_that_has_its_phases_and_one_of_direct_training_with_the_dense_model():
    against = {each.label: each.against for each in rows("cifar10-cnn")}
    assert {label for label, other in against.items() if other == "dense"} == {"k8"}
    assert set(against.values()) == {"dense", "start"}


@pytest.mark.parametrize("experiment", [
    "speech-gru", "speech-lstm", pytest.param("speech-gru-1024", marks=pytest.mark.soak), "speech-gru-256",
    "speech-lstm-256"])
def test_mixed_rows_name_every_recurrent_matrix(experiment):
    loaded = load(experiment, row(experiment, "k16-4").sets)
    model = training.build(training.ModelSettings(**loaded.tables()["model"]), (10, 40), 5)
    sizes = training.assign(model, loaded.compression.block_size, loaded.model.dense)
    assert {name for name, k in sizes.items() if k == 1} == {"front.weight", "linear.weight"}
    assert all(k == (16 if "_l0" in name else 4) for name, k in sizes.items() if k > 1)


@pytest.mark.parametrize("experiment", ["speech-gru", "speech-lstm", "speech-gru-1024"])
def test_the_taught_twin_differs_by_its_block_size_alone(experiment):
    twin, blocks = row(experiment, "taught"), row(experiment, "k8")
    assert (twin.sets[0], blocks.sets[0]) == ("compression.block_size=1", "compression.block_size=8")
    assert (twin.sets[1:], twin.base) == (blocks.sets[1:], blocks.base)
    assert load(experiment, twin.sets).training.distillation > 0


@pytest.mark.parametrize("experiment", ["speech-gru", "speech-lstm", "speech-gru-1024"])
def test_a_warm_row_differs_by_its_start_alone(experiment):
    cold, warm = row(experiment, "k8"), row(experiment, "k8-warm")
    assert (*cold.sets, "training.start=dense") == warm.sets and cold.base == warm.base
    assert [load(experiment, each.sets).training.start for each in (cold, warm)] == ["projected", "dense"]


@pytest.mark.parametrize("experiment", ["speech-gru", "speech-lstm"])
def test_a_chain_leads_from_a_dense_model_over_its_taught_twin_to_blocks(experiment):
    chain = [row(experiment, f"{label}-chain") for label in ("start", "taught", "k8", "k16")]
    settings = [load(experiment, each.sets) for each in chain]
    assert [each.base for each in chain] == ["", "start-chain", "taught-chain", "taught-chain"]
    assert {each.against for each in chain} == {"start-chain"}
    assert [each.compression.block_size for each in settings] == [1, 1, 8, 16]
    assert [each.training.method for each in settings] == ["admm", "direct", "direct", "direct"]
    assert [each.training.start for each in settings[1:]] == ["projected", "dense", "dense"]
    assert {each.training.distillation for each in settings[1:]} == {0.9}


def test_a_chain_is_compared_with_its_own_start_and_with_its_teacher(tmp_path):
    for label, score in (("start", 0.6), ("start-chain", 0.45), ("taught-chain", 0.43), ("k8-chain", 0.441)):
        trained(row("speech-gru", label), 0, score, tmp_path, "phone_error_rate")
    found = results.collect(tmp_path, kept=tmp_path / "kept")["speech-gru"]
    assert found["taught-chain"]["losses"] == pytest.approx({0: -0.02})
    assert found["k8-chain"]["losses"] == pytest.approx({0: -0.009})
    assert found["k8-chain"]["target"] == [{"rule": "loss ≤ 0.15", "reached": True},
                                           {"rule": "≤ 1.00 behind taught-chain (+1.10)", "reached": False}]
    assert " | 45.00 % |  | " in results.document({"speech-gru": found}), "the first of a chain loses nothing"


def test_a_warm_row_of_small_models_learns_from_the_dense_one():
    warm = row("speech-gru-256", "k8-warm")
    training = load("speech-gru-256", warm.sets).training
    assert (warm.base, training.start, training.distillation) == ("start", "dense", 0.9)
    assert warm.target.loss == 0.015


@pytest.mark.parametrize(("experiment", "label"), [("speech-gru-720", "k16-warm"), ("speech-gru-1024", "k32-warm")])
def test_wide_rows_have_the_weights_of_512_units_in_blocks_of_8(experiment, label):
    wide, plain = load(experiment, row(experiment, label).sets), load("speech-gru", row("speech-gru", "k8-warm").sets)
    weights = [loaded.model.hidden ** 2 / loaded.compression.block_size for loaded in (wide, plain)]
    assert weights[0] == pytest.approx(weights[1], rel=0.02)
    assert wide.training.start == "dense" and wide.training.distillation == plain.training.distillation


@pytest.mark.parametrize(("experiment", "label"), [("mnist-lenet5", "warm"), ("cifar10-cnn", "k8-warm"),
                                                  ("cifar10-cnn", "k4-warm")])
def test_warm_rows_over_images_start_from_the_dense_network_and_learn_from_it(experiment, label):
    training = load(experiment, row(experiment, label).sets).training
    assert (training.method, training.start, training.distillation) == ("direct", "dense", 0.9)
    assert row(experiment, label).base == "start"


def test_figures_of_several_seeds(tmp_path):
    for seed, (dense, circulant) in enumerate([(0.99, 0.985), (0.995, 0.991)]):
        trained(row("fsdd-gru", "dense"), seed, dense, tmp_path)
        trained(row("fsdd-gru", "k8"), seed, circulant, tmp_path)
    trained(row("fsdd-gru", "k16"), 0, 0.97, tmp_path)
    found = results.collect(tmp_path, kept=tmp_path / "kept")
    assert [*found] == ["fsdd-gru"]
    entry = found["fsdd-gru"]["k8"]
    assert entry["losses"] == pytest.approx({0: 0.005, 1: 0.004})
    assert entry["target"] == [{"rule": "≥ 98.3%", "reached": True}]
    assert found["fsdd-gru"]["k16"]["target"] == [{"rule": "≥ 97.5%", "reached": False}]
    text = results.document(found)
    line = next(line for line in text.splitlines() if line.startswith("| k8 "))
    assert line == "| k8 | 8 | 2 | 98.80 ± 0.42 % | +0.45 ± 0.07 | 8.0× | ≥ 98.3%: reached |"
    assert "≥ 97.5%: **missed**" in text
    assert json.loads(json.dumps(found)), "the figures must be plain values"


def test_an_error_rate_is_lost_upwards(tmp_path):
    for label, score in (("start", 0.45), ("k8", 0.4514), ("k16", 0.4536), ("k4-16", 0.46), ("k16-4", 0.47)):
        trained(row("speech-gru", label), 0, score, tmp_path, "phone_error_rate")
    found = results.collect(tmp_path, kept=tmp_path / "kept")["speech-gru"]
    reached = {label: [check["reached"] for check in entry["target"]] for label, entry in found.items()}
    assert reached == {"start": [True], "k8": [True], "k16": [False], "k4-16": [], "k16-4": []}
    said = results.document({"speech-gru": found})
    assert "less the reverse, in points: `speech-gru` +1.00 (one seed: no more than a hint).\n" in said


def test_rows_are_compared_by_the_seeds_that_both_have(tmp_path):
    for experiment, label, seed, score in (
            ("speech-gru", "k8", 0, 0.454), ("speech-lstm", "k8", 0, 0.451), ("speech-lstm", "k8", 1, 0.9),
            ("speech-gru", "k16", 0, 0.46), ("speech-lstm", "k16", 1, 0.46),
            ("speech-gru", "k4-16", 0, 0.46), ("speech-gru", "k16-4", 1, 0.47)):
        trained(row(experiment, label), seed, score, tmp_path, "phone_error_rate")
    for experiment in ("speech-gru", "speech-lstm"):
        for seed in (0, 1):
            trained(row(experiment, "start"), seed, 0.45, tmp_path, "phone_error_rate")
    said = results.document(results.collect(tmp_path, kept=tmp_path / "kept")).partition("## Orderings")[2]
    assert "\n| k8 | +0.30 (1) |  |\n" in said
    assert "| k16 |" not in said, "they have no seed in common"
    assert "later layer" not in said, "they have no seed in common"


def test_the_command_of_a_row_is_that_of_a_seed_it_has(tmp_path):
    for label, seeds in (("start", (1, 2)), ("k8", (2,))):
        for seed in seeds:
            trained(row("speech-gru", label), seed, 0.45, tmp_path, "phone_error_rate")
    found = results.collect(tmp_path, kept=tmp_path / "kept")["speech-gru"]
    commands = [entry["command"] for entry in found.values()]
    assert [command.split("--out ")[1].split()[0] for command in commands] == [
        "runs/results/speech-gru/start-s1", "runs/results/speech-gru/k8-s2"]
    assert "training.seed=2" in commands[1] and "training.dense=runs/results/speech-gru/start-s2" in commands[1]


@pytest.mark.parametrize(("values", "sign", "text"), [
    ([0.5], "", "50.00"), ([0.01, 0.02], "+", "+1.50 ± 0.71"), ([-1e-17, 0.0], "+", "+0.00 ± 0.00")])
def test_a_spread_has_no_negative_zero(values, sign, text):
    assert results.spread(values, 100, sign) == text


@pytest.mark.parametrize(("gains", "verdict"), [
    ([0.01, 0.011, 0.012], "confirmed"), ([-0.01, -0.011, -0.012], "refuted"), ([0.01, -0.012, 0.003], "undecided")])
def test_an_ordering_needs_more_than_its_spread(gains, verdict):
    assert results._verdict(gains).startswith(verdict)


def test_the_sheet_has_what_the_page_leaves_out_and_keeps_experiments_of_another_machine(tmp_path):
    for seed, score in ((0, 0.985), (2, 0.991)):
        trained(row("fsdd-gru", "k8"), seed, score, tmp_path)
    found = results.collect(tmp_path, kept=tmp_path / "kept")
    before = "experiment,row\nfsdd-gru,k8,old\nmnist-cnn,start,kept\n"
    head, kept, line = csv.reader(io.StringIO(results.sheet(found, before)))
    assert kept == ["mnist-cnn", "start", "kept"]
    assert dict(zip(head[:-1], line[:-1], strict=True)) == {
        "experiment": "fsdd-gru", "row": "k8", "block sizes": "1; 8", "metric": "accuracy", "seeds": "0; 2",
        "scores": "0.985; 0.991", "weights before": "6144", "weights as stored": "768", "epochs": "50; 50",
        "processor seconds": "90", "machines": "Z80, 1 of 2 cores, torch 2.0"}
    assert line[-1].startswith("circulant train fsdd-gru ")


def test_only_what_stands_between_the_marks_is_replaced(tmp_path):
    path = tmp_path / "results.md"
    kept = f"## {TITLES['fsdd-gru']}\n\nof another machine\n"
    path.write_text(f"head\n{results.BEGIN}\n{kept}\n## {TITLES['mnist-mlp']}\n\nold\n{results.END}\ntail\n")
    trained(row("mnist-mlp", "k16"), 0, 0.988, tmp_path)
    results.write(path, results.collect(tmp_path, kept=tmp_path / "kept"))
    text = path.read_text()
    assert text.endswith(f"{results.END}\ntail\n")
    assert "old" not in text
    assert text.startswith(f"head\n{results.BEGIN}\n\n{kept}\n"), "nothing was found of it, so it stays"
    assert "## MNIST, perceptron" in text


@pytest.mark.parametrize("text", ["", results.BEGIN, f"{results.BEGIN} {results.BEGIN} {results.END}"])
def test_both_marks_must_be_there_once(tmp_path, text):
    path = tmp_path / "results.md"
    path.write_text(text)
    with pytest.raises(click.ClickException, match=r"must have the lines .* once each; put them back"):
        results.write(path, {})
    assert path.read_text() == text
