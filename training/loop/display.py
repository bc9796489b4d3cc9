"""The progress of a training for people, on stderr: a bar for each phase on a terminal, one line for each elsewhere."""
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from circulant.sim.metrics import shown, words
from circulant.training.loop.metrics import Metrics, scored

__all__ = ["PHASES", "Display"]

PHASES = {"dense": "dense baseline", "admm": "ADMM", "retrain": "retraining", "direct": "direct training",
          "search": "block sizes",
          "joint": "ADMM on the grid", "finetune": "fine-tuning"}
"""Phases in words."""


class Display:
    """Called after each epoch, it shows phase, epoch, loss, metric, and ADMM's primal residual.

    Parameters:
        metric: name of the metric.
        visible: whether anything is shown.
    """

    def __init__(self, metric: str, *, visible: bool = True) -> None:
        self._metric, self._visible = metric, visible
        self._console = Console(stderr=True)
        self._bars = Progress(TextColumn("{task.description:<16}"), BarColumn(bar_width=30), MofNCompleteColumn(),
                              TimeRemainingColumn(), TextColumn("[dim]{task.fields[note]}"), console=self._console,
                              disable=not (visible and self._console.is_terminal))
        self._tasks: dict[str, TaskID] = {}
        self._last = ""

    def __enter__(self) -> "Display":
        self._bars.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._bars.stop()
        self._say()

    def __call__(self, phase: str, epoch: int, epochs: int, metrics: Metrics) -> None:
        note = f"loss {metrics['loss']:.4g}"
        if (score := scored(metrics, self._metric)) is not None:
            note += f", {words(self._metric)} {shown(self._metric, score)}"
        if "primal" in metrics:
            note += f", residual {metrics['primal']:.2g}"
        if "sent" in metrics:
            note += f", {metrics['sent'] / 1e6:.3g} MB sent by each process"
        if phase not in self._tasks:
            self._say()
            self._tasks[phase] = self._bars.add_task(PHASES.get(phase, phase), note="")
        self._bars.update(self._tasks[phase], completed=epoch, total=epochs, note=note)
        self._last = f"{PHASES.get(phase, phase)}: {epoch} of {epochs}, {note}"

    def _say(self) -> None:
        """The last epoch of a phase, where no bar shows it."""
        if self._last and self._visible and not self._console.is_terminal:
            self._console.print(self._last, highlight=False, soft_wrap=True)
        self._last = ""
