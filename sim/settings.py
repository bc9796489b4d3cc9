"""Tables of settings: frozen dataclasses whose keys know their legal values, and say them when they refuse.

An experiment file is made of such tables, and functions of the Python API take their keys as arguments, so that a
setting has its default, its range and its meaning in one place.

A key is a dataclass field made by `key`. Its annotation is the type that TOML must give: ``int``, ``float``, ``str``,
``bool``, ``int | dict[str, int]`` (so for ``float``) for one value or a table of them, ``tuple[str, ...]`` and
``tuple[int, ...]`` for a list, or a ``dict`` for a table, whose values `Table.contradictions` checks.
"""
import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from circulant.sim.files.schema import shown
from circulant.sim.refusal import Refusal, nearest

__all__ = ["Illegal", "Key", "Table", "choices", "key", "keys", "read", "title"]

T = TypeVar("T", bound="Table")

NAMES, NUMBERS = tuple[str, ...], tuple[int, ...]

_KINDS = {int: "an integer", float: "a number", str: "a string", bool: "true or false"}


@dataclass(frozen=True)
class Key:
    """Meaning and values of a key.

    Members:
        zero: what 0 stands for, where it is legal besides the range.
    """

    doc: str
    low: float | None = None
    high: float | None = None
    zero: str = ""
    choices: tuple[Any, ...] = ()
    power_of_two: bool = False

    def rule(self, kind: Any) -> str:
        """The legal values in words: "an integer from 2 to 18"."""
        if self.choices:
            return "one of " + ", ".join(repr(choice) for choice in self.choices)
        if kind == NAMES:
            return "a list of strings"
        if get_origin(kind) is dict:
            return "a table"
        if kind == NUMBERS:
            return f"a list, each {self.rule(int)}"
        if kind not in _KINDS:
            return self.rule(get_args(kind)[0]) + ", or a table from matrix name to such a number"
        text = "a power of two" if self.power_of_two else _KINDS[kind]
        if self.low is not None and self.high is not None:
            text = f"{text} from {self.low} to {self.high}"
        elif self.low is not None:
            text = f"{text} of at least {self.low}"
        return f"{text}, or 0 for {self.zero}" if self.zero else text

    def refuses(self, value: Any, kind: Any) -> bool:
        """Whether ``value`` breaks the rule."""
        try:
            _validator(self, kind)(value)
        except ValueError:  # pydantic's, whose words are not those of a setting.
            return True
        return False

    def annotation(self, kind: Any) -> Any:
        """The legal values as a type that pydantic checks."""
        from pydantic import AfterValidator, Field, Strict

        if kind in (NAMES, NUMBERS):
            each: Any = self.annotation(get_args(kind)[0])
            return Annotated[list[each], Strict()] | Annotated[tuple[each, ...], Strict()]
        if get_origin(kind) is dict:
            return dict[str, object]
        if kind not in _KINDS:
            one: Any = self.annotation(get_args(kind)[0])
            return one | dict[str, one]
        made: Any = Annotated[kind, Strict(), Field(ge=self.low, le=self.high)]
        if self.power_of_two:
            made = Annotated[made, AfterValidator(_power_of_two)]
        if kind is float:
            made = Annotated[made, Field(allow_inf_nan=False)]
        if self.choices:
            return Annotated[made, AfterValidator(partial(_among, self.choices))]
        return Annotated[kind, Strict(), AfterValidator(partial(_among, (0,)))] | made if self.zero else made


def key(default: Any, doc: str, **limits: Any) -> Any:
    """A dataclass field: its default, one line on what it means, and the limits of `Key`."""
    rule = {"key": Key(doc, **limits)}
    if isinstance(default, dict):
        return dataclasses.field(default_factory=default.copy, metadata=rule)
    return dataclasses.field(default=default, metadata=rule)


class Illegal(Refusal):
    """Values of a table that are refused.

    Members:
        problems: a sentence for each.
    """

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


@dataclass(frozen=True)
class Table:
    """Base of the tables: a frozen dataclass that refuses illegal values, all of them at once.

    Raises:
        Illegal: values that break the rule of their key; where there are none, what `contradictions` says.
    """

    def __post_init__(self) -> None:
        problems = []
        for name, (rule, kind, default) in keys(type(self)).items():
            value = getattr(self, name)
            usual = type(value) is type(default) and value == default
            if not usual and rule.refuses(value, kind):
                problems.append(_sentence(f"{title(type(self))}.{name}", rule, kind, value))
            elif kind is float or kind in (NAMES, NUMBERS):
                object.__setattr__(self, name, float(value) if kind is float else tuple(value))
        if problems := problems or self.contradictions():
            raise Illegal(problems)

    def besides(self, *taken: str) -> list[str]:
        """The keys that do not have their defaults, but for those named, as "key = value"."""
        return [f"{name} = {getattr(self, name)!r}" for name, (_, _, default) in keys(type(self)).items()
                if name not in taken and getattr(self, name) != default]

    def contradictions(self) -> list[str]:
        """A sentence for each pair of values that are legal alone, and not together."""
        return []


def title(table: type[Table]) -> str:
    """The name of a table in the file: ``[model]`` is class ModelSettings, ``[hardware]`` class Hardware."""
    return table.__name__.removesuffix("Settings").lower()


def keys(table: type[Table]) -> dict[str, tuple[Key, Any, Any]]:
    """Rule, type and default of every key of ``table``, in its order."""
    hints = get_type_hints(table)
    return {field.name: (field.metadata["key"], hints[field.name],
                         field.default if field.default is not dataclasses.MISSING else {})
            for field in dataclasses.fields(table)}


def choices(table: type[Table], name: str) -> tuple[Any, ...]:
    """The values that a key of ``table`` may have."""
    return keys(table)[name][0].choices


def read(table: type[T], given: Any) -> tuple[T | None, list[str]]:
    """The table that a file gives, or None and one sentence for each thing that is wrong with it."""
    name = title(table)
    if not isinstance(given, Mapping):
        return None, [f"[{name}] must be a table of keys, not {shown(given)}"]
    legal = keys(table)
    problems = [f"[{name}] has no key {shown(word)}{nearest(word, legal) or '; its keys are ' + ', '.join(legal)}"
                for word in given if word not in legal]
    try:
        made = table(**{word: value for word, value in given.items() if word in legal})
    except Illegal as illegal:
        return None, problems + illegal.problems
    return (None if problems else made), problems


@cache
def _validator(rule: Key, kind: Any) -> Callable[[Any], Any]:
    """The check of a key's values, made for the first that is not the default, since pydantic takes 0.1 s to load."""
    from pydantic import TypeAdapter

    return TypeAdapter(rule.annotation(kind)).validate_python


def _among(legal: tuple[Any, ...], value: Any) -> Any:
    if value not in legal:
        raise ValueError("none of the choices")
    return value


def _power_of_two(value: int) -> int:
    if value & (value - 1):
        raise ValueError("no power of two")
    return value


def _sentence(name: str, rule: Key, kind: Any, value: Any) -> str:
    hint = nearest(value, rule.choices) if kind is str and isinstance(value, str) else ""
    return f"{name} must be {rule.rule(kind)}, not {shown(value)}{hint}"
