"""Progress of long steps: bars with the remaining time on a terminal; elsewhere, as in a log file, a line for each
finished task, and one each minute of a longer one."""
import os
import threading
import time
from types import TracebackType
from typing import Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

__all__ = ["Bars", "Show", "leads", "silent"]

EVERY = 60.0
"""Seconds between two lines of a task where there is no terminal."""


def leads() -> bool:
    """Whether this process prints and writes files: the first one that `torchrun` started, or the only one."""
    return os.environ.get("RANK", "0") == "0"


class Show(Protocol):
    """Called as a step goes on: the task, how much of it is done, of how much (0 where nobody knows), and a remark."""

    def __call__(self, task: str, done: int, total: int, note: str = "") -> None: ...


def silent(task: str, done: int, total: int, note: str = "") -> None:
    """Shows nothing."""


class Bars:
    """A `Show` for people. Tasks follow one another: the first report of a new one ends the one before."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress = Progress(TextColumn("{task.description:<22}"), BarColumn(bar_width=30), MofNCompleteColumn(),
                                  TimeElapsedColumn(), TimeRemainingColumn(), TextColumn("[dim]{task.fields[note]}"),
                                  console=console, disable=not console.is_terminal)
        self._name = ""
        self._task: TaskID | None = None
        self._last, self._note, self._began = "", "", 0.0
        self._closed = threading.Event()

    def __enter__(self) -> "Bars":
        self._progress.start()
        if not self._console.is_terminal:
            threading.Thread(target=self._beat, daemon=True).start()
        return self

    def _beat(self) -> None:
        """Lines of a task that takes long, also of one that reports nothing."""
        while not self._closed.wait(EVERY):
            if name := self._name:
                said = self._last or name + (f": {self._note}" if self._note else "")
                self._console.print(f"{said}; {(time.monotonic() - self._began) / 60:.0f} min", highlight=False,
                                    soft_wrap=True)

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close(finished=kind is None)

    def close(self, finished: bool = True) -> None:
        """End the last task and leave the terminal to other output."""
        self._closed.set()
        self._end(finished)
        self._progress.stop()

    def __call__(self, task: str, done: int, total: int, note: str = "") -> None:
        if task != self._name:
            self._end(finished=True)
            self._name, self._began = task, time.monotonic()
            self._task = self._progress.add_task(task, total=None, note="")
        assert self._task is not None
        self._progress.update(self._task, completed=done, total=total or None, note=note)
        self._note = note
        self._last = f"{task}: {done} of {total}" + (f", {note}" if note else "") if total else ""

    def _end(self, finished: bool) -> None:
        """A task that stopped early counts as whole, as ADMM does when it has converged."""
        if self._task is None:
            return
        task = next(task for task in self._progress.tasks if task.id == self._task)
        if finished:
            self._progress.update(self._task, total=max(task.completed, 1), completed=max(task.completed, 1))
        if self._last and not self._console.is_terminal:
            self._console.print(self._last, highlight=False, soft_wrap=True)
        self._task, self._name = None, ""
