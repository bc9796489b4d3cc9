"""The file of a finished training: one ``.pt`` with name, version and hash, read without running any of its code."""
import dataclasses
import io
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from circulant.sim import artifact
from circulant.sim.refusal import Refusal
from circulant.training.constraint import compress
from circulant.training.models import ModelSettings, build
from circulant.training.train import Trained, TrainingSettings

__all__ = ["load_trained", "save_trained"]

FORMAT = "circulant-trained"
VERSION = 2
SCALARS = ("data", "inputs", "classes", "history", "metric", "higher_is_better", "scores")


def save_trained(path: str | Path, trained: Trained) -> str:
    """Write a training to ``path`` under a temporary name and rename it; returns the hash of its contents."""
    meta = {name: getattr(trained, name) for name in SCALARS}
    meta["model"] = dataclasses.asdict(trained.model_settings)
    meta["settings"] = dataclasses.asdict(trained.settings)
    meta["block_sizes"] = trained.block_sizes
    states = {"dense": _plain(trained.dense), "circulant": _plain(trained.model.state_dict())}
    sha = _digest(meta, states)
    buffer = io.BytesIO()
    torch.save({"format": FORMAT, "version": VERSION, "hash": sha, "meta": meta, **states}, buffer)
    artifact.atomic_bytes(path, buffer.getvalue())
    return sha


def load_trained(path: str | Path) -> Trained:
    """The training that `save_trained` wrote.

    Raises:
        Refusal: when the file is missing, is no such file, or its name, version or hash is wrong.
    """
    path = Path(path)
    try:
        document = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise Refusal(f"{path} must exist, but it is missing; run the training first") from None
    except Exception as error:  # a damaged pickle may raise anything
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise Refusal(f"{path} must be a file of a training, but it cannot be read ({reason}); train again") from None
    fields: dict[str, Any] = document if isinstance(document, dict) else {}
    for field, rule in (("format", FORMAT), ("version", VERSION)):
        if fields.get(field) != rule:
            raise Refusal(f"{path}: field {field!r} must be {rule!r}, not {fields.get(field)!r}; "
                          "train again with this version of circulant")
    meta: Any = fields.get("meta")
    states: dict[str, Any] = {part: fields.get(part) for part in ("dense", "circulant")}
    try:
        computed = _digest(meta, states)
    except (AttributeError, TypeError, RuntimeError):
        raise Refusal(f"{path} must hold the fields 'meta', 'dense' and 'circulant' as written, but one is missing or "
                      "damaged; train again") from None
    if fields.get("hash") != computed:
        raise Refusal(f"{path}: field 'hash' must be that of the contents ({computed[:12]}…), not "
                      f"{str(fields.get('hash'))[:12]!r}; the file was changed or damaged: train again")
    settings = ModelSettings(**meta["model"])
    model = compress(build(settings, meta["inputs"], meta["classes"]), meta["block_sizes"])
    model.load_state_dict(states["circulant"])
    return Trained(model_settings=settings, settings=TrainingSettings(**{"start": "random"} | meta["settings"]),
                   dense=states["dense"], model=model, **{name: meta[name] for name in SCALARS})


def _plain(state: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.detach().cpu().clone() for name, value in state.items()}


def _digest(meta: Any, states: dict[str, Any]) -> str:
    arrays = {f"{part}.{name}": value.numpy() for part, state in states.items() for name, value in state.items()}
    return artifact.digest({"meta": meta, "arrays": artifact.digest_arrays(arrays)})
