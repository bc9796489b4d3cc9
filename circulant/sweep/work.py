"""The work of a process: train the model of a point, and evaluate the points that share a golden network.

Everything is looked up in the store first. Nothing is raised but interruptions: what fails is a result with a reason.
"""
import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from circulant.boards.device import device, fits
from circulant.exits import code_of
from circulant.experiment import Experiment
from circulant.extras import TRAINING, extras
from circulant.run.preparation import baseline, inspected, require_one_size
from circulant.run.quantization import calibration, golden, widths
from circulant.run.run_folder import sha256
from circulant.run.sizing import options as hardware_options
from circulant.run.untrained import path_costs
from circulant.sim import artifact
from circulant.sim.cosim import SimulationError
from circulant.sim.files import temporaries
from circulant.sim.files.schema import SHA, Flag, Mapped, Number, Table, Text
from circulant.sim.golden.network import Network
from circulant.sim.metrics import shown, words
from circulant.sim.quantize.bitwidth_cost import dense_count, weight_bits, weight_count
from circulant.sim.refusal import Refusal, ToolError
from circulant.sweep import store
from circulant.sweep.point import Point
from circulant.sweep.rows import Failure, Row, Trained

__all__ = ["OVER", "epochs", "evaluate", "failure", "keyed", "reason", "train"]

Note = Callable[[int, str], None]
"""Called with the epochs that a training has done, and a remark."""

OVER = "the time was over"
"""The beginning of the reason of a training that was not begun, or not ended, by its deadline, and of such a point."""

KIND, VERSION = "circulant-sweep-training", 1

_KEPT = Table({"model": SHA, "metric": Text(100), "higher_is_better": Flag(), "scores": Mapped(Number())},
              {"key": SHA}, open=True)

FEW = 64
"""Samples on which the reference is compared with torch; it does not depend on them."""


def reason(error: Exception) -> str:
    """The reason of a failure, in one line; errors that are not written for users have their type in front."""
    text, told = "; ".join(str(error).splitlines()), isinstance(error, Refusal | SimulationError | ToolError)
    return text if told else f"{type(error).__name__}: {text}".removesuffix(": ")


def failure(error: Exception) -> Failure:
    """The row of a point that failed."""
    return {"reason": reason(error), "code": code_of(error)}


def epochs(point: Point, *, dense: bool = False) -> int:
    """The greatest number of epochs of its training, without the dense baseline or of the baseline alone."""
    settings = point.experiment.training
    if dense:
        return settings.dense_epochs
    if settings.method == "direct":
        return settings.direct_epochs
    searched = settings.search_epochs if settings.method == "search" else 0
    return searched + settings.admm_epochs + settings.retrain_epochs


def train(point: Point, dense: Trained | None = None, note: Note = lambda done, words: None, *,
          until: float = math.inf) -> Trained:
    """The training of a point: ``folder``, ``model`` (the hash of the file in it), metric and scores, and the table of
    block sizes that a search ended in.

    One that was interrupted goes on from its checkpoint.

    Parameters:
        dense: the training of its baseline; None trains all phases. The outcome is the same.
        until: seconds, by `time.time`, after which it is not begun, and ends with the epoch that it is in; what it did
            is kept for the next time.
    """
    if dense is not None and "reason" in dense:
        return dense
    try:
        return _train(point, dense, note, until)
    except Exception as error:
        return Trained(**failure(error))


def _train(point: Point, dense: Trained | None, note: Note, until: float) -> Trained:
    with extras("circulant sweep", *TRAINING):
        from circulant import training

    tables = point.training
    data = _data(json.dumps(tables["data"]))
    folder = store.training_folder(point.experiment.identity(tables), data.digest())
    if (kept := _kept(folder)) is not None:
        return kept
    if time.time() > until:
        raise Refusal(OVER)
    start, done, metric = time.perf_counter(), 0, training.task_of(data).metric

    def progress(phase: str, epoch: int, total: int, metrics: Mapping[str, Any]) -> None:
        nonlocal done
        done += 1
        known = f", {words(metric)} {shown(metric, metrics[metric])}" if metric in metrics else ""
        note(done, f"{phase} {epoch} of {total}{known}")
        if time.time() > until:
            raise Refusal(f"{OVER} in epoch {epoch} of {total} of phase {phase!r}, from which the same command goes on")

    require_one_size(point.experiment, data)
    inspected(point.experiment, data).require_exportable()
    named, state = tables["training"]["dense"], None
    if dense is not None and epochs(point, dense=True):
        state = training.load_trained(dense["folder"] / "model.pt", model=point.experiment.model).dense
    elif named:
        state = baseline(point.experiment, Path(named))
    trained = training.train(data, _settings(tables), model=training.ModelSettings(**tables["model"]),
                             block_size=tables["compression"]["block_size"], progress=progress,
                             checkpoint=folder / "checkpoint.pt", resume=None, dense=state,
                             costs=path_costs(point.experiment))
    training.save_trained(folder / "model.pt", trained)
    artifact.write_json(folder / "training.json", KIND, VERSION, {
        "key": folder.name, "model": sha256(folder / "model.pt"), "metric": trained.metric,
        "higher_is_better": trained.higher_is_better, "scores": trained.scores, "tables": tables,
        "seconds": time.perf_counter() - start,
        "block_size": trained.table if tables["training"]["method"] == "search" else None})
    (folder / "checkpoint.pt").unlink(missing_ok=True)
    return _read(folder)


def _settings(tables: Mapping[str, Any]) -> Any:
    from circulant.training import TrainingSettings

    return TrainingSettings(**{key: value for key, value in tables["training"].items() if key != "dense"})


def _kept(folder: Path) -> Trained | None:
    """The training that is finished in ``folder``; None where there is none, or its files are damaged or those of
    another folder."""
    try:
        found = _read(folder)
        return found if sha256(folder / "model.pt") == found["model"] else None
    except (Refusal, FileNotFoundError):
        return None


def _read(folder: Path) -> Trained:
    found = artifact.read_json(folder / "training.json", KIND, VERSION, _KEPT)
    if found.get("key", folder.name) != folder.name:  # Files from before they said their key stay good.
        raise Refusal(f"{folder} must keep the training of its name, but has that of {found['key'][:12]}…; remove it")
    return Trained(folder=folder, block_size=found.get("block_size"), model=found["model"], metric=found["metric"],
                   higher_is_better=found["higher_is_better"], scores=found["scores"])


def evaluate(points: Sequence[Point], trained: Trained, measure: str, *, until: float = math.inf) -> list[Row]:
    """The figures of points that share a training and a golden network, and differ in their hardware.

    Parameters:
        trained: may have failed; then so do the points.
        until: seconds, by `time.time`, after which only what is kept is given.
    """
    if "reason" in trained:
        return [Row(**cast(Failure, trained))] * len(points)
    golden: tuple[Network, Any, float] | None = None
    found: list[Row] = []
    for point in points:
        try:
            key = keyed(point, trained, measure)
            kept = store.figures(key)
            if kept is None:
                if time.time() > until:
                    raise Refusal(OVER)
                golden = golden or _golden(point, trained)
                kept = _figures(point.experiment, *golden, measure)
                if "reason" not in kept:
                    store.keep(key, kept)
            found.append(kept)
        except Exception as error:
            found.append(Row(**failure(error)))
    return found


def keyed(point: Point, trained: Trained, measure: str) -> str:
    """The key under which the figures of a point are kept."""
    simulated = ("simulation",) if measure == "simulate" else ()
    tables = point.experiment.tables(("quantization", "hardware", "board", *simulated))
    name = tables["hardware"]["library"]
    if name != "none":
        from circulant.sweep.cells import method

        return store.point_key(trained["model"], tables, f"{measure} {method(name)}")
    return store.point_key(trained["model"], tables, measure)


def _figures(experiment: Experiment, network: Network, vectors: Any, score: float, measure: str) -> Row:
    """The figures of a network for which there may be no hardware."""
    found = Row(quantized=score, weights=weight_count(network), dense_weights=dense_count(network),
                weight_memory_bits=weight_bits(network))
    try:
        return found | _hardware(experiment, network, vectors, measure)
    except Exception as error:
        return found | Row(**failure(error))


@lru_cache(maxsize=2)
def _data(table: str) -> Any:
    from circulant import training

    return training.load_data(**json.loads(table))


def _model(folder: Path, table: Mapping[str, Any]) -> Any:
    from circulant import training

    return training.load_trained(folder / "model.pt", model=training.ModelSettings(**table)).model


@lru_cache(maxsize=2)
def _calibrated(folder: Path, table: str, model: str, name: str, samples: int) -> tuple[Any, Any]:
    """The reference of a trained model, and what its widths have to hold; ``table`` and ``model`` are those of the
    experiment as JSON."""
    from circulant import training
    from circulant.sim.quantize.quantize import calibrate

    data = _data(table)
    reference = training.reference(_model(folder, json.loads(model)), data.train_x[:FEW], name=name)
    return reference, calibrate(reference, *calibration(data, samples))


def _golden(point: Point, trained: Trained) -> tuple[Network, Any, float]:
    """The golden network, its vectors of the whole test split, and their score."""
    with extras("circulant sweep", *TRAINING):
        from circulant import training
        from circulant.sim.quantize.quantize import quantize

    table, bits = json.dumps(point.training["data"]), point.experiment.tables(("quantization",))["quantization"]
    data = _data(table)
    if bits["budget"] or bits["finetune_epochs"] or bits["joint_epochs"]:
        network = golden(_model(trained["folder"], point.training["model"]), data, bits,
                         name=point.experiment.name, settings=_settings(point.training)).network
    else:
        network = quantize(*_calibrated(trained["folder"], table, json.dumps(point.training["model"]),
                                        point.experiment.name, bits["calibration"]), **widths(bits).as_dict())
    vectors = network.vectors(data.test_x, lengths=data.test_lengths)
    return network, vectors, training.score(network, vectors, data)


def _hardware(experiment: Experiment, network: Network, vectors: Any, measure: str) -> Row:
    with extras("circulant sweep"):
        from circulant.hw import generate
        from circulant.hw.emit.inventory import Inventory
        from circulant.hw.foreseen import foreseen
        from circulant.hw.plan.families import FAMILIES
        from circulant.hw.plan_cache import plans_of
        from circulant.hw.resources import figures, parts

    options = hardware_options(experiment, network)
    library = experiment.hardware.library
    design = None if measure == "plan" and library == "none" else generate(network, **options)
    if options["argmax"]:
        network = network.with_argmax()
        vectors = vectors and network.chosen(vectors)
    plans = design.plans if design else plans_of(
        network, packing=options["dsp_packing"], **{name: options[name] for name in (
            "multipliers", "streams", "levels", "objective", "reloadable", "protection", "beat_blocks",
            "latency", "max_steps")})
    made = design.figures if design else figures(
        network, plans, max_steps=options["max_steps"], reloadable=options["reloadable"])
    found = Row(multipliers=made.multipliers, cycles_per_step=made.cycles, multiplications=made.multiplications,
                floor_cycles=made.floor)
    if made.latency_spaced is not None:
        found["latency_spaced"] = made.latency_spaced
    if made.latency_contiguous is not None:
        found["latency_contiguous"] = made.latency_contiguous
    if design or not options["reloadable"]:  # Its own memories are not predicted.
        found["memory_bits"] = made.memory_bits
    if experiment.board.device != "none":
        part = device(experiment.board.device)
        inventory = Inventory.from_json(design.manifest["resources"]) if design else foreseen(
            parts(network, plans, max_steps=options["max_steps"], reloadable=options["reloadable"]),
            len(network.stages), levels=options["levels"], profile=options["family"])
        taken = {name: its.used for name, its in fits(part, inventory).taken.items()}
        found |= cast(Row, taken)
        found["mhz"] = FAMILIES[part.family].mhz(options["levels"], network.multiplier)
    if measure == "simulate":
        found["cycles_per_step"] = _simulated(
            design, vectors.first(experiment.simulation.samples))
    if design and library != "none":
        from circulant.sweep import cells

        found |= cells.figures(design, vectors, library)
    return found


def _simulated(design: Any, vectors: Any) -> float:
    with extras("circulant sweep"):
        from circulant.sim.cosim import verify

    with temporaries.folder() as folder:
        try:
            check = verify(design.write(folder / "design"), vectors)
        except ToolError as error:  # The folder goes, and its name would make each failure another one.
            raise ToolError(str(error).replace(f"{folder}/", "")) from None
    if check.mismatches:
        raise SimulationError(f"{check.mismatches} of {check.words_compared} words differ from the golden model")
    return check.cycles_per_step
