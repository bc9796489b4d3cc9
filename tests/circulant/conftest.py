"""A finished run without torch, Amaranth or Verilator: real records around a small random network."""
import json
import shutil

import numpy as np
import pytest

from circulant.experiment import Experiment
from circulant.hardware import Hardware
from circulant.run.run_folder import Run, record, sha256
from circulant.sim import artifact, design
from circulant.sim.error.ranges import analyse
from circulant.sim.files.writing import atomic_bytes
from circulant.sim.kinds.gru import FloatGru
from circulant.sim.kinds.linear import FloatLinear
from circulant.sim.quantize.quantize import quantize
from circulant.sim.real import float_model
from circulant.training.settings import ModelSettings


def small_network(seed=1, **widths):
    rng = np.random.default_rng(seed)
    model = float_model.Model.chain("small", 4, True, (
        FloatGru("gru", inputs=4, hidden=8, weight_ih=rng.normal(0, 0.4, (3, 2, 1, 4)),
                 weight_hh=rng.normal(0, 0.4, (3, 2, 2, 4)),
                 bias_ih=rng.normal(0, 0.4, (3, 8)), bias_hh=rng.normal(0, 0.4, (3, 8))),
        FloatLinear("linear", 8, 3, rng.normal(0, 0.4, (1, 2, 4)), rng.normal(0, 0.4, 3))))
    return quantize(model, rng.uniform(0, 1, (20, 5, 4)), **widths), rng.uniform(0, 1, (7, 5, 4))


def make_trained(run, seconds=1.0):
    atomic_bytes(run.path("model.pt"), b"weights")
    history = [{"phase": phase, "epoch": epoch, "loss": 1 / epoch, "accuracy": 0.9, "rho": 0.1, "primal": 0.1,
                "dual": 0.0} for phase in ("dense", "admm", "retrain") for epoch in (1, 2, 3)]
    return record(run, "train", {
        "hashes": {"model": sha256(run.path("model.pt"))},
        "metric": "accuracy", "accuracy": {"dense": 0.98, "projected": 0.9, "circulant": 0.97},
        "matrices": {"gru.weight_ih_l0": {"groups": 3, "rows": 8, "columns": 4, "block_size": 4},
                     "gru.weight_hh_l0": {"groups": 3, "rows": 8, "columns": 8, "block_size": 4},
                     "linear.weight": {"groups": 1, "rows": 3, "columns": 8, "block_size": 1}},
        "history": history, "seconds": seconds})


def make_quantized(run, seed=1, **widths):
    network, inputs = small_network(seed, **widths)
    network.save(run.folder)
    vectors = network.vectors(inputs).save(run.path("vectors.npz"))
    return record(run, "quantize", {"hashes": {"network": network.hash, "vectors": vectors},
                                    "metric": "accuracy", "accuracy": {"quantized": 0.96}, "seconds": 1.0,
                                    "ranges": [each.as_json() for each in analyse(network, inputs)]})


LAYERS = [
    {"name": "gru", "kind": "gru", "rows": 2, "columns": 1, "chains": 1, "fold": 2, "elements": 1, "cycles": 12,
     "floor": 8, "per": "step", "limit": "latency: each step waits for the state of the step before",
     "chart": {"period": 12, "rows": {"array: input": [[-3, -1]], "array: recurrent": [[0, 5], [6, 8]],
                                      "pointwise": [[7, 11]], "output": [[10, 14]]}}},
    {"name": "linear", "kind": "linear", "rows": 1, "columns": 1, "chains": 1, "fold": 1, "elements": 0, "cycles": 24,
     "floor": 24, "per": "sequence", "limit": "multipliers: the array works in every cycle"},
]


RESOURCES = {"products": [[18, 16, 12], [2, 24, 20]], "memories": [[4, 100, 30, "block"], [2, 20, 16, "distributed"]],
             "logic": {"layers": 2, "registers": 3000, "butterflies": 400, "rotations": 300, "block": 200,
                       "distributed": 40, "operands": 600}}
"""Of which an ECP5 makes 18 + 8 multipliers."""


PORT = {"prefix": "s_axis", "elements_per_beat": 1, "container_bits": 16, "format": {"width": 16, "frac": 10},
        "elements": 4, "beats": 4}


def make_generated(run):
    contents = {"top.v": b"module circulant_top; endmodule\n", "gru_weights.hex": b"0f\n"}
    for name, data in contents.items():
        atomic_bytes(run.path(f"hardware/{name}"), data)
    network = json.loads(run.path("quantization.json").read_text())["hashes"]["network"]
    manifest = artifact.write_json(run.path("hardware/manifest.json"), design.KIND, design.VERSION, {
        "name": "small", "multipliers": 20, "network": network, "top": "circulant_top", "clock": "clk", "reset": "rst",
        "verilog": ["top.v"], "images": ["gru_weights.hex"], "files": design.hashes(contents), "input": PORT,
        "output": {**PORT, "per": "sequence"}, "streams": 1, "max_steps": None, "layers": LAYERS})
    figures = {"multipliers": 20, "memory_bits": 4000, "resources": RESOURCES,
               "multiplications": {"per_step": 130, "per_sequence": 24},
               "layers": LAYERS}
    return record(run, "generate", {"hashes": {"network": network, "design": manifest}, "hardware": figures,
                                    "seconds": 1.0})


def make_simulated(run, mismatches=0):
    first = {"sequence": 3, "step": 4, "word": 1, "expected": 17, "got": -5, "run": "back to back"}
    hashes = {"design": json.loads(run.path("hardware/manifest.json").read_text())["hash"],
              "vectors": json.loads(run.path("quantization.json").read_text())["hashes"]["vectors"]}
    return record(run, "simulate", {"hashes": hashes, "seconds": 1.0, "verification": {
        "sequences": 7, "words": 21, "words_compared": 30,
        "mismatches": mismatches, "first": first if mismatches else None, "simulator": "Verilator 5.48.0",
        "cycles_per_step": 10.0, "cycles_per_sequence": 52.0, "steps_per_sequence": 5.0,
        "latency_spaced": 40.0, "latency_contiguous": 55.0, "cycles": 999,
        "seconds_build": 1.0, "seconds_simulate": 1.0}})


SMALL = Experiment("small", model=ModelSettings(hidden=8), hardware=Hardware(objective="throughput"))


@pytest.fixture
def fresh(tmp_path):
    return Run(tmp_path / "runs" / "small", SMALL)


@pytest.fixture(scope="session")
def whole_run(tmp_path_factory):
    """A run with all its records, made once; `finished` is a copy for each test."""
    run = Run(tmp_path_factory.mktemp("finished") / "small", SMALL)
    for make in (make_trained, make_quantized, make_generated, make_simulated):
        make(run)
    return run.folder


@pytest.fixture
def finished(fresh, whole_run):
    shutil.copytree(whole_run, fresh.folder, dirs_exist_ok=True)
    return fresh


@pytest.fixture
def call(capsys, monkeypatch, tmp_path):
    """Runs a command line in an empty folder; returns exit code, stdout and stderr."""
    from circulant.cli import main

    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        with pytest.raises(SystemExit) as stopped:
            main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        return stopped.value.code, said.out, said.err

    return run


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
