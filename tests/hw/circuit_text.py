"""Values and assignments of Amaranth as Python text.

An expression here is always the number that the value is, signed or not, so that most operators need no masks.
"""
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from amaranth.hdl import Shape, Signal
from amaranth.hdl._ast import Concat, Const, Operator, Part, Slice, SwitchValue

__all__ = ["Text", "Values"]

LONG = 500
"""Characters from which an expression gets a name: Python's parser has a stack."""

FORMATS = {
    **{operator: f"({{0}} {operator} {{1}})" for operator in ("+", "-", "*", "&", "|", "^", "<<", ">>", "==", "!=", "<",
                                                              "<=", ">", ">=")},
    "//": "({0} // {1} if {1} else 0)", "%": "({0} % {1} if {1} else 0)",
}


class Text:
    """Lines of a function, in which places have names, so that like functions have one text."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._depth, self._made = 2, 0
        self._names: dict[tuple[str, Any], str] = {}

    def name(self, kind: str, given: Any) -> str:
        """The name by which the function gets a place, or what else differs among like ones."""
        return self._names.setdefault((kind, given), f"{kind}{len(self._names)}")

    @property
    def given(self) -> dict[str, Any]:
        """What is given to the function, by name."""
        return {name: given for (_, given), name in self._names.items()}

    def line(self, text: str) -> None:
        self._lines.append(f"{'    ' * self._depth}{text}\n")

    def variable(self, text: str) -> str:
        self._made += 1
        self.line(f"t{self._made} = {text}")
        return f"t{self._made}"

    @contextmanager
    def indented(self) -> Iterator[None]:
        self._depth += 1
        yield
        self._depth -= 1

    def whole(self) -> str:
        return "".join(self._lines)


class Values:
    """Expressions and assignments in one process; ``read`` are the places of what it reads."""

    def __init__(self, text: Text, place: Callable[[Any], int]) -> None:
        self.read: set[int] = set()
        self._text, self._place = text, place

    def _name(self, signal: Any) -> str:
        return self._text.name("a", self._place(signal))

    def exact(self, value: Any, *, driven: bool = False) -> str:
        """The number that a value is; if ``driven``, as it was assigned so far."""
        text = self._exact(value, driven)
        return self._text.variable(text) if len(text) > LONG else text

    def bits(self, value: Any, *, driven: bool = False) -> str:
        """The bits of a value, as a number that is not negative."""
        text, shape = self.exact(value, driven=driven), value.shape()
        return f"({text} & {(1 << shape.width) - 1})" if shape.signed else text

    def assign(self, target: Any, text: str, shape: Shape) -> None:
        """Assign a number that has a shape."""
        if isinstance(target, Signal):
            self._text.line(f"n{self._name(target)} = {_fitted(text, shape, target.shape())}")
        elif isinstance(target, Operator) and target.operator in ("u", "s"):
            self.assign(target.operands[0], text, shape)
        elif isinstance(target, Slice):
            mask, size, before = (1 << len(target)) - 1, len(target.value), self.bits(target.value, driven=True)
            kept = (1 << size) - 1 & ~(mask << target.start)
            self.assign(target.value, f"({before} & {kept} | ({text} & {mask}) << {target.start})", Shape(size))
        elif isinstance(target, Part):
            at, mask = self._text.variable(f"{self.bits(target.offset)} * {target.stride}"), (1 << len(target)) - 1
            whole, before = target.value, self.bits(target.value, driven=True)
            merged = f"{before} & ~({mask} << {at}) | ({text} & {mask}) << {at}"
            self.assign(whole, f"(({merged}) & {(1 << len(whole)) - 1})", Shape(len(whole)))
        elif isinstance(target, Concat):
            name, offset = self._text.variable(text), 0
            for part in target.parts:
                self.assign(part, f"({name} >> {offset} & {(1 << len(part)) - 1})", Shape(len(part)))
                offset += len(part)
        elif isinstance(target, SwitchValue):
            name = self._text.variable(text)
            self.switch(target.test, target.cases, lambda case: self.assign(case, name, shape))
        else:
            raise NotImplementedError(f"{target!r} cannot be assigned to")

    def switch(self, test: Any, cases: Sequence[tuple[Any, Any]], body: Callable[[Any], None]) -> None:
        """A choice among cases (patterns, what ``body`` writes), of which the first that matches is taken."""
        name, word = self._text.variable(self.bits(test)), "if"
        for patterns, each in cases:
            self._text.line(f"{word} {_matches(name, patterns)}:")
            with self._text.indented():
                self._text.line("pass")
                body(each)
            word = "elif"

    def _exact(self, value: Any, driven: bool) -> str:
        if isinstance(value, Const):
            return f"({value.value})" if value.value < 0 else str(value.value)
        if isinstance(value, Signal):
            if driven:
                return f"n{self._name(value)}"
            self.read.add(self._place(value))
            return f"V[{self._name(value)}]"
        if isinstance(value, Operator):
            return self._operation(value, driven)
        if isinstance(value, Slice):
            whole = self.exact(value.value, driven=driven)
            shifted = f"{whole} >> {value.start}" if value.start else whole
            return f"({shifted} & {(1 << len(value)) - 1})"
        if isinstance(value, Part):
            whole, offset = self.exact(value.value, driven=driven), self.bits(value.offset)
            return f"({whole} >> {offset} * {value.stride} & {(1 << value.width) - 1})"
        if isinstance(value, Concat):
            texts, offset = [], 0
            for part in value.parts:
                text = self.bits(part, driven=driven)
                texts.append(f"{text} << {offset}" if offset else text)
                offset += len(part)
            return f"({' | '.join(texts) or 0})"
        if isinstance(value, SwitchValue):
            return self._choice(value, driven)
        raise NotImplementedError(f"{value!r} cannot be simulated")

    def _operation(self, value: Any, driven: bool) -> str:
        operator, operands = value.operator, value.operands
        if len(operands) == 2:
            texts = (self.exact(each, driven=driven) for each in operands)
            return FORMATS[operator].format(*texts)
        operand, = operands
        exact, width, mask = self.exact(operand, driven=driven), len(operand), (1 << len(operand)) - 1
        signed = operand.shape().signed
        bits = f"({exact} & {mask})" if signed else exact
        if operator == "s":
            return exact if signed else _signed(exact, width)
        return {"u": bits, "+": exact, "-": f"(-{exact})", "~": f"(~{exact})" if signed else f"({exact} ^ {mask})",
                "b": f"({exact} != 0)", "r|": f"({exact} != 0)", "r&": f"({bits} == {mask})",
                "r^": f"(({bits}).bit_count() & 1)"}[operator]

    def _choice(self, value: Any, driven: bool) -> str:
        cases = value.cases
        if len(cases) == 2 and cases[0][0] and cases[1][0] is None:
            test = self.bits(value.test)
            texts = [self.exact(each, driven=driven) for _, each in cases]
            return f"({texts[0]} if {_matches(test, cases[0][0])} else {texts[1]})"
        name = self._text.variable("0")

        def keep(each: Any) -> None:
            self._text.line(f"{name} = {self.exact(each, driven=driven)}")

        self.switch(value.test, cases, keep)
        return name


def _matches(test: str, patterns: Sequence[str] | None) -> str:
    if patterns is None:
        return "True"
    plain = [int(pattern or "0", 2) for pattern in patterns if "-" not in pattern]
    texts = [f"{test} in {tuple(plain)}" if len(plain) > 1 else f"{test} == {plain[0]}"] if plain else []
    for pattern in patterns:
        if "-" in pattern:
            mask = int(pattern.replace("0", "1").replace("-", "0"), 2)
            texts.append(f"{test} & {mask} == {int(pattern.replace('-', '0'), 2)}")
    return " or ".join(texts) or "False"


def _signed(bits: str, width: int) -> str:
    half = 1 << width >> 1
    return f"(({bits} ^ {half}) - {half})"


def _fitted(text: str, given: Shape, wanted: Shape) -> str:
    """The number whose low bits are those of another one."""
    if given.width + (wanted.signed and not given.signed) <= wanted.width and (wanted.signed or not given.signed):
        return text
    bits = f"({text} & {(1 << wanted.width) - 1})"
    return _signed(bits, wanted.width) if wanted.signed else bits
