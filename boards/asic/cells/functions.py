"""Expressions of liberty files: ``!`` and ``'`` negate, ``&``, ``*`` and a space are and, ``+`` and ``|`` are or."""
import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from circulant.sim.refusal import Refusal

__all__ = ["Function", "parsed"]

_TOKEN = re.compile(r"\s*([A-Za-z_]\w*(?:\[\d+\])?|[01]|[!'&*+|^()])")


@dataclass(frozen=True)
class Function:
    """A pin, a constant, or an operator and what it joins: ``~`` one, ``&``, ``^`` and ``|`` two or more.

    Parameters:
        sign: the operator, or the name of the pin, or "0" or "1".
    """

    sign: str
    of: tuple["Function", ...] = ()

    @property
    def pins(self) -> tuple[str, ...]:
        """The pins in it, each once, in the order in which they come."""
        if self.of:
            return tuple(dict.fromkeys(pin for each in self.of for pin in each.pins))
        return () if self.sign in "01" else (self.sign,)

    def verilog(self) -> str:
        """The expression in Verilog."""
        if not self.of:
            return f"1'b{self.sign}" if self.sign in "01" else self.sign
        if self.sign == "~":
            return f"(~{self.of[0].verilog()})"
        return f"({f' {self.sign} '.join(each.verilog() for each in self.of)})"

    def table(self) -> NDArray[np.bool_]:
        """Its value for each combination of its ``pins``, the first of which is the lowest bit of the number."""
        numbers = np.arange(1 << len(self.pins))
        return self._at({pin: (numbers >> n & 1).astype(bool) for n, pin in enumerate(self.pins)}, numbers.size)

    def _at(self, values: Mapping[str, NDArray[np.bool_]], size: int) -> NDArray[np.bool_]:
        if not self.of:
            return np.full(size, self.sign == "1") if self.sign in "01" else values[self.sign]
        found = [each._at(values, size) for each in self.of]
        if self.sign == "~":
            return ~found[0]
        joins = {"&": np.logical_and, "^": np.logical_xor, "|": np.logical_or}
        return np.asarray(joins[self.sign].reduce(found), bool)


def parsed(text: str) -> Function:
    """An expression.

    Raises:
        Refusal: when it is none.
    """
    tokens, rest = [], text.strip()
    while rest:
        found = _TOKEN.match(rest)
        if not found:
            raise _wrong(text)
        tokens.append(found[1])
        rest = rest[found.end():].strip()
    return _Parser(tokens, text).whole()


def _wrong(text: str) -> Refusal:
    return Refusal(f"A function of a liberty file must be an expression of pins, not {text!r}; take the file as the "
                   "foundry gives it")


class _Parser:
    """Precedence from loose to tight: or, exclusive or, and (also unwritten), not."""

    def __init__(self, tokens: list[str], text: str) -> None:
        self._tokens, self._text = tokens, text

    def whole(self) -> Function:
        value = self._or()
        if self._tokens:
            raise _wrong(self._text)
        return value

    def _next(self, signs: str) -> bool:
        return bool(self._tokens) and self._tokens[0] in signs

    def _or(self) -> Function:
        terms = [self._xor()]
        while self._next("+|"):
            self._tokens.pop(0)
            terms.append(self._xor())
        return terms[0] if len(terms) == 1 else Function("|", tuple(terms))

    def _xor(self) -> Function:
        terms = [self._and()]
        while self._next("^"):
            self._tokens.pop(0)
            terms.append(self._and())
        return terms[0] if len(terms) == 1 else Function("^", tuple(terms))

    def _and(self) -> Function:
        terms = [self._not()]
        while self._tokens and not self._next("+|^)"):
            if self._next("&*"):
                self._tokens.pop(0)
            terms.append(self._not())
        return terms[0] if len(terms) == 1 else Function("&", tuple(terms))

    def _not(self) -> Function:
        if not self._tokens:
            raise _wrong(self._text)
        token = self._tokens.pop(0)
        if token == "!":
            return Function("~", (self._not(),))
        if token == "(":
            value = self._or()
            if not self._next(")"):
                raise _wrong(self._text)
            self._tokens.pop(0)
        elif token in "01" or token[0].isalpha() or token[0] == "_":
            value = Function(token)
        else:
            raise _wrong(self._text)
        while self._next("'"):
            self._tokens.pop(0)
            value = Function("~", (value,))
        return value
