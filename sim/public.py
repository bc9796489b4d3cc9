"""The boundary of the Python API: a call that cannot be meant is refused in one sentence, as the command line does."""
import ast
import dataclasses
import inspect
import numbers
import sys
import types
import typing
from collections.abc import Callable, Mapping
from functools import cache, wraps
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar, overload

import numpy as np

from circulant.sim.refusal import Refusal, nearest

__all__ = ["fetched", "public"]

T = TypeVar("T", bound=Callable[..., Any])

WAYS = {
    "Dataset": "make one with circulant.load_data, or circulant.Dataset of arrays",
    "Design": "make one with circulant.generate",
    "Module": "give a torch.nn.Module, such as the model of a TrainingResult",
    "Network": "make one of a torch model with circulant.export",
    "Vectors": "make them with Network.vectors",
    "ndarray": "convert it with numpy.asarray",
}
"""How one comes by a value, by the name of its type."""


@overload
def public(call: T) -> T: ...


@overload
def public(*, more: type | None = None, called: Mapping[str, str] | None = None,
           idle: Mapping[str, str] | None = None, kinds: bool = True) -> Callable[[T], T]: ...


def public(call: Any = None, *, more: type | None = None, called: Mapping[str, str] | None = None,
           idle: Mapping[str, str] | None = None, kinds: bool = True) -> Any:
    """A function or a dataclass whose arguments are checked against names and annotations before anything else happens.

    Types are checked, not values: any number may stand for another kind of number, numbers of numpy count as numbers,
    and anything that numpy reads as numbers as an array.

    Parameters:
        more: a dataclass whose fields the function takes as further keywords.
        called: those of the fields which it takes by another name, with that name.
        idle: those of the fields which would do nothing there, with the reason.
        kinds: whether types are checked; not for what says all that is wrong with them at once.

    Raises:
        Refusal: by the call, for an argument that is unknown (with the nearest name), missing, or of a wrong type.
    """
    words = {name: f"; here that is {other}" for name, other in (called or {}).items()}
    words |= {name: f", which does nothing there: {why}" for name, why in (idle or {}).items()}
    further = None if more is None else [
        field.name for field in dataclasses.fields(more) if field.name not in words]
    if call is None:
        return lambda function: _checked(function, further, words, kinds)
    return _checked(call, further, words, kinds)


def _checked(documented: Any, further: list[str] | None, words: Mapping[str, str], kinds: bool) -> Any:
    if isinstance(documented, type):
        made = _call(vars(documented)["__init__"], documented.__name__, further, words, kinds)
        setattr(documented, "__init__", made)  # noqa: B010 - mypy minds an assignment.
        return documented
    return _call(documented, documented.__qualname__, further, words, kinds)


def _call(function: Callable[..., Any], title: str, further: list[str] | None, words: Mapping[str, str], kinds: bool
          ) -> Callable[..., Any]:
    """A function whose arguments are checked.

    Parameters:
        further: keywords that it takes besides those which it names.
        words: what stands behind the name of a keyword that it does not take.
    """
    signature = inspect.signature(function)
    hints = cache(lambda: typing.get_type_hints(function))
    names = [name for name, parameter in signature.parameters.items()
             if parameter.kind is not parameter.VAR_KEYWORD and name not in ("self", "cls")]
    legal = [*names, *(further or ())]
    opened = further is None and any(each.kind is each.VAR_KEYWORD for each in signature.parameters.values())

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = tuple(map(_plain, args)), {name: _plain(value) for name, value in kwargs.items()}
        if not opened and (unknown := [name for name in kwargs if name not in legal]):
            name = unknown[0]
            way = words.get(name) or nearest(name, legal) or f"; it takes {', '.join(legal)}"
            raise Refusal(f"{title} must be given arguments that it knows, not {name!r}{way}")
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise Refusal(f"{title} must be called as {title}{_shown(signature)}, but {_misfit(error)}") from None
        for name, value in bound.arguments.items() if kinds else ():
            hint = hints().get(name)
            if name in names and hint is not None and not _fits(value, hint):
                raise Refusal(f"{title} must be given {_words(hint)} as {name}, not {_what(value)}{_way(hint)}")
        return function(*args, **kwargs)

    return call


def _plain(value: Any) -> Any:
    """A number of numpy as one of Python, also as a value of a dictionary."""
    if isinstance(value, np.generic):
        return value.item()
    if type(value) is dict and any(isinstance(each, np.generic) for each in value.values()):
        return {key: _plain(each) for key, each in value.items()}
    return value


def _shown(signature: inspect.Signature) -> str:
    shown = [("*" if each.kind is each.VAR_POSITIONAL else "**" if each.kind is each.VAR_KEYWORD else "") + name
             + ("" if each.default is each.empty else "=…")
             for name, each in signature.parameters.items() if name not in ("self", "cls")]
    return f"({', '.join(shown)})"


def _misfit(error: TypeError) -> str:
    words = str(error)
    return {"too many positional arguments": "there are too many arguments"}.get(
        words, words.replace("missing a required argument:", "it lacks the argument"))


def _options(hint: Any) -> tuple[Any, ...]:
    """The members of a union, or the one type; from Python 3.12 on, numpy's ArrayLike is an alias of a union."""
    hint = getattr(hint, "__value__", hint)
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        return tuple(each for option in typing.get_args(hint) for each in _options(option))
    return (hint,)


def _class(hint: Any) -> Any:
    """The class of an annotation, or None where it is none, such as a protocol."""
    origin = typing.get_origin(hint) or hint
    return origin if isinstance(origin, type) and not getattr(origin, "_is_protocol", False) else None


def _arrays(options: tuple[Any, ...]) -> bool:
    """Whether this is an ArrayLike: a union of which parts are protocols."""
    return any(getattr(typing.get_origin(each) or each, "_is_protocol", False) for each in options)


def _fits(value: Any, hint: Any) -> bool:
    options = _options(hint)
    if _arrays(options):
        known = tuple(each for each in options if isinstance(each, type) and each.__module__.startswith("torch"))
        held = any(isinstance(value, kind) and kind in map(_class, options) for kind in (Mapping, tuple))
        return held or isinstance(value, known) or _numeric(value) or (value is None and type(None) in options)
    return any(_is(value, each) for each in options)


def _is(value: Any, hint: Any) -> bool:
    if hint is Any:
        return True
    if hint is None or hint is type(None):
        return value is None
    if hint in (bool, int, float):
        return isinstance(value, numbers.Real | np.bool_)
    if typing.get_origin(hint) is typing.Literal:
        return value in typing.get_args(hint)
    known = _class(hint)
    return known is None or (callable(value) if known is Callable else isinstance(value, known))


def _numeric(value: Any) -> bool:
    if value is None or isinstance(value, str | bytes | Mapping | set | frozenset):
        return False
    try:
        return np.asarray(value).dtype.kind in "bifu"
    except Exception:  # An object may raise anything when numpy asks it for numbers.
        return False


NAMES = {int: "an integer", float: "a number", bool: "True or False", str: "a text", type(None): "None",
         Callable: "a function", Mapping: "a dictionary", np.ndarray: "a numpy array"}


def _words(hint: Any) -> str:
    """Words for what may be given: "a Dataset", "a text or a Path", "an array of numbers"."""
    options = _options(hint)
    if _arrays(options):
        return "an array of numbers"
    found = []
    for each in options:
        known = _class(each)
        name = getattr(known, "__name__", str(each))
        found.append(NAMES.get(known) or f"{'an' if name[0] in 'AEIOUaeio' else 'a'} {name}")
    return " or ".join(dict.fromkeys(found))


def _what(value: Any) -> str:
    """A value that is no use: itself where that is short, else its type."""
    if value is None or isinstance(value, bool | int | float | str):
        text = repr(value)
        return text if len(text) <= 60 else f"{text[:60]}…"
    known = type(value)
    return NAMES.get(known) or f"{'an' if known.__name__[0] in 'AEIOUaeio' else 'a'} {known.__name__}"


def _way(hint: Any) -> str:
    ways = [WAYS[name] for each in _options(hint) if (name := getattr(_class(each), "__name__", "")) in WAYS]
    return f"; {ways[0]}" if ways else "; give that"


def fetched(package: str, name: str) -> Any:
    """A name of a package whose ``__init__.py`` imports it for type checkers alone: imported when it is first used.

    Raises:
        AttributeError: when the package has no such name.
    """
    module = sys.modules[package]
    home = _homes(str(module.__file__)).get(name)
    if home is None:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    value = getattr(import_module(home), name)
    setattr(module, name, value)
    return value


@cache
def _homes(file: str) -> dict[str, str]:
    """By name the module from which an ``if TYPE_CHECKING`` of a file imports it."""
    blocks = (each for each in ast.parse(Path(file).read_text("utf-8")).body if isinstance(each, ast.If))
    return {alias.name: str(line.module) for block in blocks for line in block.body
            if isinstance(line, ast.ImportFrom) for alias in line.names}
