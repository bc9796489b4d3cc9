"""Shorter Verilog of the same meaning: what Yosys writes a line each is put together, and names that Amaranth's
intermediate values have for one use only are replaced by what they stand for.

Only where no width or sign can change by it: a value that is the whole right side of an assignment of its width, and
single bits (comparisons, reductions, logic of single bits), which are the same in any context.
"""
import re
from collections import Counter
from collections.abc import Iterable, Iterator

__all__ = ["compacted"]

COLUMNS = 120
NAME = r"(?:\\\S+|[A-Za-z_$][\w$]*)"
_TOKEN = re.compile(r"\\\S+|\d*'s?[bodh][0-9a-fxz?]+|[A-Za-z_$][\w$]*|\"[^\"]*\"")
_DECLARATION = re.compile(rf"  (wire|reg|input|output) ((?:\[\d+:0\] )?)({NAME})\s*(= [^;\[]*)?;$")
_ASSIGN = re.compile(rf"  assign ({NAME})\s*= (.*);$")
_NEXT = re.compile(rf"    ({NAME})\s*<= (.*);$")
_CLOCKED = "  always @(posedge clk)"
_COMPARISON = re.compile(r"(?:[!&|] [^ ].*|[^?]* (?:==|!=|<|<=|>|>=) [^?]*)")


def compacted(verilog: str) -> str:
    """The same modules in fewer lines."""
    modules = re.split(r"^(?=(?:\(\*[^\n]*\n)*module )", verilog, flags=re.M)
    return "".join(_module(each) if re.search(r"^module ", each, re.M) else each for each in modules)


def _module(text: str) -> str:
    lines = text.split("\n")
    declared: dict[str, tuple[str, str, str]] = {}  # kind, range and initial value
    ports: list[tuple[str, str, str]] = []
    values: dict[str, str] = {}  # of wires: what they are assigned
    clocked: dict[str, str] = {}
    head: list[str] = []
    rest: list[str] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        declaration = _DECLARATION.match(line)
        attributed = bool(rest or head) and (rest or head)[-1].lstrip().startswith("(*")
        if declaration and not attributed:
            kind, width, name, init = declaration.groups()
            if kind in ("input", "output"):
                ports.append((kind, width, name))
            if kind == "reg" or name not in declared:
                declared[name] = (kind, width, init or "")
        elif (assigned := _ASSIGN.match(line)) and assigned[1] not in values and not attributed:
            values[assigned[1]] = assigned[2]
        elif line == _CLOCKED and (after := _NEXT.match(lines[at + 1])) and not attributed:
            clocked[after[1]] = after[2]
            at += 1
        elif not declared and not ports and not rest:
            head.append(line)
        else:
            rest.append(line)
        at += 1
    named = {name for _, _, name in ports}
    rest = list(_joined(_instances(rest)))
    _inline(values, clocked, rest, {name: _width(width) for name, (_, width, _) in declared.items()}, named)
    body = [*head, *_declarations(ports, declared, values, clocked=clocked, rest=rest, named=named)]
    body += [f"  assign {name} = {_closed(value)};" for name, value in values.items()]
    if clocked:
        body += ["  always @(posedge clk) begin", *_wrapped(
            (f"{name} <= {_closed(value)};" for name, value in clocked.items()), "    ", " "), "  end"]
    return "\n".join([*body, *(line for line in rest if line)]) + "\n"


def _closed(value: str) -> str:
    """With the space that an escaped name ends with."""
    return f"{value.rstrip()} " if re.search(r"\\\S+$", value.rstrip()) else value.rstrip()


def _width(text: str) -> int:
    return int(text[1:-4]) + 1 if text else 1


def _inline(values: dict[str, str], clocked: dict[str, str], rest: list[str], widths: dict[str, int],
            ports: set[str]) -> None:
    """Replace intermediate values that are used once, innermost first."""
    uses: Counter[str] = Counter()
    where: dict[str, tuple[dict[str, str], str]] = {}
    for found in (values, clocked):
        for target, value in found.items():
            for token in _TOKEN.findall(value):
                uses[token] += 1
                where[token] = found, target
    for line in rest:
        uses.update(_TOKEN.findall(line))
    for name in list(values):
        if not name.startswith("\\$") or uses[name] != 1 or name in ports or name not in where:
            continue
        found, target = where[name]
        value, holder = values[name], found.get(target)
        if holder is None or target not in widths or " * " in value:
            continue
        if holder.strip() == name:
            if widths[target] != widths[name]:
                continue
            replaced = value
        elif widths[name] == 1 and _single_bit(value, widths):
            before, after = re.split(re.escape(name) + r"\s", f"{holder} ", maxsplit=1)
            replaced = f"{before}({_closed(value)}){after}".strip()
        else:
            continue
        if len(replaced) + len(target) > COLUMNS - 8:
            continue
        found[target] = replaced
        del values[name]
        for token in _TOKEN.findall(value):
            where[token] = found, target


def _single_bit(value: str, widths: dict[str, int]) -> bool:
    """Whether an expression is one bit in any context: a comparison or reduction, or logic of single bits."""
    bare = _without_groups(value)
    if "?" in bare:
        return False
    operators = re.findall(r"(?<= )(?:[=!<>]=|[<>&|^+\-*/%~]|<<<?|>>>?)(?= )", f" {bare}")
    if len(operators) == 1 and operators[0] in ("==", "!=", "<", "<=", ">", ">="):
        return True
    if re.match(r"[!&|] \S+\s*(?:\[[\d:]+\]\s*)?$", bare):
        return True
    parts = re.split(r" [&|^] ", bare)
    return len(parts) > 1 and "$signed" not in value and all(_is_bit(part.strip(), widths) for part in parts)


def _without_groups(value: str) -> str:
    """A value with each group in brackets as one operand: () stays for a single bit, {} for a concatenation."""
    while True:
        shorter = re.sub(r"\$signed\([^(){}]*\)", "wide", value)
        shorter = re.sub(r"\{[^(){}]*\}", "wide", shorter)
        shorter = re.sub(r"\((?!bit\))[^(){}]*\)", "(bit)", shorter)
        if shorter == value:
            return value
        value = shorter


def _is_bit(part: str, widths: dict[str, int]) -> bool:
    if part == "(bit)" or re.fullmatch(r"1'h[01]", part):
        return True
    selected = re.fullmatch(rf"({NAME})\s*(\[\d+\])?", part)
    return selected is not None and (selected[2] is not None or widths.get(selected[1]) == 1)


def _declarations(ports: list[tuple[str, str, str]], declared: dict[str, tuple[str, str, str]], values: dict[str, str],
                  clocked: dict[str, str], rest: list[str], named: set[str]) -> Iterator[str]:
    used = {token for text in (*values.values(), *clocked.values(), *rest) for token in _TOKEN.findall(text)}
    used |= set(values) | set(clocked) | named
    groups: dict[tuple[str, str], list[str]] = {}
    for kind, width, name in ports:
        groups.setdefault((kind, width), []).append(name)
    for name, (kind, width, init) in declared.items():
        if kind in ("wire", "reg") and name in used:
            groups.setdefault((kind, width), []).append(f"{name} {init}" if init else name)
    for (kind, width), names in groups.items():
        start = f"  {kind} {width}"
        for line in _wrapped((f"{name} ," for name in names), "    ", " "):
            yield start + line.strip()[:-1].rstrip() + " ;"


def _wrapped(items: Iterable[str], indent: str, between: str) -> Iterator[str]:
    line = ""
    for item in items:
        if line and len(indent) + len(line) + len(between) + len(item) > COLUMNS:
            yield indent + line
            line = item
        else:
            line = f"{line}{between}{item}" if line else item
    if line:
        yield indent + line


def _instances(lines: Iterable[str]) -> Iterator[str]:
    """Parameters and ports of an instance side by side."""
    gathered: list[str] = []
    for line in lines:
        if re.match(r"    \.\w|    \.\\", line):
            gathered.append(line.strip())
            continue
        if gathered:
            yield from _wrapped(gathered, "    ", " ")
            gathered = []
        yield line


def _joined(lines: Iterable[str]) -> Iterator[str]:
    """Lines, each beside the one before or behind it that it belongs to."""
    held = ""
    for line in lines:
        bare = line.strip()
        behind = re.match(r"(\(\*.*\*\)|\S+:|input .*;)$", held.strip()) and not held.startswith("endmodule")
        alone = held.strip().startswith("input") and not bare.startswith("input")
        if held and bare and len(held) + len(bare) < COLUMNS and (bare.startswith(")") or (behind and not alone)):
            held += f" {bare}"
            continue
        if held:
            yield held
        held = line
    yield held
