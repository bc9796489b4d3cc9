"""What pip installs: an sdist from which a wheel is made that holds every file, and runs from an empty folder."""
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from benchmarks.users import made_wheel

pytest.importorskip("setuptools", minversion="77", reason="building needs setuptools 77; run: pip install setuptools")

ROOT = Path(__file__).parents[1]
PARTS = ("hw", "sim", "training", "boards")
DATA = {".toml", ".html", ".css", ".j2", ".cpp", ".v", ".h", ".typed"}
"""Files beside the modules that the package reads."""

STEPS = """
import circulant
from circulant.cli import cli
print(circulant.__file__)
short = [f"--set=training.{phase}_epochs=1" for phase in ("dense", "admm", "retrain")]
small = ["--set=model.hidden=8", "--set=data.subset=60", "--set=data.test_subset=20"]
for line in (["train", "digits-gru", *small, *short],
             ["quantize", "runs/digits-gru"], ["generate", "runs/digits-gru", "--target", "c"],
             ["generate", "runs/digits-gru", "--multipliers", "12"]):
    assert not cli.main(line, prog_name="circulant", standalone_mode=False), line
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return made_wheel(tmp_path_factory.mktemp("distribution"))


def due():
    """Every module and data file of the package, by its name in the wheel."""
    for folder in (ROOT / "circulant", *(ROOT / part for part in PARTS)):
        for path in folder.rglob("*"):
            inside = path.relative_to(folder)
            if path.is_file() and path.suffix in DATA | {".py"} and not (
                    folder.name == "circulant" and inside.parts[0] in PARTS):
                yield Path("circulant", "" if folder.name == "circulant" else folder.name, inside).as_posix()


def test_a_wheel_from_the_sdist_has_every_file(wheel):
    with zipfile.ZipFile(wheel) as archive:
        held = set(archive.namelist())
    assert set(due()) - held == set()
    assert not [name for name in held if name.startswith(("tests", "benchmarks")) or "/tests/" in name]


@pytest.mark.soak
def test_the_wheel_runs_from_an_empty_folder(wheel, tmp_path):
    site, empty = tmp_path / "site", tmp_path / "empty"
    empty.mkdir()
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    program = f"import sys; sys.path.insert(0, {str(site)!r})\n{STEPS}"
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], cwd=empty, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(site)), "it is the wheel that ran, not the checkout"
    assert {"top.v", "manifest.json"} <= {path.name for path in (empty / "runs/digits-gru/hardware").iterdir()}
    assert (empty / "runs/digits-gru/c").is_dir()
