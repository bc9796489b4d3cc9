"""The file of a finished training: one ``.pt`` with name, version and hash, read without running any of its code."""
import dataclasses
import io
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from circulant.sim import artifact
from circulant.sim.files import files
from circulant.sim.files.schema import Anything, Flag, Int, Listing, Mapped, Number, Table, Text, require, shown
from circulant.sim.files.writing import atomic_bytes
from circulant.sim.refusal import Refusal
from circulant.training import archive
from circulant.training.blocks.constraint import compress
from circulant.training.loop.train import Trained
from circulant.training.models.models import build
from circulant.training.settings import ModelSettings, TrainingSettings
from circulant.training.settings.training import renamed

__all__ = ["load_trained", "save_state", "save_trained"]

FORMAT = "circulant-trained"
VERSION = 2
_SIZE = Int(1, 1 << 24)
_META = Table({"data": Text(1000), "inputs": Listing(_SIZE, 1, 3), "classes": _SIZE,
               "history": Listing(Mapped(Anything())), "metric": Text(100), "higher_is_better": Flag(),
               "scores": Mapped(Number()), "model": Mapped(Anything()), "settings": Mapped(Anything()),
               "block_sizes": Mapped(Int(1, 64))})

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
    torch.save(_canonical({"format": FORMAT, "version": VERSION, "hash": sha, "meta": meta, **states}), buffer)
    atomic_bytes(path, buffer.getvalue())
    return sha


def save_state(path: str | Path, model: nn.Module) -> None:
    """Write the state dict of a model, for `torch.load`.

    Raises:
        Refusal, ToolError: as `circulant.sim.files.writing.naming`.
    """
    buffer = io.BytesIO()
    torch.save(_canonical(_plain(model.state_dict())), buffer)
    atomic_bytes(path, buffer.getvalue())


def load_trained(path: str | Path, *, model: ModelSettings | None = None) -> Trained:
    """The training that `save_trained` wrote.

    Parameters:
        model: the settings of a model of ``kind = "python"``, whose file is then run; that which the training names is
            not.

    Raises:
        Refusal: when the model is in Python and no settings are given; when the file is missing, is no such file, or
            its name, version or hash is wrong.
    """
    path = Path(path)
    try:
        document = archive.read(path)
    except FileNotFoundError:
        raise Refusal(f"{path} must exist, but it is missing; run the training first") from None
    except Exception as error:  # a damaged pickle may raise anything
        raise Refusal(f"{path} must be a file of a training, but it cannot be read ({files.reason(error)}); train again"
                      ) from None
    fields = document if isinstance(document, dict) else {}
    for field, rule in (("format", FORMAT), ("version", VERSION)):
        if type(fields.get(field)) is not type(rule) or fields[field] != rule:
            raise Refusal(f"{path}: field {field!r} must be {rule!r}, not {shown(fields.get(field))}; "
                          "train again with this version of circulant")
    meta: Any = fields.get("meta")
    states: dict[str, Any] = {part: fields.get(part) for part in ("dense", "circulant")}
    try:
        computed = _digest(meta, states)
        plain = json.loads(json.dumps(meta))
    except (AttributeError, TypeError, ValueError, RuntimeError):
        raise Refusal(f"{path} must hold the fields 'meta', 'dense' and 'circulant' as written, but one is missing or "
                      "damaged; train again") from None
    if fields.get("hash") != computed:
        raise Refusal(f"{path}: field 'hash' must be that of the contents ({computed[:12]}…), not "
                      f"{str(fields.get('hash'))[:12]!r}; the file was changed or damaged: train again")
    require(_META, plain, path, "train again")
    try:
        settings, training = ModelSettings(**meta["model"]), TrainingSettings(**renamed(meta["settings"]))
        if settings.kind == "python":
            settings = _named(model)
        _check_shapes(settings, meta["inputs"], meta["classes"], states["dense"])
        network = compress(build(settings, meta["inputs"], meta["classes"]), meta["block_sizes"])
        network.load_state_dict(states["circulant"])
    except Refusal as refusal:
        raise Refusal(f"{path}: {refusal}") from None
    except (AttributeError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise Refusal(f"{path} must hold the weights of the model that it describes, but it does not "
                      f"({files.reason(error)}); train again") from None
    return Trained(model_settings=settings, settings=training, dense=states["dense"],
                   model=network, **{name: meta[name] for name in SCALARS})


def _named(model: ModelSettings | None) -> ModelSettings:
    if model is None or model.kind != "python":
        raise Refusal("its model is made by a Python file, which is not run because an archive says so; give "
                      "model= the settings that name it")
    return model


def _check_shapes(settings: ModelSettings, inputs: list[int], classes: int, dense: dict[str, Tensor]) -> None:
    """Check that the settings describe a model of the dense state's shapes, before it takes any memory.

    Raises:
        Refusal: when they do not.
    """
    if settings.kind == "python":  # It was run already, and takes the memory that it takes.
        return
    depth = max(settings.layers, len(settings.widths))
    if depth <= len(dense):  # Each layer has weights.
        with torch.device("meta"):
            described = build(settings, inputs, classes).state_dict()
        if {name: value.shape for name, value in described.items()} == {name: value.shape
                                                                        for name, value in dense.items()}:
            return
    raise Refusal("the dense state must be that of the model which field 'meta.model' describes, but their shapes "
                  "differ; train again")


def _plain(state: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.detach().cpu().clone() for name, value in state.items()}


def _canonical(value: Any) -> Any:
    """An equal value whose equal texts are one object, and whose containers and tensors are objects of their own.

    A pickle writes an object that it has had as a reference, so that its bytes tell how a value came to be.
    """
    if isinstance(value, str):
        return sys.intern(str(value))
    if isinstance(value, dict):
        return {_canonical(key): _canonical(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_canonical, value))
    return value.contiguous().clone() if isinstance(value, Tensor) else value


def _digest(meta: Any, states: Mapping[str, Mapping[str, Tensor]]) -> str:
    arrays = {f"{part}.{name}": value.numpy() for part, state in states.items() for name, value in state.items()}
    return artifact.digest({"meta": meta, "arrays": artifact.digest_arrays(arrays)})
