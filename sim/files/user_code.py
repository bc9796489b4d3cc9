"""Objects in Python files of a user, named ``FILE.py:NAME`` by an experiment. To load one is to run its file.

A file is run once in a process for each content that it has. What goes wrong in it is a refusal with the place and the
last line of its traceback.
"""
import hashlib
import os
import sys
import traceback
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from circulant.sim.files import files
from circulant.sim.refusal import Refusal, nearest

__all__ = ["LIMIT", "calling", "content", "load_object", "parted"]

LIMIT = 1 << 20
"""Bytes of a file."""

_LOADED: dict[tuple[str, str], ModuleType] = {}
"""Modules by path and content."""


def parted(key: str, path: str) -> tuple[Path, str]:
    """File and name of ``FILE.py:NAME``.

    Parameters:
        key: of the experiment that has the path, for the message.

    Raises:
        Refusal: when it is none.
    """
    file, colon, name = path.rpartition(":")
    if not colon or not file.endswith(".py") or not name.isidentifier():
        raise Refusal(f"{key} must name a Python file and what to take from it, such as 'net.py:Net', not {path!r}; "
                      "write both, with a colon between them")
    return Path(file).expanduser(), name


def content(key: str, path: str) -> bytes:
    """The bytes of the file of ``FILE.py:NAME``.

    Raises:
        Refusal: when it is missing or cannot be read.
    """
    file, _ = parted(key, path)
    try:
        return files.read_bytes(file, LIMIT)
    except FileNotFoundError:
        raise Refusal(f"{key} must name a file that exists, but there is no {file}; correct the path, which starts "
                      "from the folder of the experiment file") from None
    except OSError as error:
        raise Refusal(f"{file}, which {key} names, cannot be read: {files.reason(error)}") from None


def load_object(key: str, path: str) -> Any:
    """The object that ``FILE.py:NAME`` names. Runs the file.

    Raises:
        Refusal: when the file is missing, raises, or has no such name.
    """
    file, name = parted(key, path)
    text = content(key, path)
    place = os.path.abspath(file)
    known = place, hashlib.sha256(text).hexdigest()
    if known not in _LOADED:
        _LOADED[known] = _run(file, place, text, known[1])
    module = _LOADED[known]
    if not hasattr(module, name):
        own = [each for each in vars(module) if not each.startswith("_")]
        raise Refusal(f"{file} must have {name!r}, which {key} names, but it has no such name"
                      f"{nearest(name, own) or '; it has ' + (', '.join(own) or 'none')}")
    return getattr(module, name)


def calling(key: str, path: str, call: Callable[..., Any], *given: Any, **arguments: Any) -> Any:
    """The result of a call of something out of a user's file.

    Raises:
        Refusal: in place of what it raises, but for refusals, with file and line.
    """
    try:
        return call(*given, **arguments)
    except Refusal:
        raise
    except Exception as error:
        file, name = parted(key, path)
        raise Refusal(f"{key} = {str(file.name) + ':' + name!r} must run, but {_said(file, error)}; correct it "
                      "there, or what it is given") from None


def _run(file: Path, place: str, text: bytes, sha: str) -> ModuleType:
    module = ModuleType(f"circulant_user_{file.stem}_{sha[:12]}")
    module.__file__, module.__spec__ = place, ModuleSpec(module.__name__, None, origin=place)
    sys.modules[module.__name__] = module  # Dataclasses and inspect look for it there.
    try:
        exec(compile(text, place, "exec"), vars(module))  # To run it is what the experiment asks for.
    except (Exception, SystemExit) as error:
        del sys.modules[module.__name__]
        raise Refusal(f"{file} must run without an error, but {_said(file, error)}; correct it there") from None
    return module


def _said(file: Path, error: BaseException) -> str:
    """The last line of a traceback, with the last line of the user's file that was at work."""
    line = error.lineno if isinstance(error, SyntaxError) else next(
        (frame.lineno for frame in reversed(traceback.extract_tb(error.__traceback__))
         if os.path.abspath(frame.filename) == os.path.abspath(file)), None)
    last = (traceback.format_exception_only(error)[-1].strip().splitlines() or [type(error).__name__])[0]
    return f"{file}{'' if line is None else f', line {line}'}: {last}"
