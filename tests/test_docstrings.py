"""What each source says of itself: a docstring that begins with a noun, and the names that are public."""
import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from tests.sources import python_files, tree
from tests.test_architecture import SOURCES, module_name, only_wrong


def exports(source: ast.Module) -> list[list[str]]:
    """Names that each ``__all__ = […]`` of a module lists."""
    return [ast.literal_eval(node.value) for node in source.body if isinstance(node, ast.Assign)
            and [getattr(target, "id", None) for target in node.targets] == ["__all__"]]


def test_most_modules_say_what_is_public():
    silent = [path.name for path in SOURCES if not exports(tree(path))]
    assert len(silent) < len(SOURCES) / 5, silent


def untrue(path: Path) -> list[str]:
    """What a module says wrongly of itself: nothing at all, or public names that it lacks or lists twice."""
    module = tree(path)
    found = [] if not module.body or ast.get_docstring(module) else ["a module must begin by saying what it is"]
    for public in exports(module):
        there = import_module(module_name(path))
        found += [f"{name} is not there" for name in public if not hasattr(there, name)]
        found += [f"{name} stands twice" for name in set(public) if public.count(name) > 1]
    return found


def test_public_names_are_true():
    assert only_wrong({path: untrue(path) for path in SOURCES}) == {}


def docstrings(source: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and text of every docstring, those of constants too."""
    for node in ast.walk(source):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value


def without_a_noun(source: ast.Module) -> list[str]:
    """Docstrings of a file that begin with no noun."""
    return [f"line {line}: {text.splitlines()[0]}" for line, text in docstrings(source)
            if text.startswith(("Of ", "That ", "Those ", "What "))]


def test_a_docstring_begins_with_what_it_describes():
    assert only_wrong({path: without_a_noun(tree(path)) for path in [*SOURCES, *python_files("benchmarks")]}) == {}


def test_a_docstring_without_a_noun_is_seen():
    source = '"""A module."""\ndef f():\n    """What it gives.\n\n    More."""\nN = 1\n"""Of a."""'
    assert without_a_noun(ast.parse(source)) == ["line 7: Of a.", "line 3: What it gives."]
