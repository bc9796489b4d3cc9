"""Comments of Verilog, from what units say of themselves: docstrings, parameters, latencies, places in the source."""
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from pkgutil import resolve_name

import amaranth
from amaranth.hdl import Fragment, Module

from circulant.hw.emit.declarations import Notes

__all__ = ["components", "meaning", "notes", "source"]

COLUMNS = 117
NAMED = re.compile(r"^([sm]_axis)_\w+_(t(?:data|valid|ready|last))$")
"""A signal of one of several inputs or outputs, which it is called after."""

PORTS = {"clk": "clock", "rst": "reset, synchronous, active high"}
"""Meanings of the ports that every module with registers has."""
PARAGRAPHS = 2
SECTIONS = ("Parameters", "Members", "Raises", "Attributes")
STREAM = {"valid": "a payload is offered", "ready": "a payload that is offered is taken at this edge"}
REFERENCE = re.compile(r"(?:[,;] | ?\()?see `([\w.]+)`\)?")
"""A reference to a class or a function that describes members of the same names, or those of an interface."""


def components(fragment: Fragment, name: str) -> dict[str, object]:
    """The units below a fragment, by the names of their modules."""
    found = {name: next((each for each in fragment.origins or () if not isinstance(each, Module)), None)}
    for index, (below, own, _) in enumerate(fragment.subfragments):
        if isinstance(below, Fragment):
            found |= components(below, f"{name}.{own or f'U${index}'}")
    return found


def notes(component: object) -> Notes:
    """Comments of the module of a unit; of a module without one, its source alone."""
    if component is None:
        return Notes(ports=PORTS, source=source)
    summary = _summary(type(component).__doc__ or "")
    header = [*_wrapped(f"{type(component).__name__} ({_module(type(component))}): {summary}")]
    if shape := ", ".join(f"{name} = {value}" for name, value in _shape(component)):
        header += _wrapped(f"Shape: {shape}.")
    latency = _latency(component)
    if latency is not None:
        header += _wrapped(f"Latency: {latency} cycle{'' if latency == 1 else 's'}.")
    ports = dict(PORTS)
    signature = getattr(component, "signature", None)
    for path, _, _ in signature.flatten(component) if signature is not None else ():
        ports["__".join(map(str, path))] = meaning(type(component), path)
    return Notes(tuple(header), ports, source)


def meaning(kind: type, path: Sequence[str | int]) -> str:
    """A comment of a member of a unit, or of an interface in it; its name where nothing is said of it.

    Parameters:
        kind: the unit's class, whose docstring describes the members, or refers to one that does.
        path: names down to the member, with its number where it is one of several.
    """
    names = [name for name in path if isinstance(name, str)]
    if said := _said(kind, names):
        return said
    handshake = len(names) > 1 and names[-1] in STREAM
    return f"{names[0]}: {STREAM[names[-1]]}" if handshake else ".".join(map(str, path))


def _said(holder: object, names: Sequence[str]) -> str:
    """A member's description by the docstring of a class or a function, references followed; empty without one."""
    first, *below = names
    described = _described(holder)
    if below and (text := described.get(".".join(names))):
        return f"{first}: {_plain(text)}"
    text = described.get(first) or described.get(NAMED.sub(r"\1_\2", first)) or next(
        (text for name, text in described.items() if name.endswith("…") and first.startswith(name[:-1])), "")
    if reference := REFERENCE.search(text):
        referred = _referred(holder, reference[1])
        if below and referred and (within := _said(referred, below)):
            return f"{first}: {within}"
        if referred and reference[0] == text:
            return _said(referred, names)
    return "" if below and below[-1] in STREAM else _plain(text)


def _plain(text: str) -> str:
    return REFERENCE.sub("", text).replace("`", "").strip()


@cache
def _described(holder: object) -> Mapping[str, str]:
    """Descriptions of members, by their names: of a class also those that it inherits."""
    found: dict[str, str] = {}
    for each in reversed(holder.__mro__ if isinstance(holder, type) else (holder,)):
        found |= _members(each.__doc__ or "") | vars(each).get("meanings", {})
    return found


def _referred(holder: object, name: str) -> object:
    """The object that a docstring names: in full, or as its module knows it."""
    known = vars(sys.modules[holder.__module__])
    return resolve_name(name) if "." in name else known.get(name)


@cache
def source(place: str) -> str:
    """A file and a line, the file below the folder of its package."""
    if not place:
        return ""
    file, _, line = place.rpartition(":")
    path = Path(file).resolve()
    for root, prefix in _roots():
        if path.is_relative_to(root):
            return f"{prefix}{path.relative_to(root).as_posix()}:{line}"
    return f"{path.name}:{line}"


@cache
def _roots() -> list[tuple[Path, str]]:
    """Folders of packages, and what their files are called by in front: those of this package by their own folders."""
    package = Path(__file__).parents[2]  # Its folders may be links.
    own = [((package / name).resolve(), f"{name}/") for name in ("hw", "sim")]
    return [*own, (Path(amaranth.__file__).resolve().parent, "amaranth/")]


def _module(kind: type) -> str:
    parts = kind.__module__.split(".")
    return "/".join(parts[1:] if parts[0] == "circulant" and len(parts) > 2 else parts) + ".py"


@cache
def _summary(docstring: str) -> str:
    """The first two paragraphs of a docstring, without its sections."""
    text = inspect.cleandoc(docstring)
    told = (each for each in text.split("\n\n")[:PARAGRAPHS] if each.partition("\n")[0].rstrip(":") not in SECTIONS)
    return " ".join(" ".join(told).replace("`", "").split())


@cache
def _members(docstring: str) -> Mapping[str, str]:
    """Descriptions in the section of members, by their names."""
    within, names, text, found = False, "", "", dict[str, str]()
    for line in [*inspect.cleandoc(docstring).split("\n"), ""]:
        if line == "Members:":
            within = True
            continue
        if not within:
            continue
        entry = line.startswith("    ") and not line.startswith("     ") and ":" in line
        if entry or not line.startswith("    "):
            found |= dict.fromkeys(names.split(", ") if names else (), " ".join(text.split()).rstrip("."))
            names, _, text = line.strip().partition(":") if entry else ("", "", "")
            if not line.startswith("    "):
                break
        else:
            text += " " + line.strip()
    return found


def _shape(component: object) -> Iterator[tuple[str, int]]:
    """Numbers that a unit was made with."""
    for name in inspect.signature(type(component).__init__).parameters:
        value = getattr(component, name, getattr(component, f"_{name}", None))
        if is_dataclass(value) and not isinstance(value, type):
            yield from ((each.name, getattr(value, each.name)) for each in fields(value)
                        if isinstance(getattr(value, each.name), int))
        elif isinstance(value, int):
            yield name, value


def _latency(component: object) -> int | None:
    """The latency that a unit has, or its shape."""
    for holder in (component, getattr(component, "shape", None), getattr(component, "_shape", None)):
        found = getattr(holder, "latency", None)
        if isinstance(found, int):
            return found
    return None


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, COLUMNS, break_long_words=False, break_on_hyphens=False)
