"""A seeded sample of the damaged files: each is refused in a sentence or harmless, and none raises or hangs."""
import shutil
import time

import numpy as np
import pytest

from benchmarks import hostile
from benchmarks.damage import crafted, recast
from benchmarks.hostile import Case, check, damaged
from benchmarks.victims import networks, victim
from circulant.sim.golden.network import Network
from circulant.sim.refusal import Refusal


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return victim(tmp_path_factory.mktemp("hostile") / "run")


@pytest.fixture
def pictures(monkeypatch):
    """None are drawn: that takes longer than all else."""
    names = ("training", "accuracy", "cycles", "schedule", "ranges")
    monkeypatch.setattr("circulant.report.plots.draw", lambda *_: dict.fromkeys(names, b""))


def test_the_victim_is_whole(whole, tmp_path, pictures):
    shutil.copytree(whole, tmp_path / "run")
    for file in ("vectors.npz", "both/network.json", "images/weights.npz", "training.json"):
        assert check(Case("", tmp_path / "run", file)).verdict == "taken"
    made = [Network.load(whole), *networks().values()]
    assert {layer.kind for network in made for layer in network.stages} == {
        "gru", "lstm", "linear", "bidirectional", "conv", "residual", "pool", "flatten", "argmax"}


def test_a_sample_of_damaged_files(whole, tmp_path, pictures):
    cases = damaged(whole, tmp_path, np.random.default_rng(3))
    verdicts = []
    for _, case in zip(range(60), cases, strict=False):
        outcome = check(case)
        assert outcome.verdict in ("refused", "taken"), (case.name, outcome)
        if outcome.verdict == "refused" and not case.file.endswith(".toml"):
            assert outcome.words and outcome.words.count("\n") == 0, (case.name, outcome.words)
        verdicts.append(outcome.verdict)
    cases.close()
    assert verdicts.count("refused") > 50
    assert list(tmp_path.iterdir()) == []


def test_crafted_networks(whole, tmp_path):
    """What is taken computes, within its format."""
    rng, taken = np.random.default_rng(4), 0
    for at in range(60):
        name = ("both", "images", ".")[at % 3]
        network = Network.load(whole / name)
        network.save(tmp_path)
        (crafted if at % 4 else recast)(tmp_path / ("network.json" if at % 4 else "weights.npz"), rng)
        try:
            made = Network.load(tmp_path)
        except Refusal:
            continue
        taken += 1
        shape = (2, *made.flow.grid, made.flow.size) if made.flow.grid else (2, 3, made.flow.size)
        y = made.run_integers(np.full(shape, made.input_format.lo))
        assert made.output_format.lo <= y.min() <= y.max() <= made.output_format.hi
    assert taken < 10


@pytest.mark.parametrize(("read", "verdict", "words"), [
    (lambda case: time.sleep(5), "hang", "after 0.1 s"), (lambda case: [].pop(), "traceback", "IndexError"),
    (lambda case: exit(3), "traceback", ""), (lambda case: exit(2), "refused", "")])
def test_what_is_worse_is_found(monkeypatch, whole, read, verdict, words):
    monkeypatch.setattr(hostile, "_read", read)
    found = check(Case("", whole, "x"), 0.1)
    assert found.verdict == verdict and words in found.words
