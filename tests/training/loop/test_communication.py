"""What processes send each other: bytes, scores, and a slow process that holds up no other."""
import json

import pytest

from circulant.sim.refusal import Refusal
from circulant.training.loop.communication import Channel, quotas
from circulant.training.loop.runtime import ALONE
from circulant.training.settings.training import TrainingSettings
from tests.training import talk
from tests.training.loop.test_runtime import torchrun

STEPS = 480 // talk.BATCH
DENSE = 32 * 64 + 64 + 64 * 64 + 64 + 64 * 4 + 4
BLOCKS = DENSE - 64 * 64 * 7 // 8


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    path = tmp_path_factory.mktemp("talk") / "found.json"
    done = torchrun(talk.__file__, path, cwd=path.parent)
    assert done.returncode == 0, done.stderr
    assert "MB sent by each process" in done.stderr
    return json.loads(path.read_text())


def test_a_slow_process_holds_up_no_other(found):
    assert found["allreduce"]["seconds"] >= 1.5 * found["local"]["seconds"], found


@pytest.mark.parametrize("way", ["fp16", "powersgd", "local"])
def test_the_scores_are_those_of_all_gradients(found, way):
    assert found["allreduce"]["score"] > 0.99
    assert abs(found[way]["score"] - found["allreduce"]["score"]) <= 0.003


@pytest.mark.parametrize(("phase", "numbers"), [("dense", DENSE), ("direct", BLOCKS)])
def test_bytes(found, phase, numbers):
    """Gradients of first columns are k times fewer than those of the dense matrix."""
    sent = {way: its["bytes"][phase] for way, its in found.items()}
    assert set(sent["allreduce"]) == {4 * STEPS * numbers}
    assert set(sent["fp16"]) == {2 * STEPS * numbers}
    assert set(sent["local"]) == {4 * numbers * 2}, "two averages an epoch"
    assert sent["powersgd"][-1] < sent["allreduce"][-1] / 1.5 or phase == "dense"


def test_faster_processes_take_more_batches():
    assert quotas([3.0, 1.0], 8) == [6, 2]
    assert quotas([1.0, 1.0, 1.0], 8) == [3, 3, 2]
    assert quotas([1000.0, 1.0], 8) == [7, 1], "none is left out"
    with pytest.raises(Refusal, match=r"^A round must have a batch for each of 2 processes, not 1; take smaller ones$"):
        quotas([1.0, 1.0], 1)


def test_one_process_has_no_one_to_talk_to():
    assert not Channel(ALONE, "local").local
    with pytest.raises(Refusal, match=r"^A communication must be one of 'allreduce', 'fp16', 'powersgd', 'local', "):
        Channel(ALONE, "gossip")
    with pytest.raises(Refusal, match=r"'local' must be without hints and self_guided, which count steps that all"):
        TrainingSettings(communication="local", hints=0.5, distillation=0.5, self_guided=0.5)
