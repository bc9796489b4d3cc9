"""The contents of files: rules for plain values, and the one sentence that names what breaks them.

A rule is one of the classes here, each a schema of pydantic; `require` holds the values of a JSON document to it. Types
are exact: true is no integer, 1.0 neither, and a number is finite.
"""
import math
import reprlib
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from circulant.sim.refusal import Refusal

if TYPE_CHECKING:
    from pydantic_core import CoreSchema, ErrorDetails, SchemaValidator

__all__ = ["SHA", "Anything", "Choice", "Flag", "Int", "Kinds", "Later", "Listing", "Mapped", "Null", "Number", "Rule",
           "Table", "Text", "WAY_OUT", "Where", "differing", "require", "shown"]

WAY_OUT = "the file was changed or damaged: run the step that writes it again"

MOST = 3
"""Problems of a file that are named; the others are counted."""


class _Short(reprlib.Repr):
    def repr_int(self, x: int, level: int) -> str:
        """An integer, but for those that Python does not write out."""
        return f"an integer of {x.bit_length():,} bits" if x.bit_length() > 1 << 10 else super().repr_int(x, level)


_SHORT = _Short()
_SHORT.maxstring = _SHORT.maxother = 60
_SHORT.maxlong = 40


class Rule:
    """A condition of a value.

    Parameters:
        words: the values that keep to it.
        kind: the name of pydantic's schema of the value itself; empty where ``inner`` checks that.
        limits: of this schema.
        inner: makes the schema of all that is in the value, once it is needed, as pydantic is slow to load.
    """

    def __init__(self, words: str, kind: str, inner: "Callable[[], CoreSchema] | None" = None, **limits: Any) -> None:
        self.words, self._own, self._inner = words, {"type": kind, "strict": True, **limits} if kind else None, inner

    @property
    def schema(self) -> "CoreSchema":
        """The schema of the value and of all that is in it, whose errors are in the rule's words."""
        own: Any = self._own and {"type": "custom-error", "schema": self._own, "custom_error_type": "rule",
                                  "custom_error_message": "{words}", "custom_error_context": {"words": self.words}}
        if self._inner is None:
            return own
        return {"type": "chain", "steps": [own, self._inner()]} if own else self._inner()

    @cached_property
    def validator(self) -> "SchemaValidator":
        """The check, made when it is first needed."""
        from pydantic_core import SchemaValidator

        return SchemaValidator(self.schema)

    def holds(self, value: Any) -> bool:
        """Whether the value, and all that is in it, keeps to the rule."""
        return self.validator.isinstance_python(value)


class Int(Rule):
    """An integer from ``low`` to ``high``."""

    def __init__(self, low: int, high: int) -> None:
        super().__init__(f"an integer from {low} to {high}", "int", ge=low, le=high)


class Number(Rule):
    """A finite number from ``low`` to ``high``."""

    def __init__(self, low: float = -math.inf, high: float = sys.float_info.max) -> None:
        words = f"a number from {low:,g} to {high:,g}" if high < sys.float_info.max else "a finite number" + (
            f" of at least {low:g}" if low > -math.inf else "")
        super().__init__(words, "float", ge=max(low, -sys.float_info.max), le=high, allow_inf_nan=False)


class Flag(Rule):
    def __init__(self) -> None:
        super().__init__("true or false", "bool")


class Text(Rule):
    """A text of at most ``most`` characters, the whole of which ``pattern`` matches; ``what`` says that in words."""

    def __init__(self, most: int = 10_000, pattern: str = "", what: str = "") -> None:
        limits: Any = {"pattern": rf"\A(?:{pattern})\Z", "regex_engine": "python-re"} if pattern else {}
        super().__init__(what or f"a text of at most {most:,} characters", "str", max_length=most, **limits)


SHA = Text(64, "[0-9a-f]{64}", "a SHA-256 of 64 hexadecimal digits")


class Choice(Rule):
    """One of some texts."""

    def __init__(self, values: tuple[str, ...]) -> None:
        *first, last = map(repr, values)
        super().__init__(f"{', '.join(first)} or {last}" if first else last, "literal", expected=list(values))


class Null(Rule):
    """null, or what another rule says."""

    def __init__(self, rule: Rule) -> None:
        self.rule, own = rule, {"schema": rule._own} if rule._own else {}
        super().__init__(f"null or {rule.words}", "nullable" if own else "",
                         lambda: {"type": "nullable", "schema": rule.schema}, **own)


class Anything(Rule):
    """A value that nobody reads but people."""

    def __init__(self) -> None:
        super().__init__("anything", "any")


class Listing(Rule):
    """A list whose elements keep to a rule."""

    def __init__(self, rule: Rule, least: int = 0, most: int = 10_000_000) -> None:
        self.rule = rule
        words = f"a list of {least} elements" if least == most else "a list" + (
            f" of at least {least} elements" if least else "")
        super().__init__(words, "list", lambda: {"type": "list", "items_schema": rule.schema},
                         min_length=least, max_length=most)


class Mapped(Rule):
    """An object of any keys whose values keep to a rule."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        super().__init__("an object", "dict", lambda: {"type": "dict", "values_schema": rule.schema})


class Table(Rule):
    """An object of named members.

    Parameters:
        members: that have to be there.
        optional: that may be missing.
        open: whether others may be there, too, which nobody reads.
    """

    def __init__(self, members: Mapping[str, Rule], optional: Mapping[str, Rule] | None = None, *,
                 open: bool = False) -> None:
        self.members, self.optional = members, optional or {}

        def inner() -> "CoreSchema":
            fields: Any = {name: {"type": "typed-dict-field", "schema": rule.schema, "required": name in members}
                           for name, rule in {**members, **self.optional}.items()}
            return {"type": "typed-dict", "fields": fields, "extra_behavior": "allow" if open else "forbid"}

        super().__init__("an object", "dict", inner)


class Kinds(Rule):
    """An object whose member ``key`` says which of the tables it keeps to."""

    def __init__(self, key: str, tables: Mapping[str, Rule]) -> None:
        self.tables, named = tables, Table({key: Choice(tuple(tables))}, open=True)
        super().__init__("an object", "", lambda: {"type": "chain", "steps": [
            named.schema, _called(lambda value: tables[value[key]])]})


class Where(Rule):
    """Another rule, and a condition of the whole value, which ``what`` says."""

    def __init__(self, rule: Rule, condition: Callable[[Any], bool], what: str) -> None:
        self.rule = rule

        def check(value: Any) -> Any:
            from pydantic_core import PydanticCustomError

            if not condition(value):
                raise PydanticCustomError("rule", "{words}", {"words": what})
            return value

        super().__init__(what, "", lambda: {"type": "function-after", "schema": rule.schema,
                                            "function": {"type": "no-info", "function": check}})


class Later(Rule):
    """A rule that is found when it is needed: one that contains itself."""

    def __init__(self, rule: Callable[[], Rule]) -> None:
        self.rule = rule
        super().__init__("", "", lambda: _called(lambda value: rule()))


def _called(rule: Callable[[Any], Rule]) -> "CoreSchema":
    """The schema of a rule that depends on the value."""
    return {"type": "function-plain", "function": {
        "type": "no-info", "function": lambda value: rule(value).validator.validate_python(value)}}


def require(rule: Rule, value: Any, path: str | Path, way_out: str = WAY_OUT) -> None:
    """Check that the document of a file keeps to a rule.

    Raises:
        Refusal: naming file, fields, rules and values; `MOST` of them at the most.
    """
    from pydantic_core import ValidationError

    try:
        rule.validator.validate_python(value)
    except ValidationError as broken:
        problems = [_sentence(each) for each in broken.errors(include_url=False)]
        more = f"; and {len(problems) - MOST:,} more" if len(problems) > MOST else ""
        raise Refusal(f"{path}{':' if problems[0].startswith('field') else ''} {'; '.join(problems[:MOST])}{more}; "
                      f"{way_out}") from None


def _sentence(error: "ErrorDetails") -> str:
    where = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in error["loc"]).removeprefix(".")
    what = {"missing": "must be there, but it is missing",
            "extra_forbidden": "must not be there, since this version knows no such field"}.get(error["type"])
    what = what or f"must be {error['msg']}, not {shown(error['input'])}"
    return f"field {where[:200]!r} {what}" if where else what


def shown(value: Any) -> str:
    """A value in a message, cut where it is long."""
    return _SHORT.repr(value)


def differing(was: Any, now: Any, where: str = "") -> Iterator[tuple[str, Any, Any]]:
    """The places at which two documents differ, with both values; None stands for what is missing."""
    if isinstance(was, Mapping) and isinstance(now, Mapping):
        for key in dict.fromkeys((*was, *now)):
            yield from differing(was.get(key), now.get(key), f"{where}.{key}" if where else str(key))
    elif isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        for n, pair in enumerate(zip(was, now, strict=True)):
            yield from differing(*pair, f"{where}[{n}]")
    elif type(was) is not type(now) or was != now:
        yield where, was, now
