"""Users on a fresh environment that has the wheel and its dependencies alone, and the minutes to each milestone.

A user is a folder of `tests/users`: each begins in an empty folder with its files, and follows `steps.sh`, in which a
line `#: WORDS` ends a milestone. `make users` plays the same and looks at what came out.
"""
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from circulant.boards.asic.cells.catalogue import known

__all__ = ["FILES", "USERS", "environment", "follow", "lacking", "made_wheel", "measure", "reached"]

ROOT = Path(__file__).parents[1]

FILES = ROOT / "tests" / "users"

USERS = {"classifier": "gestures", "regression": "meter", "onnx": "vibration", "controller": "drive",
         "paper": "tones", "spotter": "spotter"}
"""Each user's folder, and the name of the run."""

LIBRARY = "sky130hd"
"""The standard cells that a user has."""

SECONDS = 3600
"""The most that one user may take, on a busy machine."""

TAIL = 10
"""Lines of the end of what a user who failed saw."""

DATA = Path(os.environ.get("CIRCULANT_DATA") or ROOT.parent / "shared" / "data")


@dataclass(frozen=True)
class Measured:
    """The figures of `measure`: minutes to the installed wheel, and of each user to each milestone; why users did not
    reach their end; cores, and load."""

    benchmark: str
    table: Mapping[str, str]
    installed_minutes: float
    minutes: Mapping[str, Mapping[str, float]]
    failed: Mapping[str, str]
    cores: int
    load: float


def made_wheel(folder: Path) -> Path:
    """A wheel made from the sdist, as on a machine that has no checkout."""
    shutil.copytree(ROOT, folder / "checkout", symlinks=True, ignore=shutil.ignore_patterns(
        ".*", "runs", "build", "*.egg-info", "__pycache__", "docs", "tests"))
    sdist = _built("sdist", folder / "checkout", folder / "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "source", filter="data")
    unpacked, = (folder / "source").iterdir()
    return _built("wheel", unpacked, folder / "wheel")


def _built(kind: str, source: Path, target: Path) -> Path:
    """The file that the build backend makes, as pip and `build` call it."""
    target.mkdir()
    done = subprocess.run([sys.executable, "-c", f"from setuptools import build_meta; build_meta.build_{kind}("
                           f"{str(target)!r})"], cwd=source, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    made, = target.iterdir()
    return made


def environment(folder: Path) -> dict[str, str]:
    """The variables of a user whose Python has the wheel, as pip installs it into a folder, and Yosys for the ASIC."""
    made = made_wheel(folder / "distribution")
    venv = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    subprocess.run([venv / "bin" / "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check",
                    "-c", ROOT / "constraints.txt", f"circulant[all] @ {made.as_uri()}", "pyosys"], check=True)
    own = ("PYTHON", "CIRCULANT", "VIRTUAL", "OMP", "MAKE", "MFLAGS")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    return kept | {"PATH": f"{venv / 'bin'}:{os.environ['PATH']}", "CIRCULANT_CACHE": str(folder / "cache"),
                   "VIRTUAL_ENV": str(venv)}


def lacking(user: str) -> str:
    """Why a user cannot be played on this machine; empty where it can."""
    if user != "spotter":
        return ""
    if missing := [file for file in known()[LIBRARY].files if not (DATA / file).is_file()]:
        return f"{LIBRARY} is not in {DATA}, which has no {missing[0]}"
    return "" if shutil.which("sta") else "OpenSTA is not installed (Debian: opensta)"


def _without_network() -> list[str]:
    """The prefix of a command that cuts it off from every network, where this machine allows it."""
    command = ["unshare", "--net"]
    allowed = shutil.which("unshare") and subprocess.run([*command, "true"], capture_output=True).returncode == 0
    return command if allowed else []


def follow(user: Path, folder: Path, variables: Mapping[str, str]) -> dict[str, float]:
    """The seconds from the start to each milestone of a user, whose files are copied into an empty folder; the first
    line that fails ends it, and so does its time.

    Raises:
        AssertionError: when a line fails, with all that was printed.
    """
    for path in user.iterdir():
        shutil.copy(path, folder)
    lines = (folder / "steps.sh").read_text("utf-8").splitlines()
    script = "\n".join(f"echo $EPOCHREALTIME {line[3:]!r} >> milestones" if line.startswith("#: ") else line
                       for line in ["#: start", *lines])
    with (folder / "log").open("w+", encoding="utf-8") as log:
        process = subprocess.Popen([*_without_network(), "bash", "-euo", "pipefail", "-x", "-c", script], cwd=folder,
                                   env={**variables, "CELLS": str(DATA)}, stdout=log, stderr=subprocess.STDOUT,
                                   start_new_session=True)
        try:
            ended = f"ended with {process.wait(SECONDS)}"
        except subprocess.TimeoutExpired:
            ended = f"did not end within {SECONDS} s"
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        log.seek(0)
        assert process.returncode == 0, f"{user / 'steps.sh'} {ended}:\n{log.read()}"
    return reached(folder)


def reached(folder: Path) -> dict[str, float]:
    """The seconds to each milestone of a user in a folder, as far as it came."""
    (start, _), *lines = [line.split(" ", 1) for line in (folder / "milestones").read_text("utf-8").splitlines()]
    return {words: float(at) - float(start) for at, words in lines}


def measure(names: Iterable[str], note: Callable[[str], None]) -> Measured:
    """Minutes from an empty folder to each milestone of each user, and to the installed wheel. A user who fails is
    noted, with what was reached, and the others go on."""
    users: dict[str, dict[str, float]] = {}
    failed: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="circulant-users-") as scratch:
        start = time.time()
        variables = environment(Path(scratch))
        installed = time.time() - start
        note(f"installed: {installed / 60:.1f} min")
        for name in names:
            if why := lacking(name):
                note(f"{name}: left out, {why}")
                continue
            folder = Path(scratch, name)
            folder.mkdir()
            try:
                follow(FILES / name, folder, variables)
            except AssertionError as error:
                failed[name] = "\n".join([*str(error).splitlines()[:1], *str(error).splitlines()[-TAIL:]])
            users[name] = {words: round(seconds / 60, 2) for words, seconds in reached(folder).items()}
            for words, minutes in users[name].items():
                note(f"{name}: {words}: {minutes} min")
            if name in failed:
                note(f"{name}: failed: {failed[name]}")
    table = {f"{name}: {words}": f"{minutes} min" for name, reached in users.items()
             for words, minutes in reached.items()}
    first = {"wheel built and installed": f"{installed / 60:.2f} min"}
    return Measured("users", first | table, installed_minutes=round(installed / 60, 2), minutes=users,
                    failed=failed, cores=os.cpu_count() or 1, load=os.getloadavg()[2])
