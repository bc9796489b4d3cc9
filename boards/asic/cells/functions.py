"""Expressions of liberty files: ``!`` and ``'`` negate, ``&``, ``*`` and a space are and, ``+`` and ``|`` are or."""
import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from circulant.sim.refusal import Refusal

__all__ = ["Function", "parsed"]

_TOKEN = re.compile(r"\s*([A-Za-z_]\w*(?:\[\d+\])?|[01]|[!'&*+|^()])\s*")
_JOINS = {ast.BitAnd: np.logical_and, ast.BitOr: np.logical_or, ast.BitXor: np.logical_xor}
_SIGNS = {"!": "~", "*": "&", "+": "|"}


@dataclass(frozen=True)
class Function:
    """Pins, constants, parentheses and the operators ``~ & ^ |``, which bind alike in Verilog and in Python."""

    words: tuple[str, ...]

    @property
    def pins(self) -> tuple[str, ...]:
        """The pins in it, each once, in the order in which they come."""
        return tuple(dict.fromkeys(word for word in self.words if word[0].isalpha() or word[0] == "_"))

    def verilog(self) -> str:
        """The expression in Verilog."""
        return "".join(f"1'b{word}" if word in "01" else word for word in self.words)

    def table(self) -> NDArray[np.bool_]:
        """Its value for each combination of its ``pins``, the first of which is the lowest bit of the number."""
        numbers = np.arange(1 << len(self.pins))
        values = {f"p{n}": (numbers >> n & 1).astype(bool) for n in range(len(self.pins))}
        return np.broadcast_to(_value(ast.parse(self.python(), mode="eval").body, values), numbers.shape)

    def python(self) -> str:
        """The expression in Python, with ``p0`` for the first of its ``pins``, and so on."""
        names = {pin: f"p{n}" for n, pin in enumerate(self.pins)}
        return "".join(names.get(word, word) for word in self.words)


def _value(node: ast.expr, values: Mapping[str, NDArray[np.bool_]]) -> NDArray[np.bool_]:
    if isinstance(node, ast.BinOp):
        join: Any = _JOINS[type(node.op)]
        return np.asarray(join(_value(node.left, values), _value(node.right, values)))
    if isinstance(node, ast.UnaryOp):
        return ~_value(node.operand, values)
    return values[node.id] if isinstance(node, ast.Name) else np.asarray(ast.literal_eval(node), bool)


def parsed(text: str) -> Function:
    """An expression.

    Raises:
        Refusal: when it is none.
    """
    words: list[str] = []
    for word in (found := _TOKEN.findall(text)):
        ended = bool(words) and (words[-1] == ")" or words[-1] not in "~&^|(")
        if word == "'" and ended:  # It negates what ends here: a pin, or what the parenthesis encloses.
            at = len(words) - 1
            while at and words[at:].count(")") > words[at:].count("("):
                at -= 1
            words.insert(at, "~")
            continue
        if ended and word not in "&*+|^)":
            words.append("&")
        words.append(_SIGNS.get(word, word))
    function = Function(tuple(words))
    try:
        ast.parse(function.python(), mode="eval")
    except SyntaxError:
        found = []
    if not found or _TOKEN.sub("", text).strip() or "()" in "".join(words) or "'" in words:
        raise Refusal(f"A function of a liberty file must be an expression of pins, not {text!r}; take the file as the "
                      "foundry gives it")
    return function
