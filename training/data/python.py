"""A data set that a function in a Python file of the user's makes."""
from collections.abc import Mapping
from typing import Any

import numpy as np

from circulant.sim.files.user_code import calling, load_object, parted
from circulant.sim.refusal import Refusal
from circulant.training.data import files, npz
from circulant.training.data.dataset import Dataset
from circulant.training.settings.data import DataSettings

__all__ = ["python"]

KEY = "data.path"


def python(options: DataSettings, progress: files.Progress = files.silent) -> Dataset:
    """The data set that the function returns: a `Dataset`, or arrays by the keys of an ``.npz`` file.

    Raises:
        Refusal: when the file or the function is missing, raises, or returns something else; as `npz.assembled`.
    """
    file, name = parted(KEY, options.path)
    load = load_object(KEY, options.path)
    if not callable(load):
        raise Refusal(f"{KEY} must name a function, but {name!r} of {file} is a {type(load).__name__}; name another")
    progress(f"{file.name}:{name}", 0, 0)
    made = calling(KEY, options.path, load, **options.arguments)
    if isinstance(made, Dataset):
        if ignored := [f"data.{each}" for each in options.besides("name", "path", "arguments", "seed")]:
            raise Refusal(f"{file.name}:{name} must return arrays for {', '.join(ignored)} to choose from, but it "
                          "returns a Dataset, which is taken as it is; leave them out, or return the arrays")
        return made
    if not isinstance(made, Mapping) or not all(isinstance(key, str) for key in made):
        raise Refusal(f"{file.name}:{name} must return a circulant.Dataset, or a dictionary of arrays with the keys "
                      f"{', '.join(npz.KEYS)}, not {_shown(made)}; see docs/data.md")
    return npz.assembled(file, {key: _array(file.name, key, value) for key, value in made.items()}, options)


def _array(file: str, key: str, value: Any) -> Any:
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise Refusal(f"{file}: {key!r} must be an array, but it is not ({error}); pad what is ragged") from None
    if array.dtype == object:
        raise Refusal(f"{file}: {key!r} must be an array of numbers or names, not one of objects; pad what is ragged")
    return array


def _shown(made: Any) -> str:
    return f"a {type(made).__name__}" + (f" of {len(made)}" if isinstance(made, tuple | list) else "")
