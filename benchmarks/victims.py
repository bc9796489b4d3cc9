"""A whole run folder without any training: every kind of file that a reader meets, and every kind of layer."""
import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from circulant.experiment import Experiment
from circulant.run.run_folder import Run, record, sha256
from circulant.sim import artifact, design
from circulant.sim.configuration import ADDRESS_BITS, Configuration, StateShape
from circulant.sim.configuration import Window as Memory
from circulant.sim.document import Document
from circulant.sim.error.ranges import analyse
from circulant.sim.files.writing import atomic_bytes
from circulant.sim.golden.network import Network
from circulant.sim.kinds.conv import FloatConv
from circulant.sim.kinds.flatten import FloatFlatten
from circulant.sim.kinds.gru import FloatGru
from circulant.sim.kinds.linear import FloatLinear
from circulant.sim.kinds.lstm import FloatLstm
from circulant.sim.kinds.pool import FloatPool
from circulant.sim.kinds.scale import FloatScale
from circulant.sim.quantize.quantize import quantize
from circulant.sim.real import float_model
from circulant.sim.real.float_model import Model as Reference
from circulant.sim.shape.window import Window
from circulant.training.settings import ModelSettings

__all__ = ["networks", "victim"]

LAYERS = [
    {"name": "gru", "kind": "gru", "rows": 2, "columns": 1, "chains": 1, "fold": 2, "elements": 1, "cycles": 12,
     "floor": 8, "per": "step", "limit": "latency: each step waits for the state of the step before",
     "chart": {"period": 12, "rows": {"array: input": [[-3, -1]], "pointwise": [[7, 11]], "output": [[10, 14]]}}},
    {"name": "linear", "kind": "linear", "rows": 1, "columns": 1, "chains": 1, "fold": 1, "elements": 0, "cycles": 24,
     "floor": 24, "per": "sequence", "limit": "multipliers: the array works in every cycle"},
]


def networks(rng: np.random.Generator) -> dict[str, Network]:
    """Networks of all kinds of layers: "recurrent", "both" directions, and "images"."""
    def matrix(rows: int, columns: int, k: int, *gates: int) -> np.ndarray:
        return rng.normal(0, 0.4, (*gates, -(-rows // k), -(-columns // k), k))

    def bias(*shape: int) -> np.ndarray:
        return rng.normal(0, 0.4, shape)

    def gru(name: str, inputs: int, hidden: int, reset: str = "after") -> FloatGru:
        return FloatGru(name, inputs=inputs, hidden=hidden, weight_ih=matrix(hidden, inputs, 4, 3),
                                weight_hh=matrix(hidden, hidden, 4, 3),
                                bias_ih=bias(3, hidden), bias_hh=bias(3, hidden), returns="sequence", reset=reset)

    def linear(name: str, inputs: int, outputs: int, k: int = 4) -> FloatLinear:
        return FloatLinear(name, inputs, outputs, matrix(outputs, inputs, k), bias(outputs))

    lstm = FloatLstm("lstm", inputs=8, hidden=6, outputs=5, weight_ih=matrix(6, 8, 4, 4),
                             weight_hh=matrix(6, 5, 4, 4), bias_ih=bias(4, 6), bias_hh=bias(4, 6),
                             projection=matrix(5, 6, 4), peephole=bias(3, 6), returns="last")
    both = float_model.Bidirectional("both", gru("both.forward", 4, 6, "before"), gru("both.backward", 4, 6, "before"))
    window, grid = Window((3, 3), (1, 1), (1, 1)), (6, 6)
    residual = float_model.Residual("sum", 4, grid=grid, body=(
        FloatConv("inner", inputs=4, outputs=4, grid=grid, window=window, weight=matrix(4, 4, 4, 9),
                  bias=bias(4), relu=True),),
        shortcut=(FloatScale("scale", 4, bias(4), bias(4)),), relu=True)
    pictures = (FloatConv("conv", inputs=2, outputs=4, grid=grid, window=window,
                          weight=matrix(4, 2, 4, 9), bias=bias(4), relu=True), residual,
                FloatPool("pool", 4, grid, Window((2, 2), (2, 2)), "average"),
                FloatFlatten("flatten", 4, (3, 3), "channels"), linear("linear", 36, 5, 1))
    models = {"recurrent": Reference.chain("victim", 4, True, (gru("gru", 4, 8), lstm, linear("linear", 5, 3))),
              "both": Reference.chain("both", 4, True, (both, linear("linear", 12, 3))),
              "images": Reference.chain("images", 2, False, pictures, (2, 6, 6))}
    made = {name: quantize(model, rng.uniform(-1, 1, (12, 5, 4) if model.sequence else (12, 2, 6, 6)))
            for name, model in models.items()}
    return made | {"images": made["images"].with_argmax()}


def victim(folder: Path, *, torch: bool = True) -> Path:
    """Write the run folder; without what torch reads, it takes less than a second."""
    rng = np.random.default_rng(5)
    run, made = Run(folder, Experiment("victim", model=ModelSettings(hidden=8))), networks(rng)
    network, inputs = made.pop("recurrent"), rng.uniform(-1, 1, (7, 5, 4))
    atomic_bytes(run.path("model.pt"), b"weights")
    if torch:
        _trained(run)
    epochs = [{"phase": phase, "epoch": epoch, "loss": 1 / epoch, "accuracy": 0.9, "rho": 0.1, "primal": 0.1,
               "dual": 0.0} for phase in ("dense", "admm", "retrain") for epoch in (1, 2)]
    record(run, "train", {
        "hashes": {"model": sha256(run.path("model.pt"))}, "metric": "accuracy",
        "accuracy": {"dense": 0.98, "projected": 0.9, "circulant": 0.97}, "history": epochs, "seconds": 1.0,
        "matrices": {"gru.weight_ih_l0": {"groups": 3, "rows": 8, "columns": 4, "block_size": 4}}})
    network.save(folder)
    for name, other in made.items():
        other.save(folder / name)
    vectors = network.vectors(inputs).save(run.path("vectors.npz"))
    record(run, "quantize", {
        "hashes": {"network": network.hash, "vectors": vectors}, "metric": "accuracy", "accuracy": {"quantized": 0.96},
        "ranges": [each.as_json() for each in analyse(network, inputs)][:6], "seconds": 1.0, "picking": {
            "pick_on": "train", "pick_by": "metric", "budget": 0.5, "lost": 0.1, "cost": 0.9, "score_start": 0.97,
            "score": 0.96, "weight_bits_start": 900, "weight_bits": 700, "widths": [
                {"name": "weight_bits", "start": 12, "picked": 9, "noise": 1e-4, "clip": 0, "fixed": False}]}})
    sha = _design(run, network)
    record(run, "generate", {
        "hashes": {"network": network.hash, "design": sha}, "seconds": 1.0, "hardware": {
            "multipliers": 20, "memory_bits": 4000, "multiplications": {"per_step": 130, "per_sequence": 24},
            "layers": LAYERS}})
    record(run, "simulate", {"hashes": {"design": sha, "vectors": vectors}, "seconds": 1.0, "verification": {
        "sequences": 7, "words": 21, "words_compared": 30, "mismatches": 1, "simulator": "Verilator 5.48.0",
        "first": {"sequence": 3, "step": 4, "word": 1, "expected": 17, "got": -5, "run": "back to back"},
        "cycles_per_step": 10.0, "cycles_per_sequence": 52.0, "steps_per_sequence": 5.0,
        "latency_spaced": 40.0, "latency_contiguous": 55.0, "cycles": 999}})
    return folder


def _design(run: Run, network: Network) -> str:
    """A manifest as of a reloadable design, with files that are none."""
    def port(prefix: str, form: Any, elements: int) -> Document:
        return {"prefix": prefix, "elements_per_beat": 1, "container_bits": 16, "format": form.as_json(),
                "elements": elements, "beats": elements}

    contents = {"top.v": b"module circulant_top; endmodule\n", "weights.hex": b"0f\n10\n"}
    for name, data in contents.items():
        atomic_bytes(run.path(f"hardware/{name}"), data)
    windows = (Memory("weights", 16, 2, 40),
               Memory("gru_y", 32, 2, 64,
                      StateShape("gru", part="y", size=8, block_size=4, blocks=2, streams=1, width=16)))
    assert windows[-1].first + windows[-1].size < 1 << ADDRESS_BITS
    return artifact.write_json(run.path("hardware/manifest.json"), design.KIND, design.VERSION, {
        "name": "victim", "network": network.hash, "top": "circulant_top", "verilog": ["top.v"],
        "images": ["weights.hex"], "files": design.hashes(contents), "clock": "clk", "reset": "rst",
        "input": port("s_axis", network.input_format, network.flow.size),
        "output": {**port("m_axis", network.output_format, network.end.size), "per": "sequence"}, "multipliers": 20,
        "memory_bits": 4000, "streams": 1, "max_steps": 128, "layers": LAYERS,
        "configuration": Configuration(windows).as_json()})


def _trained(run: Run) -> None:
    """``model.pt`` of an untrained model, and a checkpoint."""
    from circulant import training
    from circulant.training.loop.checkpoint import Checkpoint
    from circulant.training.loop.train import Trained

    settings = training.ModelSettings(**dataclasses.asdict(run.experiment.model))
    model = training.build(settings, (8, 8), 10)
    dense = {name: value.clone() for name, value in model.state_dict().items()}
    compressed = training.compress(model, {"gru.weight_ih_l0": 4})
    training.save_trained(run.path("model.pt"), Trained(
        "digits", inputs=(8, 8), classes=10, model_settings=settings, settings=training.TrainingSettings(), dense=dense,
        model=compressed, history=[{"phase": "dense", "epoch": 1, "loss": 0.5}], metric="accuracy",
        higher_is_better=True, scores={"dense": 0.9, "circulant": 0.8}))
    Checkpoint(run.path("checkpoint/training.pt"), {"seed": 0}).save({"epoch": 3, "weights": dense})
