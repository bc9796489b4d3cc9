"""Users on a fresh environment that has the wheel and its dependencies alone, and the minutes to each milestone.

A user is a folder of `tests/users`: each begins in an empty folder with its files, and follows `steps.sh`, in which a
line `#: WORDS` ends a milestone. `make users` plays the same and looks at what came out.
"""
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from circulant.boards.asic.cells.catalogue import known

__all__ = ["FILES", "USERS", "environment", "follow", "lacking", "made_wheel", "measure"]

ROOT = Path(__file__).parents[1]

FILES = ROOT / "tests" / "users"

USERS = {"classifier": "gestures", "regression": "meter", "onnx": "vibration", "controller": "drive",
         "paper": "tones", "spotter": "spotter"}
"""Each user's folder, and the name of the run."""

LIBRARY = "sky130hd"
"""The standard cells that a user has."""

SECONDS = 1800
"""The most that one user may take, on a busy machine."""

DATA = Path(os.environ.get("CIRCULANT_DATA") or ROOT.parent / "shared" / "data")


@dataclass(frozen=True)
class Measured:
    """The figures of `measure`: minutes to the installed wheel, and of each user to each milestone; cores, and load."""

    benchmark: str
    table: Mapping[str, str]
    installed_minutes: float
    minutes: Mapping[str, Mapping[str, float]]
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
    line that fails ends it.

    Raises:
        AssertionError: when a line fails, with all that was printed.
    """
    for path in user.iterdir():
        shutil.copy(path, folder)
    lines = (folder / "steps.sh").read_text("utf-8").splitlines()
    script = "\n".join(f"echo $EPOCHREALTIME {line[3:]!r} >> milestones" if line.startswith("#: ") else line
                       for line in ["#: start", *lines])
    start = time.time()
    done = subprocess.run([*_without_network(), "bash", "-euo", "pipefail", "-x", "-c", script], cwd=folder,
                          env={**variables, "CELLS": str(DATA)}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=SECONDS)
    assert done.returncode == 0, f"{user / 'steps.sh'} ended with {done.returncode}:\n{done.stdout}"
    reached = [line.split(" ", 1) for line in (folder / "milestones").read_text("utf-8").splitlines()]
    return {words: float(at) - start for at, words in reached[1:]}


def measure(names: Iterable[str], note: Callable[[str], None]) -> Measured:
    """Minutes from an empty folder to each milestone of each user, and to the installed wheel."""
    users: dict[str, dict[str, float]] = {}
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
            users[name] = {words: round(seconds / 60, 2)
                           for words, seconds in follow(FILES / name, folder, variables).items()}
            note(f"{name}: {max(users[name].values())} min")
    table = {f"{name}: {words}": f"{minutes} min" for name, reached in users.items()
             for words, minutes in reached.items()}
    first = {"wheel built and installed": f"{installed / 60:.2f} min"}
    return Measured("users", first | table, installed_minutes=round(installed / 60, 2), minutes=users,
                    cores=os.cpu_count() or 1, load=os.getloadavg()[2])
