"""Our own Python sources, and their syntax trees, each parsed once for all tests of a process."""
import ast
import gc
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]


def python_files(*folders: str | Path) -> list[Path]:
    """The Python files below some folders of the project, those behind links left out."""
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))
            if not any(parent.is_symlink() for parent in path.parents)]


@cache
def tree(path: Path) -> ast.Module:
    """The syntax tree of a file; nobody may change it."""
    collects = gc.isenabled()
    gc.disable()  # All that parsing makes is kept, and a search for garbage in it takes longer than to parse.
    try:
        return ast.parse(path.read_text("utf-8"))
    finally:
        if collects:
            gc.enable()
