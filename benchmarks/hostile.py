"""Damaged files against their readers: each has to be refused in a sentence, and none may raise, hang or fill memory.

A whole run folder is made, without any training; of each copy one file is damaged, see `benchmarks.damage`.
"""
import contextlib
import io
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Generator
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from benchmarks.damage import damage
from benchmarks.victims import victim
from circulant.cli import main
from circulant.sim.cosim.manifest import Manifest
from circulant.sim.golden.network import Network
from circulant.sim.refusal import Refusal
from circulant.sim.vectors import Vectors

__all__ = ["SECONDS", "Case", "Outcome", "check", "damaged", "measure"]

SECONDS = 30
"""Seconds that a reader may take."""


class Case(NamedTuple):
    """A folder in which one file is damaged."""

    name: str
    folder: Path
    file: str


class Outcome(NamedTuple):
    """The answer of a reader: "refused", or "taken" where the damage was harmless; else "traceback" or "hang"."""

    verdict: str
    words: str


class _Late(BaseException):
    """The time is over."""


def damaged(folder: Path, place: Path, rng: np.random.Generator) -> Generator[Case, None, None]:
    """Copies of a run folder below ``place`` with one file damaged in each, without end; a copy is removed when the
    next one is asked for."""
    paths = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    while True:
        file = str(rng.choice(paths))
        work = place / "run"
        shutil.copytree(folder, work)
        said = damage(work / file, rng)
        try:
            yield Case(f"{file}: {said}", work, file)
        finally:
            shutil.rmtree(work)


def check(case: Case, seconds: float = SECONDS) -> Outcome:
    """The answers of the readers of the damaged file, in this process; only in its main thread."""
    def late(number: int, frame: FrameType | None) -> None:
        raise _Late

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            _read(case)
        return Outcome("taken", "")
    except Refusal as refusal:
        return Outcome("refused", str(refusal))
    except SystemExit as stopped:
        words, code = said.getvalue().strip(), stopped.code or 0
        verdict = "taken" if code == 0 else "refused" if code == 2 else "traceback"
        return Outcome("traceback" if "Traceback" in words else verdict, words)
    except _Late:
        return Outcome("hang", f"after {seconds} s")
    except BaseException as error:
        return Outcome("traceback", f"{type(error).__name__}: {error}"[:500])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def measure(*, count: int, seed: int = 0, note: Callable[[str], None] = lambda text: None) -> dict[str, Any]:
    """So many damaged files: how many were refused, taken, and worse, with the cases of the latter.

    Parameters:
        note: told each failure.
    """
    rng, found, failed, start = np.random.default_rng(seed), dict[str, int](), list[dict[str, str]](), time.monotonic()
    slowest = 0.0
    with tempfile.TemporaryDirectory(prefix="circulant-hostile-") as temporary:
        victim(Path(temporary) / "victim")
        cases = damaged(Path(temporary) / "victim", Path(temporary) / "work", rng)
        for _, case in zip(range(count), cases, strict=False):
            begun = time.monotonic()
            outcome = check(case)
            slowest = max(slowest, time.monotonic() - begun)
            found[outcome.verdict] = found.get(outcome.verdict, 0) + 1
            if outcome.verdict in ("traceback", "hang"):
                note(f"{case.name}: {outcome.verdict}: {outcome.words}")
                failed.append({"case": case.name, **outcome._asdict()})
        cases.close()
    table = {verdict: str(found.get(verdict, 0)) for verdict in ("refused", "taken", "traceback", "hang")}
    return {"benchmark": "hostile", "table": table | {"slowest": f"{slowest:.1f} s"}, "files": count,
            "refused": found.get("refused", 0), "taken": found.get("taken", 0),
            "tracebacks": found.get("traceback", 0), "hangs": found.get("hang", 0), "failed": failed,
            "seconds": time.monotonic() - start}


def _read(case: Case) -> None:
    """Everything that reads the file."""
    folder, file = case.folder, case.file
    if file.endswith(".pt"):
        from circulant.training.loop.checkpoint import Checkpoint
        from circulant.training.store import load_trained

        if file == "model.pt":
            load_trained(folder / file)
        else:
            Checkpoint(folder / file, {"seed": 0}).load()
    elif file.count("/") and not file.startswith("hardware/"):
        Network.load((folder / file).parent)
    elif file.endswith(".npz"):
        Network.load(folder)
        Vectors.load(folder / "vectors.npz")
    else:
        if file.startswith("hardware/"):
            with contextlib.suppress(Refusal):
                Manifest.load(folder / "hardware")
        main(["report", str(folder)])
