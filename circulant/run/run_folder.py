"""A run folder: what each step left in it, and whether that still belongs together.

Each step ends by writing a record: a JSON file with the tables of the experiment that it obeyed, the hash of the
record of the step before, and its results. So a step can tell a missing, a damaged and a stale file apart, and names
the command that makes it anew.
"""
import json
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, cast

from circulant.experiment import FILE, Experiment, save
from circulant.run.record_rules import rule_of
from circulant.sim import artifact
from circulant.sim.chips import FOLDER, SYSTEM
from circulant.sim.files import files
from circulant.sim.files.schema import require as check
from circulant.sim.refusal import Refusal

__all__ = ["BRANCHES", "CHECKPOINT", "STEPS", "Picking", "Run", "Step", "StepRecord", "record", "recorded",
           "require", "scores", "sha256"]

VERSION = 1

HARDWARE = "hardware"
"""Folder in a run folder: the design for one chip."""

CHECKPOINT = "checkpoint"
"""Folder in a run folder: an unfinished training, and its experiment, which may differ from the one beside it."""


class Step(NamedTuple):
    """The settings that a step obeys and the files that it leaves.

    Members:
        name: of the command.
        tables: of the experiment that this step is the first to read.
        files: in the run folder, needed by later steps.
        record: written last.
        after: the step whose files this one starts from.
    """

    name: str
    tables: tuple[str, ...]
    files: tuple[str, ...]
    record: str
    after: str | None


STEPS = {step.name: step for step in (
    Step("train", ("data", "model", "compression", "training"), ("model.pt",), "training.json", None),
    Step("quantize", ("quantization",), ("network.json", "weights.npz", "vectors.npz"), "quantization.json", "train"),
    Step("generate", ("hardware", "board"), ("hardware/manifest.json",), "generation.json", "quantize"),
    Step("simulate", ("simulation",), (), "verification.json", "generate"),
)}
"""The steps of a run in their order."""

BRANCHES = {step.name: step for step in (
    Step("generate --target c", (), ("c/manifest.json",), "generation-c.json", "quantize"),
    Step("reload", (), ("reload.bin",), "reload.json", "generate"),
)}
"""Steps that a run can do without, and that no other one follows."""

_ALL = STEPS | BRANCHES


@dataclass(frozen=True)
class Run:
    """An experiment and the folder that its files are in.

    Parameters:
        source: what a command line calls the experiment; empty where it is that of the folder, or the default one.
    """

    folder: Path
    experiment: Experiment
    source: str = ""

    def path(self, name: str) -> Path:
        return self.folder / name

    @property
    def design(self) -> Path:
        """The folder of the design: that of one chip, or that of all chips and their links."""
        return self.path(f"{FOLDER}/{SYSTEM}" if self.experiment.hardware.chips else HARDWARE)

    def one_chip(self) -> Path:
        """The folder of the design for one chip.

        Raises:
            Refusal: when the run is for several.
        """
        if self.experiment.hardware.chips:
            raise Refusal(f"The design must be for one chip here, but hardware.chips of {self.folder} names several, "
                          f"whose designs are the folders in {self.path(FOLDER)}; take one of these by hand, or leave "
                          "hardware.chips out")
        return self.path(HARDWARE)

    def require_writable(self) -> None:
        """Check that the folder can be made and written to, before a long step, by doing it; nothing stays of it.

        Raises:
            Refusal: when it cannot.
        """
        made: list[Path] = []
        try:
            for path in (*reversed(self.folder.absolute().parents), self.folder.absolute()):
                if not path.is_dir():
                    path.mkdir()
                    made.append(path)
            with tempfile.TemporaryFile(dir=self.folder):
                pass
        except (OSError, ValueError) as error:  # ValueError: a null character in the name
            why = error.strerror if isinstance(error, OSError) else error
            raise Refusal(f"{self.folder} must be a folder that can be written to, but it cannot be ({why}); choose "
                          "another --out") from None
        finally:
            for path in reversed(made):
                with suppress(OSError):
                    path.rmdir()

    def command(self, step: str, *options: str) -> str:
        """The command line of a step on this folder."""
        where = [str(self.folder)] if self.path(FILE).exists() else [
            *([self.source] if self.source else []), f"--out {self.folder}"]
        name, *more = step.split()
        return "`" + " ".join(("circulant", name, *where, *more, *options)) + "`"


class Picking(TypedDict, total=False):
    """The outcome of a search for bit widths, as the record of a quantization has it."""

    pick_on: str
    pick_by: str
    margin: float
    search: str
    budget: float
    lost_start: float
    lost: float
    cost: float
    evaluations: int
    cached: int
    score_start: float
    score: float
    weight_bits_start: int
    weight_bits: int
    widths: list[Mapping[str, Any]]


class StepRecord(TypedDict, total=False):
    """The record of a step: what all have, what those of training and quantization, of a design and of its verification
    say besides; the scores stand under the name of the metric, see `scores`."""

    format: str
    version: int
    hash: str
    experiment: dict[str, dict[str, Any]]
    after: str | None
    hashes: dict[str, str]
    seconds: float
    metric: str
    matrices: dict[str, dict[str, int]]
    history: list[Mapping[str, Any]]
    block_size: int | dict[str, int] | None
    processor_seconds: float
    machine: Mapping[str, Any]
    ranges: list[Mapping[str, Any]]
    outcome: Mapping[str, Any]
    like: str | None
    picking: Picking
    finetuning: Mapping[str, Any]
    never: list[str]
    hardware: Mapping[str, Any]
    c: Mapping[str, Any]
    verification: Mapping[str, Any]


def scores(record: StepRecord) -> dict[str, float]:
    """The scores that a step has measured, by stage."""
    return dict(cast("Mapping[str, Any]", record)[record["metric"]])


def record(run: Run, step: str, results: Mapping[str, Any]) -> StepRecord:
    """Write the record of a step that has written its files, and the experiment as it is now; returns the record."""
    save(run.experiment, run.folder)
    before = _ALL[step].after
    after = recorded(run, before)["hash"] if before else None
    body = {"experiment": run.experiment.identity(_ALL[step].tables), "after": after, **results}
    sha = artifact.write_json(run.path(_ALL[step].record), _kind(step), VERSION, body)
    return cast(StepRecord, {**body, "hash": sha})


def recorded(run: Run, step: str) -> StepRecord:
    """The record of a step that must be finished and fit the experiment and the steps before it.

    Raises:
        Refusal: a record is missing or damaged, the experiment differs from what a step obeyed, or a step was done anew
            since; each with the command to run.
    """
    before = _ALL[step].after
    after = recorded(run, before)["hash"] if before else None
    if not run.path(_ALL[step].record).exists():
        for name in (*_ALL[step].files, _ALL[step].record):
            _exists(run, step, _placed(run, name))
    found = artifact.read_json(run.path(_ALL[step].record), _kind(step), VERSION)
    check(rule_of(step, found), found, run.path(_ALL[step].record), f"run {run.command(step)} again")
    _check_tables(run, step, found["experiment"])
    if before and found["after"] != after:
        raise Refusal(f"{run.path(_ALL[step].record)} must follow {_ALL[before].record} beside it, but that is newer; "
                      f"run {run.command(step)} again")
    return cast(StepRecord, found)


def require(run: Run, step: str) -> StepRecord:
    """The record of a step whose files are needed now.

    Raises:
        Refusal: as `recorded`, and when a file of the step is missing.
    """
    found = recorded(run, step)
    for name in _ALL[step].files:
        _exists(run, step, _placed(run, name))
    return found


def sha256(path: Path) -> str:
    """SHA-256 of a file's bytes.

    Raises:
        Refusal: when it is no regular file that can be read.
    """
    try:
        return files.sha256(path)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise Refusal(f"{path} must be a file, but it cannot be read ({files.reason(error)}); remove it") from None


def _placed(run: Run, name: str) -> str:
    """The name of a file, that of a design's folder where that lies."""
    where, _, file = name.rpartition("/")
    return str(run.design.relative_to(run.folder) / file) if where == HARDWARE else name


def _exists(run: Run, step: str, name: str) -> None:
    if not run.path(name).exists():
        raise Refusal(f"{run.path(name)} is missing; run {run.command(step)} first")


def _check_tables(run: Run, step: str, obeyed: Mapping[str, Mapping[str, Any]]) -> None:
    names = _ALL[step].tables
    now, default = (json.loads(json.dumps(each.identity(names)))  # Lists, where a table has tuples.
                    for each in (run.experiment, Experiment()))
    for table, keys in now.items():
        for key, value in keys.items():
            was = obeyed.get(table, {}).get(key, default[table][key])  # What is younger than the record did nothing.
            if was != value and key == "path" and " of " in str(value):
                raise Refusal(f"{table}.path must name the very file with which `circulant {step}` made {run.folder}, "
                              f"of which there is a copy in it, not another one; to change it, run `circulant {step}` "
                              "with the experiment that names the new one first")
            if was != value:
                change = f"--set {table}.{key}={value}"
                raise Refusal(f"{table}.{key} must stay {was!r}, with which `circulant {step}` made {run.folder}, not "
                              f"{value!r}; to change it, run {run.command(step, change)} first")


def _kind(step: str) -> str:
    return f"circulant-{_ALL[step].record.removesuffix('.json')}"
