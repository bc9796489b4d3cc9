"""Processes of this machine that train and evaluate side by side."""
import multiprocessing
import os
import signal
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from circulant.sim import child
from circulant.sim.files import temporaries
from circulant.sweep.work import failure

__all__ = ["Processes", "Task", "side_by_side"]


@dataclass(frozen=True)
class Task:
    """A call in another process, here or on a cluster.

    Parameters:
        call: a function of the result of ``after``, if any.
        after: key of the task whose result it takes.
    """

    call: Callable[..., Any]
    after: str | None = None


class Processes:
    """Processes that compute tasks side by side: started by the first tasks that need them, ended with this context.

    They do not see an interruption and end with this process, whatever ends it; their files are complete at any time.
    After one has ended by itself, the next tasks get new ones.

    Parameters:
        jobs: how many, 1 for this process alone.
    """

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self._pool: ProcessPoolExecutor | None = None
        self._others = set(multiprocessing.active_children())

    def __enter__(self) -> "Processes":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._pool is None:
            return
        self._pool.shutdown(wait=kind is None, cancel_futures=True)
        if kind is not None:
            mine = set(multiprocessing.active_children()) - self._others
            for process in mine:
                process.terminate()
            for process in mine:
                process.join()
            temporaries.sweep(Path(tempfile.gettempdir()), again=True)

    def submit(self, task: Callable[[], Any]) -> Future[Any]:
        """The result of a task to come."""
        if self._pool is None:
            self._pool = ProcessPoolExecutor(self.jobs, mp_context=multiprocessing.get_context("spawn"),
                                             initializer=_begin)
        return self._pool.submit(task)

    def renew(self) -> None:
        """Leave processes of which one has ended."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None


def side_by_side(tasks: Sequence[Callable[[], Any]], processes: Processes) -> Iterator[tuple[int, Any]]:
    """Index and result of each task, as they end; a task whose process ends has the reason as its result."""
    if processes.jobs == 1:
        yield from ((at, task()) for at, task in enumerate(tasks))
        return
    futures: dict[Future[Any], int] = {processes.submit(task): at for at, task in enumerate(tasks)}
    whole = True
    for future in as_completed(futures):
        try:
            result = future.result()
        except Exception as error:  # A task returns its failures; this is the end of a process.
            result, whole = failure(error), False
        yield futures[future], result
    if not whole:
        processes.renew()


def _begin() -> None:
    """One thread for each process, which ends with the first one; only that one handles Ctrl-C."""
    child.end_with_parent()
    os.environ["OMP_NUM_THREADS"] = "1"
    signal.signal(signal.SIGINT, signal.SIG_IGN)
