"""Devices, precision, and several processes that train as one."""
import json
import os
import subprocess
import sys

import pytest
import torch
from torch import nn

from circulant.sim.refusal import Refusal
from circulant.training.loop.runtime import ALONE, Precision, choose_device, process_group
from tests.training import team

EPS = 2.0**-24
"""Relative rounding of one operation in float32."""


def torchrun(*arguments, cwd, processes: int = 2) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    return subprocess.run([*command, *map(str, arguments)], cwd=cwd, capture_output=True, text=True, timeout=300,
                          env={**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""})


def test_alone():
    with process_group() as found:
        assert found is ALONE
    assert found.leads
    assert found.gather("x") == ["x"]
    model = nn.Linear(2, 2)
    assert found.shared(model) is model


def test_two_processes_are_one(tmp_path):
    done = torchrun(team.__file__, tmp_path, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    team.run(tmp_path, "alone")
    alone, *ranks = (torch.load(tmp_path / f"{name}.pt") for name in ("alone", "rank0", "rank1"))
    assert len(alone["history"]) == 4 + 4 + 2
    for rank, found in enumerate(ranks):
        assert not [name for name in found["threads"] if "gloo" in name], "a group's thread may abort at the exit"
        for name, value in alone["model"].items():
            assert torch.equal(found["model"][name], value), f"rank {rank}: {name} must be the same bits"
        for epoch, (one, other) in enumerate(zip(found["admm"], alone["admm"], strict=True)):
            for part in ("z", "u"):
                assert torch.equal(one[part]["0.weight"], other[part]["0.weight"]), f"rank {rank}, {epoch}: {part}"
            assert (one["rho"], one["residuals"]) == (other["rho"], other["residuals"])
    assert ranks[1]["history"] == [], "one process talks"
    assert [found["average"].tolist() for found in (alone, *ranks)] == [[[1.0, 1.0]], [[1.5, 1.5]], [[1.5, 1.5]]]
    for one, other in zip(ranks[0]["history"], alone["history"], strict=True):
        assert one[:3] == other[:3]
        assert one[3].pop("sent") > 0
        # The sums of a loss over at most 36 samples of 8 outputs of 8 products are rounded in another order.
        assert one[3].pop("loss") == pytest.approx(other[3].pop("loss"), rel=36 * 8 * 8 * EPS)
        assert one[3] == other[3]


@pytest.mark.soak
def test_the_command_under_torchrun(tmp_path):
    arguments = ["train", "--set", "training.dense_epochs=1", "--set", "training.admm_epochs=2",
                 "--set", "training.retrain_epochs=1", "--set", "model.hidden=16", "--set", "data.subset=200"]
    done = torchrun("-m", "circulant", *arguments, "--out", "two", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("model.pt: accuracy") == 1
    subprocess.run([sys.executable, "-m", "circulant", *arguments, "--out", "one"], cwd=tmp_path, check=True)
    one, two = (json.loads((tmp_path / name / "training.json").read_text()) for name in ("one", "two"))
    assert [e["phase"] for e in two["history"]] == [e["phase"] for e in one["history"]]
    for a, b in zip(one["history"], two["history"], strict=True):
        # Adam divides by the gradient's own size, so roundings of it stay small against the learning rate of 1e-2.
        assert b["loss"] == pytest.approx(a["loss"], rel=1e-3)
    assert not (tmp_path / "two" / "checkpoint").exists()


def test_a_refusal_is_said_once(tmp_path):
    done = torchrun("-m", "circulant", "train", "--set", "training.learning_rate=9", "--set", "training.clip=0",
                    "--set", "compression.block_size=12", cwd=tmp_path)
    assert done.returncode != 0
    assert done.stderr.count("power of two") == 1


def test_devices():
    assert choose_device("cpu") == torch.device("cpu")
    if torch.cuda.is_available():
        assert choose_device("auto").type == choose_device("cuda").type == "cuda"
    else:
        assert choose_device("auto") == torch.device("cpu")
        with pytest.raises(Refusal, match=r"^Device 'cuda' must be a GPU that torch can use, but it finds none"):
            choose_device("cuda")


@pytest.mark.parametrize(("name", "dtype"), [("auto", torch.float32), ("float32", torch.float32),
                                             ("bfloat16", torch.bfloat16), ("float16", torch.float16)])
def test_precision(name, dtype):
    precision = Precision(name, torch.device("cpu"))
    x = torch.randn(2, 4)
    with precision.autocast():
        assert nn.Linear(4, 4)(x).dtype == dtype
    assert precision.scaler.is_enabled() == (dtype == torch.float16)
    with precision.products():
        assert torch.get_float32_matmul_precision() == ("medium" if dtype == torch.bfloat16 else "highest")
    assert torch.get_float32_matmul_precision() == "highest"
