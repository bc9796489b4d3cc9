"""Sequences of different lengths through a whole run: what is scored is what is verified."""
import shutil

import numpy as np
import pytest

from circulant.hw import generate
from circulant.hw.array.layer_programs import layer_program
from circulant.hw.planner import plan
from circulant.sim import artifact
from circulant.sim.cosim import verify
from circulant.sim.cosim.build import build
from circulant.sim.cosim.judge import check
from circulant.sim.cosim.manifest import Manifest
from circulant.sim.cosim.simulate import drive, job_of
from circulant.sim.cosim.toolchain import find
from circulant.sim.cosim.verification import planned
from circulant.sim.exercise import exercise
from circulant.sim.golden.network import Network
from circulant.sim.refusal import Refusal
from circulant.sim.vectors import Vectors
from circulant.training import load_data
from tests.hw.played import sequence_cycles
from tests.ports import made
from tests.processes import call

MULTIPLIERS = 24

EXPERIMENT = f"""
[data]
name = "npz"
path = "mine.npz"
[model]
hidden = 8
[compression]
block_size = 4
[training]
method = "direct"
dense_epochs = 0
direct_epochs = 12
learning_rate = 0.05
[hardware]
multipliers = {MULTIPLIERS}
objective = "throughput"
"""


def sequences(count, seed):
    """Sequences whose class is the sign of their last value; what is behind it in the array says the other one."""
    rng = np.random.default_rng(seed)
    lengths, x = rng.integers(1, 10, count), rng.normal(size=(count, 9, 3)).astype(np.float32)
    y = (x[np.arange(count), lengths - 1, 0] > 0).astype(np.int64)
    beyond = np.arange(9) >= lengths[:, None]
    x[beyond] = np.broadcast_to(np.where(y, -3, 3)[:, None, None], x.shape)[beyond]
    return x, y, lengths


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lengths")
    parts = {f"{part}_{name}": value for part, count in (("train", 240), ("test", 60))
             for name, value in zip(("x", "y", "lengths"), sequences(count, count), strict=True)}
    np.savez(folder / "mine.npz", **parts)
    (folder / "tiny.toml").write_text(EXPERIMENT.replace("mine.npz", str(folder / "mine.npz")))
    assert call("run", folder / "tiny.toml", "--out", folder / "run") == 0
    return folder / "run"


def test_the_accuracy_is_that_of_the_vectors_that_were_verified(whole):
    """Whoever trusts the folder alone gets the same figure."""
    vectors = Vectors.load(whole / "vectors.npz")
    x, y, lengths = sequences(60, 60)
    assert (vectors.lengths == lengths).all()
    report = artifact.read_json(whole / "report.json", "circulant-report", 1)
    scored = float((vectors.outputs.argmax(-1) == y).mean())
    printed = artifact.read_json(whole / "quantization.json", "circulant-quantization", 1)["accuracy"]["quantized"]
    assert report["accuracy"]["quantized"] == printed == scored > 0.8, "padding would say the opposite"
    check = report["verification"]
    assert (check["sequences"], check["words"], check["mismatches"]) == (60, vectors.outputs.size, 0)
    network = Network.load(whole)
    alone = [network.run(x[n:n + 1, :length], lengths=[length]).integers[0] for n, length in enumerate(lengths)]
    assert (vectors.outputs == alone).all(), "each sequence by itself"
    padded = network.run(x, lengths=np.full(60, 9)).integers
    assert (padded.argmax(-1) == y).mean() < 0.5, "what was verified before there were lengths"


def test_padded_vectors_are_not_verified(whole, tmp_path):
    vectors = Vectors.load(whole / "vectors.npz")
    padded = Vectors(vectors.inputs, vectors.outputs, vectors.network)
    assert verify(whole / "hardware", padded, stalls=False).mismatches > 0


def test_the_network_asks_for_lengths(whole):
    data = load_data("npz", path=str(whole.parent / "mine.npz"))
    with pytest.raises(Refusal, match=r"must come with lengths .*; give lengths, such as lengths=data\.test_lengths$"):
        Network.load(whole).vectors(data.test_x)


def test_the_c_target_tests_itself_at_these_lengths(whole):
    assert call("generate", whole, "--target", "c") == 0
    text = (whole / "c" / "test.c").read_text()
    steps = ", ".join(map(str, Vectors.load(whole / "vectors.npz").lengths[:8]))
    assert f"steps[COUNT] = {{{steps}}}" in text


@pytest.mark.parametrize("lengths", [[7], [2, 2], [5, 2, 7]])
def test_figures_are_those_of_the_cost_model(whole, lengths):
    network = Network.load(whole)
    layer, got = network.stages[0], plan(network, MULTIPLIERS)[0]
    program = layer_program(layer, got.shape, got.spacing)
    x = np.random.default_rng(0).normal(size=(len(lengths), max(lengths), 3))
    found = verify(whole / "hardware", network.vectors(x, lengths=lengths), stalls=False)
    assert found.mismatches == 0
    assert found.cycles_per_step == got.cycles
    wanted = sequence_cycles(layer, program, got.elements, steps=lengths)
    assert (found.cycles_per_sequence, found.steps_per_sequence) == pytest.approx((wanted, np.mean(lengths)))
    assert (found.latency_spaced > wanted) == (lengths == [2, 2]), "that is something else"


def test_the_record_of_an_earlier_version_is_refused(whole, tmp_path, capsys):
    folder = shutil.copytree(whole, tmp_path / "run")
    old = artifact.read_json(folder / "verification.json", "circulant-verification", 1)
    del old["hash"], old["verification"]["steps_per_sequence"]
    artifact.write_json(folder / "verification.json", "circulant-verification", 1, old)
    assert call("report", folder) == 2
    assert "must say how long the measured sequences were, but it is of an earlier version" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "options"), [("interleaved", {"streams": 2}), ("images", {})])
def test_frames_with_a_misplaced_tlast_give_what_golden_says_of_whole_ones(name, options, tmp_path):
    """A vector that is filled up, an image too, and images that go on behind their end."""
    network = made(name)[0]
    manifest = Manifest.load(generate(network, multipliers=40, objective="throughput", **options).write(tmp_path))
    drawn = exercise(network, 8, steps=4).vectors
    played, _, extra = planned(manifest, drawn, drawn)
    (run,) = [each for each in extra if each.misplaced and not each.moments]
    job = job_of(manifest, (run,), played, 4000)
    short = [len(beats) - len(job.offered(n)[0]) for n, (beats, _) in zip(run.sequences, job.frames(run), strict=True)]
    assert min(short) < 0 and (max(short) > 0) == (name == "images"), "beats are left out, and follow an image"
    outcome = drive(manifest, find(), build(manifest, find()).folder, job, lambda stage, done, total: None)
    assert check.broken_rule(job, outcome, manifest.output) is None
    found = check.compare(job, outcome, manifest.output, played)
    assert found.words > 0 and found.mismatches == 0
