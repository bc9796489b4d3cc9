"""The steps of a run, but for its report. Each starts from the files of the one before in the run folder, and is whole
or not at all.

torch is imported by `train` and `quantize` only, Amaranth by `generate` only, cocotb by `simulate` only.
"""
import math
import shutil
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from circulant.boards.device import fit_of
from circulant.experiment import Experiment, save
from circulant.extras import TRAINING, extras
from circulant.kit.kit import CLOCK_MHZ, write_kit
from circulant.progress import Show, leads, silent
from circulant.run.divided import check, divide
from circulant.run.integrity import design_hash, network_of, played_of, vectors_of
from circulant.run.kept import data_of, keep_data, keep_float, model_of
from circulant.run.outcomes import outcome
from circulant.run.preparation import baseline, inspected, require_design, require_one_size
from circulant.run.quantization import Golden, float_model, golden
from circulant.run.run_folder import CHECKPOINT, STEPS, Run, StepRecord, record, require, sha256
from circulant.run.sizing import budget, clock, family, levels, options
from circulant.run.untrained import path_costs
from circulant.sim.chips import FOLDER, hash_of
from circulant.sim.error.ranges import analyse
from circulant.sim.exercise.choose import STEPS as DRAWN_STEPS
from circulant.sim.exercise.choose import exercise
from circulant.sim.figures import Figures
from circulant.sim.golden.network import Network
from circulant.sim.metrics import shown, words
from circulant.sim.quantize.quantize_like import quantize_like
from circulant.sim.refusal import Refusal
from circulant.sim.vectors import Vectors
from circulant.training.loop.display import PHASES

__all__ = ["blocks", "budget", "design_hash", "finished", "generate", "generate_c", "inspect", "network_of", "quantize",
           "simulate", "train", "vectors_of", "write_network"]

RANGED = 64
"""Sequences of the test split whose tensors are compared with their formats and with the mathematics."""
STAGES = {"build": "compiling Verilog", "simulate": "simulating"}


def inspect(run: Run, show: Show = silent) -> Any:
    """The `circulant.training.ConversionReport` of the experiment's network with its block sizes, untrained.

    Raises:
        Refusal: as `circulant.training.load_data`, `build` and `compress`.
    """
    with extras("circulant inspect", *TRAINING):
        from circulant import training
    return inspected(run.experiment, training.load_data(**run.experiment.tables()["data"], progress=show))


def finished(run: Run) -> StepRecord | None:
    """The record of a training that ended, with this very experiment; None where one is missing or under way.

    Raises:
        Refusal: when it ended with another experiment, as `circulant.run.run_folder.recorded`.
    """
    if (run.path(CHECKPOINT) / "training.pt").exists() or not run.path(STEPS["train"].record).exists():
        return None
    return require(run, "train")


def train(run: Run, show: Show = silent, *, resume: bool | None = False, exports: bool = False) -> StepRecord:
    """Dense baseline, and the block-circulant model by the experiment's method: ``model.pt`` and ``training.json``.

    Under `torchrun` every process calls it, and the first one alone writes and returns the record.

    Parameters:
        resume: whether to go on from the checkpoint, or else to take what a finished training left; None goes on where
            there is one of this very training.
        exports: whether the steps that follow are to be possible: the golden model has a layer for everything, and a
            design of these multipliers fits the device.

    Raises:
        Refusal: before any work starts as `inspect`, and where the run ``exports`` when a part of the network has no
            golden layer, and as `require_design`; as `circulant.training.loop.train`.
        KeyboardInterrupt: saying how to go on.
    """
    with extras("circulant train", *TRAINING):
        from circulant import training

    if resume and (ended := finished(run)) is not None:
        return ended if leads() else {}
    if exports:
        levels(run.experiment)
    if leads():
        run.require_writable()
    start, worked, tables = time.perf_counter(), time.process_time(), run.experiment.tables()
    kept = run.path(CHECKPOINT)
    curves = training.Curves(run.path("tensorboard")) if tables["training"]["tensorboard"] and leads() else None

    def progress(phase: str, epoch: int, epochs: int, metrics: Mapping[str, Any]) -> None:
        known = f", {words(metric)} {shown(metric, metrics[metric])}" if metric in metrics else ""
        show(PHASES[phase], epoch, epochs, f"loss {metrics['loss']:.4f}{known}")
        save(run.experiment, kept)
        if curves is not None:
            curves(phase, epoch, epochs, metrics)

    base = tables["training"].pop("dense")
    dense = baseline(run.experiment, Path(base)) if base else None
    data = training.load_data(**tables["data"], progress=show if leads() else None)
    metric = training.task_of(data).metric
    parts = inspected(run.experiment, data)
    if exports:
        require_one_size(run.experiment, data)
        parts.require_exportable()
    parts.require()
    if exports and leads():
        require_design(run.experiment, data)
    try:
        trained = training.train(data, training.TrainingSettings(**tables["training"]),
                                 model=training.ModelSettings(**tables["model"]),
                                 block_size=run.experiment.compression.block_size, progress=progress,
                                 checkpoint=kept / "training.pt", resume=resume, dense=dense,
                                 costs=path_costs(run.experiment))
    except KeyboardInterrupt:
        if not (kept / "training.pt").exists():
            raise
        raise KeyboardInterrupt(f"Interrupted; {kept} keeps the training up to its last checkpoint: go on with "
                                f"{run.command('train', '--resume')}") from None
    finally:
        if curves is not None:
            curves.close()
    if not leads():
        return {}
    training.save_trained(run.path("model.pt"), trained)
    hashes = {"model": sha256(run.path("model.pt"))}
    if run.experiment.model.kind == "python" and parts.exportable:
        hashes |= keep_float(run, training.reference(trained.model, data.train_x[:RANGED], name=run.experiment.name))
    if run.experiment.data.name == "python":
        hashes |= keep_data(run, data)
    seconds, processor = trained.earlier
    done = record(run, "train", {
        "hashes": hashes, "metric": trained.metric, trained.metric: trained.scores,
        "matrices": blocks(trained.model), "history": trained.history,
        **({"block_size": trained.table} if tables["training"]["method"] == "search" else {}),
        "seconds": seconds + time.perf_counter() - start, "processor_seconds": processor + time.process_time() - worked,
        "machine": training.machine(tables["training"]["device"]),
    })
    shutil.rmtree(kept, ignore_errors=True)
    if trained.notes:  # At once, as of the reports of a task the last one stays.
        show("training", 1, 1, ". ".join(trained.notes))
    return done


def quantize(run: Run, show: Show = silent, *, like: str | Path | None = None, executes: bool = False
             ) -> StepRecord:
    """Integers: ``network.json``, ``weights.npz``, ``vectors.npz`` of the whole test split, ``quantization.json``.

    A search for bit widths keeps its measurements in the folder ``evaluations``, and resumes from them.

    Parameters:
        like: folder of a network whose formats are taken, so that both fit one circuit; [quantization] does not count.
        executes: whether the Python file of a network may be run, which fine-tuning asks for.

    Raises:
        Refusal: as `circulant.run.kept.model_of` and `circulant.run.quantization.golden`.
    """
    with extras("circulant quantize", *TRAINING):
        from circulant import training
    trained = require(run, "train")
    run.require_writable()
    if sha256(run.path("model.pt")) != trained["hashes"]["model"]:
        raise Refusal(f"{run.path('model.pt')} must be the file of training.json beside it, but it was changed or "
                      f"damaged; run {run.command('train')} again")
    start, tables = time.perf_counter(), run.experiment.tables()
    del tables["training"]["dense"]  # A folder, and no setting of a training.
    data = data_of(run, trained, show)
    model = model_of(run, trained, executes)
    if like is None:
        made = golden(model, data, tables["quantization"], name=run.experiment.name,
                      settings=training.TrainingSettings(**tables["training"]), folder=run.path("evaluations"),
                      show=show)
    else:
        exact = float_model(model, data, run.experiment.name)
        made = Golden(quantize_like(exact, Network.load(like)), exact)
    return write_network(run, made.network, made.model, data, {
        "like": None if like is None else Network.load(like).hash, "picking": made.picking,
        "finetuning": made.finetuning, "never": made.never}, start=start, show=show)


def write_network(run: Run, network: Network, exact: Any, data: Any, found: StepRecord, *,
                  start: float | None = None, show: Show = silent) -> StepRecord:
    """Write a network, its vectors of the whole test split, and the record of the quantization.

    Parameters:
        exact: the network in float64.
        found: what the record says besides.
        start: when the quantization began, by `time.perf_counter`.
    """
    from circulant import training

    began = time.perf_counter() if start is None else start
    show("golden model", 0, 0)
    vectors = network.vectors(data.test_x, lengths=data.test_lengths)
    network.save(run.folder)
    task, quantized = training.task_of(data), training.score(network, vectors, data)
    show("ranges", 0, 0)
    few = None if data.test_lengths is None else data.test_lengths[:RANGED]
    ranges = [each.as_json() for each in analyse(network, data.test_x[:RANGED], exact, lengths=few)]
    return record(run, "quantize", {
        "hashes": {"network": network.hash, "vectors": vectors.save(run.path("vectors.npz"))},
        "metric": task.metric, task.metric: {"quantized": quantized}, "ranges": ranges,
        "outcome": outcome(vectors, data, network.output_format), **found,
        "seconds": time.perf_counter() - began,
    })


def generate(run: Run, show: Show = silent) -> StepRecord:
    """Verilog with its integration kit: the folder ``hardware`` and ``generation.json``; for several chips the folder
    ``chips`` in its place.

    Raises:
        Refusal: when the design exceeds the device of the board; as `divide`.
    """
    with extras("circulant generate"):
        from circulant.hw import generate as design_of
    quantized = require(run, "quantize")
    run.require_writable()
    network, (_, vectors) = network_of(run, quantized), played_of(run, quantized)
    start = time.perf_counter()
    show("Verilog", 0, 0)
    if (chips := run.experiment.hardware.several) is not None:
        made = divide(network, chips, levels=levels(run.experiment), mhz=run.experiment.hardware.clock_mhz or None,
                      family=family(run.experiment))
        made.write(run.path(FOLDER))
        return record(run, "generate", {
            "hashes": {"network": network.hash, "design": design_hash(run)},
            "hardware": {**Figures.of(made.manifest).as_json(), "layers": made.manifest["layers"]},
            "seconds": time.perf_counter() - start})
    design = design_of(network, **options(run.experiment, network))
    fit_of(run.experiment.board.device, design.manifest["resources"])
    design.write(run.path("hardware"))
    if not network.many:  # The kit is of two streams.
        write_kit(run.path("hardware"), vectors, clock_mhz=clock(run.experiment) or CLOCK_MHZ)
    return record(run, "generate", {
        "hashes": {"network": network.hash, "design": design_hash(run)},
        "hardware": {**design.figures.as_json(), **{name: design.manifest[name] for name in (
            "resources", "layers", "objective", "alternatives", "dsp_packing", "dsp_blocks")
            if name in design.manifest}},
        "seconds": time.perf_counter() - start,
    })


def generate_c(run: Run, show: Show = silent) -> StepRecord:
    """C99 with a self-test of the test vectors: the folder ``c`` and ``generation-c.json``.

    Raises:
        Refusal: when the C target does not know a layer, or an integer could leave 63 bits.
    """
    from circulant.hw.c import generate_c as c_of

    quantized = require(run, "quantize")
    run.require_writable()
    network, vectors = played_of(run, quantized)
    start = time.perf_counter()
    show("C", 0, 0)
    design = c_of(network, vectors)
    design.write(run.path("c"))
    return record(run, "generate --target c", {
        "hashes": {"network": quantized["hashes"]["network"]},
        "c": {"table_bytes": design.table_bytes, "files": sorted(design.files)},
        "seconds": time.perf_counter() - start,
    })


def simulate(run: Run, show: Show = silent, *, trace: bool = False) -> StepRecord:
    """The Verilog under Verilator against the golden model: ``verification.json``, also when it finds a mismatch.

    As many of the test samples as ``simulation.samples`` says; 0 for all. Where the folder has chips, they and their
    links are played, too, with links that are slow and lose words.

    Parameters:
        trace: on a mismatch, find the first value inside that differs, and write all signals to ``divergence.fst``.
    """
    with extras("circulant simulate"):
        from circulant.sim.cosim import verify
        from circulant.sim.cosim.diverge import diverging
    quantized, generated = require(run, "quantize"), require(run, "generate")
    run.require_writable()
    network, vectors = played_of(run, quantized)
    hashes = {"design": design_hash(run, generated), "vectors": quantized["hashes"]["vectors"]}
    vectors = vectors.first(run.experiment.simulation.samples)

    def progress(stage: str, done: int, total: int) -> None:
        show(STAGES[stage], done, 0 if stage == "build" and not done else total)

    start = time.perf_counter()
    settings = run.experiment
    count = min(settings.simulation.drawn, len(vectors))
    show("drawing samples", 0, 0)
    drawn = exercise(network, count, steps=_drawn_steps(settings, vectors)) if count else None
    verification = verify(run.design, vectors, drawn=None if drawn is None else drawn.vectors,
                          progress=progress)
    coverage = {} if drawn is None else {"coverage": drawn.coverage.as_json()}
    first = {}
    if trace and verification.first is not None:
        show("tracing the first difference", 0, 0)
        found = diverging(run.design, network, vectors, verification.first,
                          drawn=None if drawn is None else drawn.vectors, into=run.folder)
        first = {"divergence": None if found is None else found.as_json() | {"text": str(found)}}
    body = asdict(verification) | coverage | first
    if run.path(FOLDER).exists():
        plain = network_of(run, quantized)
        chips = check(run.path(FOLDER), plain, vectors_of(run, quantized).first(settings.simulation.samples),
                      drawn.vectors if drawn is not None and plain.hash == network.hash else None, progress,
                      planned=not settings.hardware.chips)
        hashes["chips"] = hash_of(run.path(FOLDER))
        body |= {"chips": chips, "first": body["first"] or chips["first"],
                 **{name: body[name] + chips[name] for name in ("words_compared", "mismatches")}}
    return record(run, "simulate", {"hashes": hashes, "verification": body, "seconds": time.perf_counter() - start})


def _drawn_steps(settings: Experiment, vectors: Vectors) -> int:
    """Steps of a drawn sequence: no more than those of the test, or that the circuit takes."""
    return min(DRAWN_STEPS, int(vectors.steps.max()), settings.hardware.max_steps)


def blocks(model: Any) -> dict[str, dict[str, int]]:
    """Sizes of matrices by name; the gates of a cell, and the positions of a kernel, are ``groups`` of matrices."""
    from circulant.training.blocks.constraint import block_sizes, matrices

    sizes = block_sizes(model)
    return {name: {"groups": matrix.groups * math.prod(matrix.kernel), "rows": matrix.rows, "columns": matrix.columns,
                   "block_size": sizes[name]} for name, matrix in matrices(model).items()}
