"""Results by name, line by line in a file: a measurement that is interrupted goes on where it stopped."""
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["MUTANTS", "PROOFS", "Record"]

MUTANTS, PROOFS = Path("build") / "mutation", Path("build") / "proofs.jsonl"
"""Where records are: a folder of those of mutants, and that of proofs; ``make clean`` removes them."""


class Record:
    """Results by name, which are worked out once.

    Parameters:
        path: of the file; it and its folder are made when there is something to write. None keeps nothing.
    """

    def __init__(self, path: Path | None) -> None:
        self._path, self._found = path, dict[str, dict[str, Any]]()
        if path is not None and path.exists():
            whole, _, half = path.read_text().rpartition("\n")
            if half:  # A run that was killed may have left half a line.
                path.write_text(f"{whole}\n" if whole else "")
            for line in whole.splitlines():
                self._found.update(json.loads(line))

    def __len__(self) -> int:
        return len(self._found)

    def __getitem__(self, name: str) -> dict[str, Any]:
        """The result of that name, empty where there is none."""
        return self._found.get(name, {})

    def get(self, name: str, find: Callable[[], dict[str, Any]],
            holds: Callable[[dict[str, Any]], bool] = lambda found: True) -> dict[str, Any]:
        """The result of that name; where there is none yet, or none that ``holds``, the one that ``find`` gives."""
        if name not in self._found or not holds(self._found[name]):
            self._found[name] = find()
            if self._path is not None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                with self._path.open("a") as file:
                    file.write(json.dumps({name: self._found[name]}) + "\n")
        return self._found[name]
