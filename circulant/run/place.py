"""The place of a new run folder: where nothing of a run is yet, or where an old one is taken away as a whole."""
from pathlib import Path

from circulant import sources
from circulant.experiment import FILE
from circulant.run.kept import DATA, FLOAT
from circulant.run.run_folder import BRANCHES, CHECKPOINT, STEPS
from circulant.sim.files.files import discard
from circulant.sim.files.writing import naming
from circulant.sim.refusal import Refusal

__all__ = ["ENTRIES", "clear", "require_free"]

PICTURES = tuple(f"{name}.png" for name in ("accuracy", "cycles", "training", "ranges", "error", "schedule", "rates"))

ENTRIES = tuple(dict.fromkeys((
    "report.json", "report.html", *PICTURES, "rates.json", "divergence.fst", "divergence.vcd", "boards", "asic",
    "tensorboard", "evaluations",
    *(Path(name).parts[0] for step in (*BRANCHES.values(), *reversed(STEPS.values()))
      for name in (step.record, *step.files)),
    FLOAT, DATA, sources.FOLDER, CHECKPOINT, FILE)))
"""Everything that a command writes into a run folder, in an order in which what is left stays a run."""


def require_free(folder: Path, *, force: bool) -> None:
    """Check that a new run folder takes the place of nothing, or of a run that may go.

    Parameters:
        force: whether it may.

    Raises:
        Refusal: when it may not, or what is there is no run.
    """
    there = next((name for name in reversed(ENTRIES) if (folder / name).exists()), None)
    if there is None:
        return
    is_run = (folder / FILE).exists() or (folder / CHECKPOINT / FILE).exists()
    if not is_run:
        raise Refusal(f"{folder} must have no {there}, as a new run would write its own there, and {folder} is no run "
                      "folder that could be replaced; choose another name")
    if not force:
        raise Refusal(f"{folder} must hold no run, but has {there}; choose another name, or replace it "
                      "with --force (force=True in Python)")


def clear(folder: Path) -> None:
    """Remove the run that is in a folder; other files stay.

    Raises:
        Refusal, ToolError: as `circulant.sim.files.writing.naming`.
    """
    with naming(folder):
        for name in ENTRIES:
            discard(folder / name)
