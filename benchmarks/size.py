"""The size of the project: lines of Python by folder, and words of documentation; `tests/test_architecture.py` has the
budget of both."""
from pathlib import Path

from circulant.sim.document import Document

__all__ = ["ROOT", "measure"]

ROOT = Path(__file__).parents[1]
"""The folder whose size is measured."""

FOLDERS = ("circulant", "training", "sim", "hw", "boards", "benchmarks", "examples", "docs")


def measure() -> Document:
    """Lines of Python in each folder, of the tests, and words of docs, README and changelog.

    Links within a folder are not followed; a word is what stands between spaces.
    """
    lines = {folder: _lines(ROOT / folder) for folder in FOLDERS}
    words = {"docs": _words(*sorted((ROOT / "docs").rglob("*.md"))), "readme": _words(ROOT / "README.md"),
             "changelog": _words(ROOT / "CHANGELOG.md")}
    tests = _lines(ROOT / "tests")
    table = {f"lines of {folder}": f"{count:,}" for folder, count in lines.items()}
    table |= {"lines without tests": f"{sum(lines.values()):,}", "lines of tests": f"{tests:,}"}
    table |= {f"words of {name}": f"{count:,}" for name, count in words.items()}
    return {"benchmark": "size", "lines": lines, "tests": tests, "words": words, "table": table}


def _lines(folder: Path) -> int:
    return sum(len(path.read_text("utf-8").splitlines()) for path in folder.rglob("*.py")
               if not any(parent.is_symlink() for parent in path.parents))


def _words(*pages: Path) -> int:
    return sum(len(page.read_text("utf-8").split()) for page in pages)
