"""Expressions of Verilog that have the same value and the same bits wherever they are put.

The language extends what an operator takes to the width of what surrounds it, and takes a number for signed only where
all around it is. So each expression says where it may stand: see `Expression.place`.
"""
from collections.abc import Callable, Iterator
from typing import NamedTuple

from circulant.hw.emit.choices import Choice, Tree
from circulant.hw.emit.dataflow import ARITHMETIC, BITWISE
from circulant.hw.emit.rtlil import Bits, Cell, Chunk, low_bits, span, width_of

__all__ = ["ALONE", "ANYWHERE", "BRANCH", "Expression", "choice", "constant", "operation", "wrapped"]

ANYWHERE, BRANCH, ALONE = range(3)
"""Places: in any expression; as a value to choose from, in an assignment of its width; as all that is assigned."""

BREAK = "\v"
"""A blank at which a line is broken first."""

COLUMNS = 120


class Expression(NamedTuple):
    """A text, the operator that binds it least ("" of a name, "u" of a sign before it), and where it may stand."""

    text: str
    operator: str = ""
    place: int = ANYWHERE

    @property
    def rigid(self) -> bool:
        """Whether its bits are the same where what surrounds it is wider."""
        return self.operator in _RIGID

    def within(self, operator: str) -> str:
        """The text as an operand."""
        bare = not self.operator or (self.operator == operator and operator in ("&", "|", "^", "+"))
        if bare or (self.operator in ("u", "!") and operator in _PLAIN):
            return self.text
        return f"({self.text.replace(BREAK, ' ')})"


_RIGID = ("", "reduce", "!", "&&", "==", "!=", "<", "<=", ">", ">=")

Read = Callable[[Bits, int], Expression]
"""The expression for some bits, at most as demanding as a place allows."""

_UNARY = {"$not": "~", "$neg": "-", "$reduce_and": "&", "$reduce_or": "|", "$reduce_xor": "^", "$reduce_bool": "|"}
_BINARY = {"$and": "&", "$or": "|", "$xor": "^", "$add": "+", "$sub": "-", "$mul": "*", "$eq": "==", "$ne": "!=",
           "$lt": "<", "$le": "<=", "$gt": ">", "$ge": ">=", "$shl": "<<", "$shr": ">>", "$sshr": ">>>", "$shift": ">>"}
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
_PLAIN = ("&", "|", "^", "?", *_COMPARISONS)
"""Operators that an inverted operand may stand beside without brackets."""


def constant(value: int, width: int, *, signed: bool = False) -> str:
    """A number: of few bits decimal, of more hexadecimal."""
    sign = "s" if signed else ""
    if width == 1 and not signed:
        return f"1'b{value}"
    return f"{width}'{sign}d{value}" if value < 1 << 16 else f"{width}'{sign}h{value:x}"


def operation(cell: Cell, width: int, read: Read) -> Expression:
    """Expression of what a cell of logic computes, in ``width`` bits.

    Raises:
        ValueError: for a kind of cell that Amaranth does not make.
    """
    kind, ports = cell.kind, cell.ports
    if kind == "$mux":
        return choice(Choice(ports["S"], ((("1",), low_bits(ports["B"], width)),), low_bits(ports["A"], width)), read)
    if kind in _UNARY:
        a = low_bits(ports["A"], width) if kind in ("$not", "$neg") else ports["A"]
        if kind in ("$not", "$neg") and width_of(a) < width:
            return Expression(f"{_UNARY[kind]}{_extended(a, cell, 'A', width, read)}", "u", ALONE)
        operator = {"$not": "u", "$neg": "neg"}.get(kind, "reduce")
        return Expression(f"{_UNARY[kind]}{read(a, ANYWHERE).within('u')}", operator)
    if kind not in _BINARY:
        raise ValueError(f"A cell must be of a kind that Amaranth makes of operators, not {kind}")
    if kind in ("$shl", "$shr", "$sshr", "$shift"):
        return _shift(cell, width, read)
    operator = _BINARY[kind]
    if kind in BITWISE or kind in ARITHMETIC:
        return _exact(cell, operator, width, read)
    texts = _operands(cell, width, read, operator)
    return Expression(texts, operator, ALONE if kind == "$mul" else ANYWHERE)


def _exact(cell: Cell, operator: str, width: int, read: Read) -> Expression:
    """An operator whose operands have the width of the result, or are extended to it."""
    signed = cell.number("A_SIGNED") == 1
    a, b = (_resized(low_bits(cell.ports[name], width), width, signed) for name in ("A", "B"))
    if width_of(a) == width_of(b) == width:
        right = read(b, ANYWHERE).within("" if operator == "-" else operator)
        return Expression(f"{read(a, ANYWHERE).within(operator)} {operator} {right}", operator)
    if signed:
        left, right = _extended(a, cell, "A", width, read), _extended(b, cell, "B", width, read)
        return Expression(f"{left} {operator} {right}", operator, ALONE)
    left, right = _operand(a, width, read, operator), _operand(b, width, read, "")
    return Expression(f"{left} {operator} {right}", operator, BRANCH)


def _operand(bits: Bits, width: int, read: Read, operator: str) -> str:
    """An operand, apart from what surrounds it where that is wider."""
    made = read(bits, ANYWHERE)
    return made.within(operator) if made.rigid or width_of(bits) == width else f"{{{made.text}}}"


def _operands(cell: Cell, width: int, read: Read, operator: str) -> str:
    signed, a, b = cell.number("A_SIGNED") == 1, cell.ports["A"], cell.ports["B"]
    if operator in _COMPARISONS:
        width = max(1, width_of(a), width_of(b))
        a, b = _resized(a, width, signed), _resized(b, width, signed)
        if operator in ("==", "!=") and width_of(a) == width_of(b):
            signed = False
    if signed:
        return f"{_extended(a, cell, 'A', width, read)} {operator} {_extended(b, cell, 'B', width, read)}"
    return f"{_operand(a, width, read, operator)} {operator} {_operand(b, width, read, operator)}"


def _resized(bits: Bits, width: int, signed: bool) -> Bits:
    """A constant in another width, of which zero has no bits; anything else as it is."""
    if not bits:
        return (Chunk("", 0, width),)
    if len(bits) != 1 or bits[0].name or bits[0].width >= width:
        return bits
    _, value, size = bits[0]
    if signed and value >> (size - 1):
        value |= (1 << width) - (1 << size)
    return (Chunk("", value, width),)


def _extended(bits: Bits, cell: Cell, port: str, width: int, read: Read) -> str:
    """An operand that may be narrower than the result."""
    if cell.number(f"{port}_SIGNED"):
        if len(bits) == 1 and not bits[0].name:
            return constant(bits[0].low, bits[0].width, signed=True)
        return f"$signed({read(bits, ANYWHERE).text})"
    return _operand(bits, width, read, "")


def _shift(cell: Cell, width: int, read: Read) -> Expression:
    a, b = cell.ports["A"], read(cell.ports["B"], ANYWHERE).within("")
    if cell.kind == "$shl":
        a = low_bits(a, width)
    signed = cell.kind in ("$sshr", "$shift") and cell.number("A_SIGNED")
    operator = ">>>" if signed else _BINARY[cell.kind]
    return Expression(f"{_extended(a, cell, 'A', width, read)} {operator} {b}", operator, ALONE)


def choice(tree: Tree, read: Read, place: int = ALONE) -> Expression:
    """A chain of choices; a single value is what it is."""
    if not isinstance(tree, Choice):
        return read(tree, place)
    parts, needs = [], ANYWHERE
    for patterns, value in tree.cases:
        made = choice(value, read, BRANCH)
        needs = max(needs, made.place)
        parts.append(f"{_condition(tree.selector, patterns, read)} ? {_grouped(made)}{BREAK}: ")
    made = choice(tree.otherwise, read, BRANCH)
    return Expression("".join(parts) + made.text, "?", max(needs, made.place))


def _grouped(made: Expression) -> str:
    return f"({made.text.replace(BREAK, ' ')})" if made.operator == "?" else made.text


def _condition(selector: Bits, patterns: tuple[str, ...], read: Read) -> str:
    tests = [_test(selector, pattern, read) for pattern in patterns]
    if len(tests) == 1:
        return tests[0].within("?")
    return f"({' || '.join(test.within('') for test in tests)})"


def _test(selector: Bits, pattern: str, read: Read) -> Expression:
    """Whether a selector has a pattern: of its bits that matter, those side by side at once."""
    tests: list[Expression] = []
    high = len(pattern)
    while high:
        low = high - 1
        if pattern[-high] != "-":
            while low and pattern[-low] != "-":
                low -= 1
            bits = read(span(selector, low, high - low), ANYWHERE)
            text = pattern[len(pattern) - high:len(pattern) - low]
            if text == "1":
                tests.append(bits)
            elif text == "0":
                tests.append(Expression(f"!{bits.within('u')}", "!"))
            else:
                tests.append(Expression(f"{bits.within('==')} == {constant(int(text, 2), len(text))}", "=="))
        high = low
    if not tests:
        return Expression("1'b1")
    return tests[0] if len(tests) == 1 else Expression(" && ".join(test.within("") for test in tests), "&&")


def wrapped(line: str) -> Iterator[str]:
    """Lines of 120 columns: broken between choices first, then at blanks."""
    if len(line) <= COLUMNS:
        yield line.replace(BREAK, " ")
        return
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    for n, part in enumerate(line.split(BREAK)):
        text = part if n == 0 else indent + part
        while len(text) > COLUMNS:
            cut = text.rfind(" ", len(indent) + 1, COLUMNS)
            if cut < 0:
                break
            yield text[:cut]
            text = indent + text[cut + 1:]
        yield text
