"""Liberty text: groups, attributes and tables, as `Liberty User Guide and Reference Manual`, version 2017.06, has them.

A reader for what synthesis, area, delay and energy need: the grammar is read whole, its meaning is in
`circulant.boards.asic.cells.library`.
"""
import re
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from circulant.sim.refusal import Refusal

__all__ = ["Group", "numbers", "parse"]

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
    tokens = [token for token in _TOKEN.findall(text) if not token.startswith(("/*", "//", "\n", "\\\n"))][::-1]
    top = Group("", [])
    open_groups = [top]

    def following() -> str:
        if not tokens:
            raise Refusal(f"A liberty file must close each brace that it opens, but {file} breaks off; copy it again")
        return tokens.pop()

    while tokens or len(open_groups) > 1:
        name, group = following(), open_groups[-1]
        if name == "}" and group is not top:
            open_groups.pop()
        elif name != ";":
            values = []
            match following():
                case ":":  # The semicolon may be missing at the end of a line.
                    values.append(following())
                    while tokens and tokens[-1] not in ";}" and tokens[-2:-1] not in ([":"], ["("]):
                        values.append(tokens.pop())
                    group.attributes[name] = list(map(_plain, values))
                case "(":
                    while (token := following()) != ")":
                        values += [_plain(token)] if token != "," else []
                    if tokens and tokens[-1] == "{":
                        tokens.pop()
                        group.groups.append(Group(name, values))
                        open_groups.append(group.groups[-1])
                    else:
                        group.attributes.setdefault(name, []).extend(values)
                case other:
                    raise Refusal(f"A liberty file must hold attributes and groups, but {file} has {name!r} before "
                                  f"{other!r}; name a .lib file")
    libraries = top.all("library")
    if len(libraries) != 1:
        raise Refusal(f"A liberty file must hold one library, but {file} holds {len(libraries) or 'none'}; name a .lib "
                      "file")
    return libraries[0]


def _plain(token: str) -> str:
    return re.sub(r"\\\s*", "", token[1:-1]) if token.startswith('"') else token


def numbers(values: list[str]) -> NDArray[np.float64]:
    """The numbers of ``index_1`` or ``values``."""
    return np.array([float(number) for text in values for number in text.replace(",", " ").split()])
