"""Network and data of a user's own in a run folder, so that later steps run none of the user's code.

``float.npz`` has the trained network in float64, layer by layer, and ``data.npz`` the data set; both are there where
the experiment names Python files, or where `circulant.save_run` made the folder.
"""
from collections.abc import Mapping
from typing import Any

from circulant.progress import Show
from circulant.run.run_folder import Run, sha256
from circulant.sim.real import float_file
from circulant.sim.real.float_model import Model
from circulant.sim.refusal import Refusal

__all__ = ["DATA", "FLOAT", "data_of", "keep_data", "keep_float", "model_of"]

FLOAT, DATA = "float.npz", "data.npz"

OWN = ("python", "saved")
"""Names of data sets, and kinds of models, of which the folder keeps a file."""


def keep_data(run: Run, data: Any) -> dict[str, str]:
    """Write the data set; returns its hash by the name that it has in a record."""
    from circulant.training.data.saved import save_data

    save_data(run.path(DATA), data)
    return {"data": sha256(run.path(DATA))}


def keep_float(run: Run, model: Model) -> dict[str, str]:
    """Write the network; returns its hash by the name that it has in a record."""
    float_file.save(model, run.path(FLOAT))
    return {"float": sha256(run.path(FLOAT))}


def data_of(run: Run, trained: Mapping[str, Any], show: Show) -> Any:
    """The data set of a run: that which the folder keeps, or else that which the experiment names.

    Raises:
        Refusal: when the file is missing, or not that of the record ``trained``; as `circulant.load_data`.
    """
    from circulant import training
    from circulant.training.data.saved import load_saved

    if run.experiment.data.name not in OWN:
        return training.load_data(**run.experiment.tables()["data"], progress=show)
    _require(run, trained, "data", DATA)
    return load_saved(run.path(DATA))


def model_of(run: Run, trained: Mapping[str, Any], executes: bool) -> Any:
    """The trained network of a run: a torch module, or in float64 where the user's code made it.

    Parameters:
        executes: whether that code may be run, where its weights shall be trained further.

    Raises:
        Refusal: when the file is missing, or not that of the record ``trained``; when the network is to be trained
            further, and its code may not be run or is not there.
    """
    from circulant import training

    kind, bits = run.experiment.model.kind, run.experiment.quantization
    further = [f"quantization.{key}" for key in ("finetune_epochs", "joint_epochs") if getattr(bits, key)]
    if kind not in OWN or (kind == "python" and further and executes):
        named = run.experiment.model if kind == "python" else None
        return training.load_trained(run.path("model.pt"), model=named).model
    if further:
        way = ("give it to `circulant run`, which runs that code" if kind == "python" else
               "train it in Python, and save the run again")
        raise Refusal(f"{' and '.join(further)} must be 0 for model.kind = {kind!r}, as this step does not run the "
                      f"code that makes the network; {way}")
    _require(run, trained, "float", FLOAT)
    return float_file.load(run.path(FLOAT))


def _require(run: Run, trained: Mapping[str, Any], what: str, name: str) -> None:
    if not run.path(name).exists():
        raise Refusal(f"{run.path(name)} is missing; run {run.command('train')} again")
    if sha256(run.path(name)) != trained["hashes"].get(what):
        raise Refusal(f"{run.path(name)} must be the file of training.json beside it, but it was changed or damaged; "
                      f"run {run.command('train')} again")
