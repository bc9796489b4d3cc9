"""The file of an unfinished training: everything that its next epoch depends on, and which training it is of."""
import hashlib
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import torch
from torch import Tensor

from circulant.sim.files import files
from circulant.sim.files.schema import shown
from circulant.sim.files.writing import atomic_bytes
from circulant.sim.refusal import Refusal
from circulant.training import archive
from circulant.training.blocks.admm import AdmmState
from circulant.training.blocks.paths import PathsState
from circulant.training.loop.best import BestState
from circulant.training.loop.loop import FitState
from circulant.training.loop.metrics import Metrics
from circulant.training.settings.training import renamed

__all__ = ["FORMAT", "VERSION", "Checkpoint", "State"]

FORMAT = "circulant-checkpoint"
VERSION = 2

BEFORE = {"rate_scaling": "none", "loss": "auto", "early_stopping": 0, "self_guided": 0.0, "averaging": "none",
          "communication": "allreduce"}
"""Settings of trainings from before these could be chosen."""


class State(TypedDict):
    """The state of a training; a file from before a member was kept lacks it."""

    phase: int
    fit: FitState
    best: NotRequired[BestState | None]
    model: dict[str, Tensor]
    admm: AdmmState | None
    dense: dict[str, Tensor]
    scores: dict[str, float]
    guided: NotRequired[int]
    paths: NotRequired[PathsState | None]
    block_size: NotRequired[int | Mapping[str, int]]
    history: list[Metrics]
    spent: tuple[float, float]


class Checkpoint:
    """The last good state of one training, in a file that is whole or not at all.

    Parameters:
        about: plain values that say which training it is: data, model, settings, processes. A file that was made with
            others is refused.
    """

    def __init__(self, path: str | Path, about: Mapping[str, Any]) -> None:
        self.path = Path(path)
        self._about = _whole(json.loads(json.dumps(about)))

    def save(self, state: Mapping[str, object]) -> None:
        """Write a state: tensors, numbers, texts, and lists and dictionaries of them."""
        buffer, document = io.BytesIO(), io.BytesIO()
        torch.save(dict(state), buffer)
        body = buffer.getvalue()
        torch.save({"format": FORMAT, "version": VERSION, "hash": hashlib.sha256(body).hexdigest(),
                    "about": json.dumps(self._about), "state": torch.frombuffer(bytearray(body), dtype=torch.uint8)},
                   document)
        atomic_bytes(self.path, document.getvalue())

    def load(self) -> State:
        """The state of the file.

        Raises:
            Refusal: when there is no file, it is damaged, or it is of another training.
        """
        about, state = self._read()
        if (found := next(_changes(about, self._about), None)) is not None:
            key, was, now = found
            raise Refusal(f"{self.path} must be a checkpoint of this training, but it was made with {key} = {was!r}, "
                          f"not {now!r}; go on with what it was made with, or train again")
        return state

    def fits(self) -> bool:
        """Whether there is a whole file of this very training."""
        try:
            self.load()
        except Refusal:
            return False
        return True

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)

    def _read(self) -> tuple[dict[str, Any], State]:
        try:
            document = archive.read(self.path)
            body = document["state"].numpy().tobytes()
            header = {field: document[field] for field in ("format", "version", "hash", "about")}
            about = json.loads(header["about"])
        except FileNotFoundError:
            raise Refusal(f"{self.path} must exist to go on from it, but it is missing; train again") from None
        except Exception as error:  # a damaged pickle may raise anything
            raise Refusal(f"{self.path} must be a checkpoint, but it cannot be read ({files.reason(error)}); train "
                          "again") from None
        for field, rule in (("format", FORMAT), ("version", VERSION), ("hash", hashlib.sha256(body).hexdigest())):
            if type(header[field]) is not type(rule) or header[field] != rule:
                raise Refusal(f"{self.path}: field {field!r} must be {rule!r}, not {shown(header[field])}; train again")
        try:
            state = torch.load(io.BytesIO(body), map_location="cpu", weights_only=True)
        except Exception as error:
            raise Refusal(f"{self.path} must hold the state of a training, but it cannot be read "
                          f"({files.reason(error)}); train again") from None
        return _whole(about), state


def _whole(about: dict[str, Any]) -> dict[str, Any]:
    """The settings of a training, with what was the only way before it could be chosen."""
    return about | {"training": renamed(BEFORE | about["training"])} if "training" in about else about


def _changes(was: Any, now: Any, path: str = "") -> Any:
    """Where two trees of plain values differ: (key, before, now)."""
    if isinstance(was, dict) and isinstance(now, dict):
        for key in dict.fromkeys((*was, *now)):
            yield from _changes(was.get(key), now.get(key), f"{path}.{key}" if path else key)
    elif was != now:
        yield path, was, now
