"""Outcomes of the golden model on the test set: the classes that it confuses, or its numbers beside their targets."""
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from circulant.sim.arith.fixed import Format
from circulant.sim.document import Document
from circulant.sim.vectors import Vectors

if TYPE_CHECKING:
    from circulant.training.data import Dataset

__all__ = ["CLASSES", "PAIRS", "outcome"]

CLASSES = 64
"""The most classes of a confusion matrix that a page can show."""

PAIRS = 2000
"""The most pairs of target and output that a record keeps."""


def outcome(vectors: Vectors, data: "Dataset", form: Format) -> Document:
    """The outputs of test vectors beside the targets of the test set.

    Parameters:
        form: of the outputs.

    Returns:
        Of classes ``names`` and ``confusion``: counts by target (rows) and by greatest output (columns). Of numbers
        ``target`` and ``output``, at most `PAIRS` of each at equal distances, and ``rmse`` and ``worst`` over all of
        them. Nothing for other tasks, or with more than `CLASSES` classes.
    """
    targets = data.test_y
    if data.task == "classification" and data.classes <= CLASSES:
        found, wanted = _valid(vectors.outputs.argmax(-1), targets, data)
        counts = np.zeros((data.classes, data.classes), np.int64)
        known = found < data.classes  # Outputs may be more than classes.
        np.add.at(counts, (wanted[known], found[known]), 1)
        return {"names": list(data.symbols) or [str(each) for each in range(data.classes)],
                "confusion": counts.tolist()}
    if data.task == "regression":
        found, wanted = _valid(form.real(vectors.outputs), targets.astype(np.float64), data)
        found, wanted = found.reshape(-1), wanted.reshape(-1)
        off = np.abs(found - wanted)
        some = np.arange(min(PAIRS, len(found))) * len(found) // min(PAIRS, len(found))
        return {"target": wanted[some].tolist(), "output": found[some].tolist(),
                "rmse": float(np.sqrt(np.mean(off ** 2))), "worst": float(off.max())}
    return {}


def _valid(found: NDArray[Any], wanted: NDArray[Any], data: "Dataset") -> tuple[NDArray[Any], NDArray[Any]]:
    """Outputs and targets without the padding behind sequences that have a target at each step."""
    lengths = data.test_lengths
    if lengths is None or not getattr(data, "per_step", False):
        return found, wanted
    valid = np.arange(wanted.shape[1]) < lengths[:, None]
    return found[valid], wanted[valid]
