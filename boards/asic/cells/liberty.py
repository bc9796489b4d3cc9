"""Liberty text: groups, attributes and tables, as `Liberty User Guide and Reference Manual`, version 2017.06, has them.

A reader for what synthesis, area, delay and energy need: the grammar is read whole, its meaning is in
`circulant.boards.asic.cells.library`.
"""
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from circulant.sim.refusal import Refusal

__all__ = ["Group", "numbers", "parse", "without"]

_TOKEN = re.compile(r'/\*.*?\*/|"(?:[^"\\]|\\.)*"|//[^\n]*|[{}();:,]|\\?\n|[^\s{}();:,"\\]+', re.S)


@dataclass
class Group:
    """A group: ``kind (arguments) { attributes; groups }``.

    Parameters:
        attributes: the values of each, as text without quotes; a complex one has several.
    """

    kind: str
    arguments: list[str]
    attributes: dict[str, list[str]] = field(default_factory=dict)
    groups: list["Group"] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Its first argument; an empty string without one."""
        return self.arguments[0] if self.arguments else ""

    def text(self, name: str, default: str = "") -> str:
        """The value of a simple attribute."""
        return (self.attributes.get(name) or [default])[0]

    def number(self, name: str, default: float = 0.0) -> float:
        """The value of a simple attribute as a number.

        Raises:
            Refusal: when it is none.
        """
        said = self.text(name)
        try:
            return float(said) if said else default
        except ValueError:
            raise Refusal(f"The attribute {name} of {self.kind} {self.name} in a liberty file must be a number, not "
                          f"{said!r}; take the file as the foundry gives it") from None

    def all(self, kind: str) -> list["Group"]:
        """The groups of a kind that lie directly in it."""
        return [group for group in self.groups if group.kind == kind]


def parse(text: str, file: str) -> Group:
    """The library of a liberty file.

    Parameters:
        file: its name, for messages.

    Raises:
        Refusal: when the text is none, or breaks off.
    """
    reader = _Reader(text, file)
    top = Group("", [])
    while reader.more():
        reader.statement(top)
    libraries = top.all("library")
    if len(libraries) != 1:
        raise Refusal(f"A liberty file must hold one library, but {file} holds {len(libraries) or 'none'}; name a .lib "
                      "file")
    return libraries[0]


class _Reader:
    def __init__(self, text: str, file: str) -> None:
        self._file = file
        self._tokens = [token for token in _TOKEN.findall(text)
                        if not token.startswith(("/*", "//", "\n", "\\\n"))]
        self._at = 0

    def more(self) -> bool:
        return self._at < len(self._tokens)

    def _next(self) -> str:
        if not self.more():
            raise Refusal(f"A liberty file must close each brace that it opens, but {self._file} breaks off; copy it "
                          "again")
        self._at += 1
        return self._tokens[self._at - 1]

    def statement(self, group: Group) -> None:
        """Read an attribute or a group into ``group``."""
        name = self._next()
        if name == ";":
            return
        follows = self._next()
        if follows == ":":
            group.attributes[name] = [_plain(value) for value in self._until_end()]
        elif follows == "(":
            arguments = self._arguments()
            if self.more() and self._tokens[self._at] == "{":
                self._at += 1
                below = Group(name, arguments)
                while (token := self._next()) != "}":
                    self._at -= token != "}"
                    self.statement(below)
                group.groups.append(below)
            else:
                group.attributes.setdefault(name, []).extend(arguments)
        else:
            raise Refusal(f"A liberty file must hold attributes and groups, but {self._file} has {name!r} before "
                          f"{follows!r}; name a .lib file")

    def _until_end(self) -> Iterator[str]:
        """The value of a simple attribute. Its semicolon may be missing at the end of a line."""
        yield self._next()
        while self.more() and self._tokens[self._at] not in (";", "}"):
            if self._at + 1 < len(self._tokens) and self._tokens[self._at + 1] in (":", "("):
                return
            yield self._next()

    def _arguments(self) -> list[str]:
        found = []
        while (token := self._next()) != ")":
            if token != ",":
                found.append(_plain(token))
        return found


def _plain(token: str) -> str:
    return re.sub(r"\\\s*", "", token[1:-1]) if token.startswith('"') else token


def numbers(values: list[str]) -> NDArray[np.float64]:
    """The numbers of ``index_1`` or ``values``."""
    return np.array([float(number) for text in values for number in text.replace(",", " ").split()])


def without(text: str, *kinds: str, cells: Callable[[str], bool] = lambda name: False) -> str:
    """The text of a liberty file without the groups of some kinds, which tools would read for nothing.

    A group of these kinds begins a line, as all libraries have it.

    Parameters:
        cells: whether a cell is left out whole.
    """
    found, depth = [], 0
    begins = re.compile(rf"\s*(?:{'|'.join(kinds)})\s*\(")
    cell = re.compile(r"\s*cell\s*\(\s*\"?([^\s\")]+)")
    for line in text.splitlines():
        if depth or ("{" in line and (begins.match(line) or ((named := cell.match(line)) and cells(named[1])))):
            depth += line.count("{") - line.count("}")
            continue
        found.append(line)
    return "\n".join(found) + "\n"
