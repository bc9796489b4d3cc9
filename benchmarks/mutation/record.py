"""What became of each mutant, line by line in a file: a measurement that is interrupted goes on where it stopped."""
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["FOLDER", "Record"]

FOLDER = Path("build") / "mutation"
"""Where the records are; ``make clean`` removes them."""


class Record:
    """Results by name, which are worked out once.

    Parameters:
        path: of the file; it and its folder are made when there is something to write. None keeps nothing.
    """

    def __init__(self, path: Path | None) -> None:
        self._path, self._found = path, dict[str, dict[str, Any]]()
        if path is not None and path.exists():
            for line in path.read_text().splitlines(keepends=True):
                if line.endswith("\n"):  # A run that was killed may have left half a line.
                    self._found.update(json.loads(line))

    def __len__(self) -> int:
        return len(self._found)

    def get(self, name: str, find: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The result of that name; where there is none yet, the one that ``find`` gives."""
        if name not in self._found:
            self._found[name] = find()
            if self._path is not None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                text = self._path.read_text() if self._path.exists() else ""
                with self._path.open("a") as file:
                    file.write(("" if not text or text.endswith("\n") else "\n")
                               + json.dumps({name: self._found[name]}) + "\n")
        return self._found[name]
