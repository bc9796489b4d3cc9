"""The contents of files: rules for plain values, and the one sentence that names what breaks them.

A rule is one of the classes here; `require` holds the values of a JSON document to it. Types are exact: true is no
integer, 1.0 neither, and a number is finite.
"""
import math
import re
import reprlib
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from circulant.sim.refusal import Refusal

__all__ = ["SHA", "Anything", "Choice", "Flag", "Int", "Kinds", "Later", "Listing", "Mapped", "Null", "Number", "Rule",
           "Table", "Text", "WAY_OUT", "Where", "differing", "require", "shown"]

WAY_OUT = "the file was changed or damaged: run the step that writes it again"



class _Short(reprlib.Repr):
    def repr_int(self, x: int, level: int) -> str:
        """An integer, but for those that Python does not write out."""
        return f"an integer of {x.bit_length():,} bits" if x.bit_length() > 1 << 10 else super().repr_int(x, level)


_SHORT = _Short()
_SHORT.maxstring = _SHORT.maxother = 60
_SHORT.maxlong = 40


class _BrokenError(Exception):
    """A field, and what is wrong with it: "must be an integer, not 'x'"."""


class Rule(ABC):
    """A condition of a value, in ``words``."""

    @property
    @abstractmethod
    def words(self) -> str:
        """The values that keep to the rule, in words."""

    @abstractmethod
    def holds(self, value: Any) -> bool:
        """Whether the value itself keeps to the rule, whatever its members are."""

    def check(self, value: Any, where: str) -> None:
        """Check that a value, and all that is in it, keeps to the rule; ``where`` is its place in the file."""
        if not self.holds(value):
            raise _BrokenError(where, f"must be {self.words}, not {shown(value)}")


@dataclass(frozen=True)
class Int(Rule):
    """An integer from ``low`` to ``high``."""

    low: int
    high: int

    @property
    def words(self) -> str:
        return f"an integer from {self.low} to {self.high}"

    def holds(self, value: Any) -> bool:
        return type(value) is int and self.low <= value <= self.high


@dataclass(frozen=True)
class Number(Rule):
    """A finite number from ``low`` to ``high``."""

    low: float = -math.inf
    high: float = sys.float_info.max

    @property
    def words(self) -> str:
        if self.high < sys.float_info.max:
            return f"a number from {self.low:,g} to {self.high:,g}"
        return "a finite number" + (f" of at least {self.low:g}" if self.low > -math.inf else "")

    def holds(self, value: Any) -> bool:
        return type(value) in (int, float) and -sys.float_info.max <= value <= self.high and value >= self.low


@dataclass(frozen=True)
class Flag(Rule):
    @property
    def words(self) -> str:
        return "true or false"

    def holds(self, value: Any) -> bool:
        return type(value) is bool


@dataclass(frozen=True)
class Text(Rule):
    """A text of at most ``most`` characters, the whole of which ``pattern`` matches; ``what`` says that in words."""

    most: int = 10_000
    pattern: str = ""
    what: str = ""

    @property
    def words(self) -> str:
        return self.what or f"a text of at most {self.most:,} characters"

    def holds(self, value: Any) -> bool:
        return (isinstance(value, str) and len(value) <= self.most
                and (not self.pattern or re.fullmatch(self.pattern, value) is not None))


SHA = Text(64, "[0-9a-f]{64}", "a SHA-256 of 64 hexadecimal digits")


@dataclass(frozen=True)
class Choice(Rule):
    values: tuple[str, ...]

    @property
    def words(self) -> str:
        *first, last = map(repr, self.values)
        return f"{', '.join(first)} or {last}" if first else last

    def holds(self, value: Any) -> bool:
        return isinstance(value, str) and value in self.values


@dataclass(frozen=True)
class Null(Rule):
    """null, or what another rule says."""

    rule: Rule

    @property
    def words(self) -> str:
        return f"null or {self.rule.words}"

    def holds(self, value: Any) -> bool:
        return value is None or self.rule.holds(value)

    def check(self, value: Any, where: str) -> None:
        if value is not None:
            super().check(value, where)
            self.rule.check(value, where)


@dataclass(frozen=True)
class Anything(Rule):
    """A value that nobody reads but people."""

    @property
    def words(self) -> str:
        return "anything"

    def holds(self, value: Any) -> bool:
        return True


@dataclass(frozen=True)
class Listing(Rule):
    """A list whose elements keep to a rule."""

    rule: Rule
    least: int = 0
    most: int = 10_000_000

    @property
    def words(self) -> str:
        if self.least == self.most:
            return f"a list of {self.least} elements"
        return "a list" + (f" of at least {self.least} elements" if self.least else "")

    def holds(self, value: Any) -> bool:
        return isinstance(value, list) and self.least <= len(value) <= self.most

    def check(self, value: Any, where: str) -> None:
        super().check(value, where)
        for n, each in enumerate(value):
            self.rule.check(each, f"{where}[{n}]")


@dataclass(frozen=True)
class Mapped(Rule):
    """An object of any keys whose values keep to a rule."""

    rule: Rule

    @property
    def words(self) -> str:
        return "an object"

    def holds(self, value: Any) -> bool:
        return isinstance(value, Mapping)

    def check(self, value: Any, where: str) -> None:
        super().check(value, where)
        for key, each in value.items():
            self.rule.check(each, _member(where, key))


@dataclass(frozen=True)
class Table(Rule):
    """An object of named members.

    Parameters:
        members: that have to be there.
        optional: that may be missing.
        open: whether others may be there, too, which nobody reads.
    """

    members: Mapping[str, Rule]
    optional: Mapping[str, Rule] = field(default_factory=dict)
    open: bool = False

    @property
    def words(self) -> str:
        return "an object"

    def holds(self, value: Any) -> bool:
        return isinstance(value, Mapping)

    def check(self, value: Any, where: str) -> None:
        super().check(value, where)
        for name, rule in self.members.items():
            if name not in value:
                raise _BrokenError(_member(where, name), "must be there, but it is missing")
            rule.check(value[name], _member(where, name))
        for name, rule in self.optional.items():
            if name in value:
                rule.check(value[name], _member(where, name))
        for name in value:
            if not self.open and name not in self.members and name not in self.optional:
                raise _BrokenError(_member(where, name), "must not be there, since this version knows no such field")


@dataclass(frozen=True)
class Kinds(Rule):
    """An object whose member ``key`` says which of the tables it keeps to."""

    key: str
    tables: Mapping[str, Table]

    @property
    def words(self) -> str:
        return "an object"

    def holds(self, value: Any) -> bool:
        return isinstance(value, Mapping)

    def check(self, value: Any, where: str) -> None:
        super().check(value, where)
        Table({self.key: Choice(tuple(self.tables))}, open=True).check(value, where)
        self.tables[value[self.key]].check(value, where)


@dataclass(frozen=True)
class Where(Rule):
    """Another rule, and a condition of the whole value, which ``words`` say."""

    rule: Rule
    condition: Callable[[Any], bool]
    what: str

    @property
    def words(self) -> str:
        return self.what

    def holds(self, value: Any) -> bool:
        return self.rule.holds(value) and self.condition(value)

    def check(self, value: Any, where: str) -> None:
        self.rule.check(value, where)  # First, so that the condition sees what it expects.
        super().check(value, where)


@dataclass(frozen=True)
class Later(Rule):
    """A rule that is found when it is needed: one that contains itself."""

    rule: Callable[[], Rule]

    @property
    def words(self) -> str:
        return self.rule().words

    def holds(self, value: Any) -> bool:
        return self.rule().holds(value)

    def check(self, value: Any, where: str) -> None:
        self.rule().check(value, where)


def require(rule: Rule, value: Any, path: str | Path, way_out: str = WAY_OUT) -> None:
    """Check that the document of a file keeps to a rule.

    Raises:
        Refusal: naming file, field, rule and value.
    """
    try:
        rule.check(value, "")
    except _BrokenError as broken:
        where, what = broken.args
        raise Refusal(f"{path}{f': field {where[:200]!r}' if where else ''} {what}; {way_out}") from None


def shown(value: Any) -> str:
    """A value in a message, cut where it is long."""
    return _SHORT.repr(value)


def differing(was: Any, now: Any, where: str = "") -> Iterator[tuple[str, Any, Any]]:
    """The places at which two documents differ, with both values; None stands for what is missing."""
    if isinstance(was, Mapping) and isinstance(now, Mapping):
        for key in dict.fromkeys((*was, *now)):
            yield from differing(was.get(key), now.get(key), _member(where, key))
    elif isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        for n, pair in enumerate(zip(was, now, strict=True)):
            yield from differing(*pair, f"{where}[{n}]")
    elif type(was) is not type(now) or was != now:
        yield where, was, now


def _member(where: str, name: object) -> str:
    return f"{where}.{name}" if where else str(name)
