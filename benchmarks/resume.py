"""Results by name, line by line in a file: a measurement that is interrupted goes on where it stopped."""
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

__all__ = ["CHIPS", "MUTANTS", "PROOFS", "Record"]

CHIPS, MUTANTS, PROOFS = Path("build") / "chips.jsonl", Path("build") / "mutation", Path("build") / "proofs.jsonl"
"""Where records are: of chips that were played, a folder of those of mutants, and that of proofs; ``make clean``
removes them."""


T = TypeVar("T")


class Record(Generic[T]):
    """Results by name, which are worked out once.

    Parameters:
        path: of the file; it and its folder are made when there is something to write. None keeps nothing.
        kind: the dataclass of a result, or dict.
    """

    def __init__(self, path: Path | None, kind: Callable[..., T]) -> None:
        self._path, self._kind, self._found = path, kind, dict[str, dict[str, Any]]()
        if path is not None and path.exists():
            whole, _, half = path.read_text().rpartition("\n")
            if half:  # A run that was killed may have left half a line.
                path.write_text(f"{whole}\n" if whole else "")
            for line in whole.splitlines():
                self._found.update(json.loads(line))

    def __len__(self) -> int:
        return len(self._found)

    def __getitem__(self, name: str) -> T | None:
        """The result of that name; None where there is none."""
        return self._kind(**self._found[name]) if name in self._found else None

    def get(self, name: str, find: Callable[[], T], holds: Callable[[T], bool] = lambda found: True) -> T:
        """The result of that name; where there is none yet, or none that ``holds``, the one that ``find`` gives."""
        found = self[name]
        if found is None or not holds(found):
            found = find()
            self._found[name] = found if isinstance(found, dict) else vars(found)
            if self._path is not None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                with self._path.open("a") as file:
                    file.write(json.dumps({name: self._found[name]}) + "\n")
        return found
