"""Comments of Verilog, from what units say of themselves: docstrings, parameters, latencies, places in the source."""
import inspect
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path

import amaranth
from amaranth.hdl import Fragment, Module

from circulant.hw.emit.declarations import Notes

__all__ = ["components", "notes", "source"]

COLUMNS = 117
PORTS = {"clk": "clock", "rst": "reset, synchronous, active high"}
"""Meanings of the ports that every module with registers has."""
PARAGRAPHS = 2
SECTIONS = ("Parameters", "Members", "Raises", "Attributes")
STREAM = ("valid", "ready")


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
    summary, described = _described(type(component).__doc__ or "")
    members = {**described, **getattr(component, "meanings", {})}
    header = [*_wrapped(f"{type(component).__name__} ({_module(type(component))}): {summary}")]
    if shape := ", ".join(f"{name} = {value}" for name, value in _shape(component)):
        header += _wrapped(f"Shape: {shape}.")
    latency = _latency(component)
    if latency is not None:
        header += _wrapped(f"Latency: {latency} cycle{'' if latency == 1 else 's'}.")
    ports = dict(PORTS)
    signature = getattr(component, "signature", None)
    for path, _, _ in signature.flatten(component) if signature is not None else ():
        first, last = str(path[0]), str(path[-1])
        handshake = len(path) > 1 and last in STREAM
        ports["__".join(map(str, path))] = f"{first}: {last}" if handshake else members.get(first) or ".".join(
            map(str, path))
    return Notes(tuple(header), ports, source)


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
def _described(docstring: str) -> tuple[str, Mapping[str, str]]:
    """The first two paragraphs of a docstring, without its sections, and what it says of each member."""
    text = inspect.cleandoc(docstring)
    told = (each for each in text.split("\n\n")[:PARAGRAPHS] if each.partition("\n")[0].rstrip(":") not in SECTIONS)
    return " ".join(" ".join(told).replace("`", "").split()), dict(_members(text.split("\n")))


def _members(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Names and descriptions in the section of members, of each its first sentence."""
    within, names, text = False, "", ""
    for line in [*lines, ""]:
        if line == "Members:":
            within = True
            continue
        if not within:
            continue
        entry = line.startswith("    ") and not line.startswith("     ") and ":" in line
        if entry or not line.startswith("    "):
            if names:
                for name in names.split(","):
                    yield name.strip(), " ".join(text.replace("`", "").split()).rstrip(".")
            names, _, text = line.strip().partition(":") if entry else ("", "", "")
            if not line.startswith("    "):
                return
        else:
            text += " " + line.strip()


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
