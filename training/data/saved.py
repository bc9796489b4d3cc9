"""The data set that a run folder keeps: every array and every other member of it, in one file."""
from dataclasses import fields
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from circulant.sim import artifact
from circulant.sim.files.files import reason
from circulant.sim.files.schema import Anything, Mapped, Table
from circulant.sim.refusal import Refusal
from circulant.training.data import files
from circulant.training.data.dataset import Dataset
from circulant.training.settings.data import DataSettings

__all__ = ["load_saved", "refuse", "save_data"]

FORMAT, VERSION = "circulant-data", 1

_META = Table({"members": Mapped(Anything())})


def save_data(path: str | Path, data: Dataset) -> str:
    """Write a data set; returns the hash of its contents.

    Raises:
        Refusal, ToolError: as `circulant.sim.files.writing.naming`.
    """
    members = {field.name: getattr(data, field.name) for field in fields(data)}
    arrays = {name: value for name, value in members.items() if isinstance(value, np.ndarray)}
    return artifact.write_npz(path, FORMAT, VERSION, arrays, members={
        name: value for name, value in members.items() if name not in arrays})


def load_saved(path: str | Path) -> Dataset:
    """The data set that `save_data` wrote.

    Raises:
        Refusal: as `circulant.sim.artifact.read_npz`, and when it is no data set.
    """
    arrays, meta = artifact.read_npz(path, FORMAT, VERSION, _META)
    members: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value
                               for name, value in meta["members"].items()}
    try:
        return Dataset(**members | arrays)
    except Refusal as refusal:
        raise Refusal(f"{path}: {refusal}") from None
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise Refusal(f"{path} must be a data set, but it is not ({reason(error)}); write it again") from None


def refuse(options: DataSettings, progress: files.Progress = files.silent) -> NoReturn:
    """
    Raises:
        Refusal: always, as only the steps of a run folder read what it keeps.
    """
    raise Refusal("data.name = 'saved' must stand in a run folder that keeps its data, and it is read by the steps "
                  "behind the training alone, since a run that was imported or saved is not trained; name another data "
                  "set, or go on with `circulant quantize RUN`")
