"""Trainings and points on a Dask cluster: points wait for their model there, and models for their baseline.

A worker needs this very circulant, the data, and a cache folder of its own; files go with the results, so that no
folder has to be shared. Dask gives what a lost worker had to another one, and each result comes once.
"""
import asyncio
import logging
import time
from collections.abc import Callable, Generator, Iterator, Mapping, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from circulant import __version__
from circulant.extras import extras
from circulant.sim.files import cache
from circulant.sim.files.writing import atomic_bytes
from circulant.sim.refusal import Refusal
from circulant.sweep import store
from circulant.sweep.processes import Task
from circulant.sweep.rows import Trained
from circulant.sweep.work import failure

__all__ = ["PATIENCE", "compute", "connected"]

ANSWER = 6
"""Seconds within which a scheduler must answer: a command that cannot reach it ends within ten."""

PATIENCE = 10
"""Seconds after which a cluster without workers is given up."""

SILENCE = 30
"""Seconds without a sign of life after which a worker counts as lost: each gives one every second or so."""

FILES = ("model.pt", "training.json")
"""Files of a training that go with its result."""


def compute(address: str, tasks: Mapping[str, Task], patience: float = PATIENCE
            ) -> Generator[tuple[str, Any], None, None]:
    """Key and result of each task, as they end, each once; trainings are in this machine's store then. What a task
    raises, or the end of all workers in a row that had it, four by Dask's default, is a result with a reason.

    Parameters:
        tasks: each behind the one that it takes the result of.
        patience: seconds after which a cluster without workers is given up.

    Raises:
        Refusal: as `connected`; when all workers are lost.
    """
    with connected(address) as client, client.as_current():
        from distributed import TimeoutError as NoneYet
        from distributed import wait

        started, run = len(client.nthreads()), f"circulant-{time.time_ns()}"
        futures: MutableMapping[str, Any] = {}
        for key, task in tasks.items():
            given = [] if task.after is None else [futures[task.after]]
            futures[key] = client.submit(partial(_whole, task.call), *given, key=f"{run}-{key}", pure=False)
        keys = {future.key: key for key, future in futures.items()}
        pending, alone = set(futures.values()), time.monotonic()
        looked = alone
        while pending:
            if time.monotonic() - looked > SILENCE / 3:
                _leave_silent(client)
                looked = time.monotonic()
            try:
                done, pending = wait(pending, timeout=min(1.0, patience / 4), return_when="FIRST_COMPLETED")
            except NoneYet:
                done = set()
            for future in done:
                error = future.exception() if future.status == "error" else None
                yield keys[future.key], failure(error) if error else _unpacked(future.result())
            if done or _workers(client):
                alone = time.monotonic()
            elif time.monotonic() - alone > patience:
                raise Refusal(f"A cluster must have a worker, but {address} has lost all of its {started}; start some "
                              f"by `dask worker {address}`, then the same command goes on")


def _whole(call: Callable[..., Any], *given: Any) -> Any:
    """The result of a task, with the files of a training; its failure is one, too, so that what waits for it can say
    the reason."""
    try:
        return _packed(call(*map(_unpacked, given)))
    except Exception as error:
        return failure(error)


def _packed(found: Any) -> Any:
    if not isinstance(found, dict) or "folder" not in found:
        return found
    return found | Trained(folder=Path(found["folder"].name), files={
        name: (found["folder"] / name).read_bytes() for name in FILES})


def _unpacked(found: Any) -> Any:
    """A training whose files are in this machine's store; other results as they are."""
    if not isinstance(found, dict) or "files" not in found:
        return found
    folder = cache.store("trained") / found["folder"]
    folder.mkdir(exist_ok=True)
    for name, data in found["files"].items():
        if not (folder / name).is_file() or (folder / name).read_bytes() != data:
            atomic_bytes(folder / name, data)
    return {name: value for name, value in found.items() if name != "files"} | {"folder": folder}


def _workers(client: Any) -> int:
    try:
        return len(client.nthreads())
    except Exception:  # The scheduler is gone; it may come back.
        return 0


def _leave_silent(client: Any) -> None:
    """Have the scheduler give what silent workers had to others: it would wait for minutes."""

    async def leave(seconds: float, dask_scheduler: Any) -> None:  # It goes by value: schedulers need no circulant.
        import time

        for worker, state in list(dask_scheduler.workers.items()):
            if time.time() - state.last_seen > seconds:
                await dask_scheduler.remove_worker(worker, stimulus_id=f"circulant-silent-{time.time()}")

    with suppress(Exception):  # The scheduler is gone; it may come back.
        client.run_on_scheduler(leave, SILENCE)


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """A client of a scheduler whose workers have this very circulant.

    Raises:
        Refusal: when it does not answer in time, has no worker, or one has another circulant or none.
    """
    with extras("--cluster", "distributed"):
        from distributed import Client
    for name in ("distributed", "distributed.client", "distributed.core", "distributed.comm"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # What is lost is said once, below.
    try:
        with ThreadPoolExecutor(1) as apart:  # A notebook has a loop in this thread.
            apart.submit(asyncio.run, _greeted(address)).result()
        client = Client(address, timeout=ANSWER, set_as_default=False)
    except Exception as error:  # What is no scheduler may answer anything.
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise Refusal(f"--cluster must be the address of a Dask scheduler that answers within {ANSWER} s, but "
                      f"{address} does not: {why}; start one by `dask scheduler` and workers by `dask worker ADDRESS`"
                      ) from None
    try:
        _require_same(client, address)
        yield client
    finally:
        client.close(timeout=2)


async def _greeted(address: str) -> None:
    """Exchange greetings with a scheduler, which has `ANSWER` seconds in all.

    A client that could not do so would wait for itself when it is deleted, and say so.

    Raises:
        Exception: of any kind, when it does not answer in time, or is something else.
    """
    from distributed.comm.core import connect
    from distributed.security import Security

    try:
        async with asyncio.timeout(ANSWER):
            comm = await connect(address, timeout=ANSWER, **Security().get_connection_args("client"))
    except MemoryError:  # A length of bytes that were no length.
        raise ConnectionError("what answers is no Dask scheduler") from None
    except TimeoutError:
        raise ConnectionError("nothing comes from there") from None
    await comm.close()


def _require_same(client: Any, address: str) -> None:
    found = client.sync(_identities, client)
    if lacking := next((each.name for each in found.values() if isinstance(each, ModuleNotFoundError)), None):
        raise Refusal(f"Every worker must have this circulant with its extra 'cluster', but one lacks {lacking}; "
                      "install it there")
    if not found:
        raise Refusal(f"A cluster must have a worker that answers, but {address} has none; start some by "
                      f"`dask worker {address}`")
    mine = _identity()
    if others := [worker for worker, its in found.items() if its != mine]:
        raise Refusal(f"Every worker must have this circulant, {__version__} with the same sources, but "
                      f"{', '.join(sorted(others)[:3])} {'has' if len(others) == 1 else 'have'} another one; install "
                      "it there")


async def _identities(client: Any) -> Mapping[str, Any]:
    """The identity of each worker, or the error in its place; one that ends meanwhile or is silent is left out."""
    calls = {asyncio.ensure_future(client.run(_identity, workers=[worker], on_error="return")): worker
             for worker in await client.nthreads()}
    done, late = await asyncio.wait(calls, timeout=ANSWER) if calls else (set(), set())
    for call in late:
        call.cancel()
    said = {calls[call]: call.exception() or call.result().get(calls[call]) for call in done}
    return {worker: its for worker, its in said.items() if its is not None and not isinstance(its, OSError)}


def _identity() -> tuple[str, str]:
    return __version__, store.sources()
