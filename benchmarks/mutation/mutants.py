"""Mutants of generated Verilog, all of them in one text: a number given to the simulator chooses which is alive.

Only the right sides of assignments are changed, and the conditions under which memories work. Each version of a right
side is assigned to a wire of its target's width, so that widths and signs of the others stay what they are.
"""
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["KINDS", "Mutant", "Statement", "mutants", "placed", "schemata", "statements", "widths_of"]

KINDS = {"operator": 0.26, "constant": 0.22, "index": 0.16, "choice": 0.1, "register": 0.11, "reset": 0.1,
         "enable": 0.05}
"""Kinds of mutants, and their shares; where a kind has too few places the others get more."""

SWAPS = {"+": "-", "-": "+", "&": "|", "|": "&", "^": "|", "==": "!=", "!=": "==", "<": "<=", ">": ">=", ">=": ">",
         ">>>": ">>", "<<": ">>", ">>": "<<", "*": "+"}
PACKAGE = "circulant_mutation"

ASSIGNMENT = re.compile(r"^  assign ([^=;]+?) = ([^;]+);|^    (?:if \((.+?)\) )?(\w+(?:\[[^;]*?\])?) <= ([^;]+);",
                        re.MULTILINE)


@dataclass(frozen=True)
class Statement:
    """An assignment.

    Parameters:
        start, end: place in the text.
        condition: of a memory's port; empty without one.
        clocked: whether it is in a process of the clock.
        width: bits of the target.
    """

    start: int
    end: int
    module: str
    target: str
    value: str
    condition: str
    clocked: bool
    width: int


@dataclass(frozen=True)
class Mutant:
    """A change of a statement.

    Parameters:
        number: from 1 on; 0 is the circuit as it is.
        was, now: its value, or of an enable its condition.
    """

    number: int
    kind: str
    statement: Statement
    was: str
    now: str

    def __str__(self) -> str:
        return f"{self.kind} in {self.statement.module}, {self.statement.target}: {_cut(self.was, self.now)}"


def _cut(was: str, now: str) -> str:
    """Both texts where they differ."""
    first = next((n for n, (a, b) in enumerate(zip(was, now, strict=False)) if a != b), min(len(was), len(now)))
    start = max(0, first - 20)
    return f"…{was[start:first + 25]}… is …{now[start:first + 25]}…"


def statements(verilog: str) -> list[Statement]:
    """The assignments of all modules but those that are a memory and nothing else, which have parameters."""
    found: list[Statement] = []
    for module in re.finditer(r"^module (\w+) \(.*?^endmodule", verilog, re.MULTILINE | re.DOTALL):
        text, widths = module[0], widths_of(module[0])
        for match in ASSIGNMENT.finditer(text):
            target, value = match[1] or match[4], match[2] or match[5]
            width = _width(target, widths)
            if width:
                found.append(Statement(
                    module.start() + match.start(), module.start() + match.end(), module=module[1], target=target,
                    value=value, condition=match[3] or "", clocked=match[1] is None, width=width))
    return found


def widths_of(text: str) -> dict[str, int]:
    """Bits of the wires, registers and ports of a module by name; of a memory those of a word."""
    found: dict[str, int] = {}
    for width, names in re.findall(r"\b(?:wire|reg|output|input)(?: reg)?(?:\s+\[(\d+):0\])?\s+"
                                   r"(\w[\w\s,]*?(?: \[0:\d+\])?)\s*(?:[;)]|,?\s*//)", text):
        for name in re.split(r"[\s,]+", re.sub(r" \[0:\d+\]", "", names)):
            if name not in ("wire", "reg", "input", "output"):
                found[name] = int(width or 0) + 1
    for width, name in re.findall(r"^  (?:in|out)put(?: reg)?(?: \[(\d+):0\])? (\w+)", text, re.MULTILINE):
        found[name] = int(width or 0) + 1
    return found


def _width(target: str, widths: dict[str, int]) -> int:
    """Bits of a target; 0 where it is not plain."""
    name, _, rest = target.partition("[")
    if not rest:
        return widths.get(name, 0)
    if (part := re.fullmatch(r"(\d+):(\d+)\]", rest)) is not None:
        return int(part[1]) - int(part[2]) + 1
    return 1 if re.fullmatch(r"\d+\]", rest) else widths.get(name, 0)  # A memory, whose word is meant.


def mutants(verilog: str, count: int, seed: int) -> list[Mutant]:
    """So many mutants, drawn: of each kind its share, at places that are drawn among all that there are."""
    rng = np.random.default_rng(seed)
    places: dict[str, list[tuple[Statement, str, str]]] = {kind: [] for kind in KINDS}
    for statement in statements(verilog):
        for kind, was, now in _changes(statement):
            places[kind].append((statement, was, now))
    drawn: list[tuple[str, tuple[Statement, str, str]]] = []
    for kind, share in KINDS.items():
        order = rng.permutation(len(places[kind]))[:round(count * share)]
        drawn += [(kind, places[kind][n]) for n in order]
    rest = [(kind, place) for kind, all_places in places.items() for place in all_places]
    taken = {(kind, id(place)) for kind, place in drawn}
    for n in rng.permutation(len(rest)):
        if len(drawn) >= count:
            break
        if (rest[n][0], id(rest[n][1])) not in taken:
            drawn.append(rest[n])
    return [Mutant(number, kind, *place) for number, (kind, place) in enumerate(drawn[:count], 1)]


def _changes(statement: Statement) -> Iterator[tuple[str, str, str]]:
    """Kind, what is there, and what is there instead."""
    value = statement.value

    def changed(match: re.Match[str], text: str) -> str:
        return value[:match.start()] + text + value[match.end():]

    for match in re.finditer(r"(?<= )(\+|-|&|\||\^|==|!=|<|>|>=|>>>|<<|>>|\*)(?= )", value):
        yield "operator", value, changed(match, SWAPS[match[1]])
    for match in re.finditer(r"\b(\d+)'([db])(\d+)", value):
        bits, number = int(match[1]), int(match[3], 2 if match[2] == "b" else 10)
        for other in {(number + 1) % (1 << bits), number ^ 1 << bits - 1} - {number}:
            yield "constant", value, changed(match, f"{bits}'d{other}")
    for match in re.finditer(r"(?<=\w)\[(\d+)(?::(\d+))?\]", value):
        high, low = int(match[1]), int(match[2] or match[1])
        if low:
            yield "index", value, changed(match, f"[{high - 1}:{low - 1}]" if match[2] else f"[{low - 1}]")
    for match in re.finditer(r" \? ", value):
        if not value[:match.start()].endswith("rst"):
            yield "choice", value, changed(match, " == 0 ? ")
    if statement.clocked and "[" not in statement.target:
        yield "register", value, statement.target
    if (rest := re.match(r"rst \? [^:]+ : ", value.replace("\n", " "))) is not None:
        yield "reset", value, value[rest.end():]
    if statement.condition:
        yield "enable", statement.condition, "1'b1"
        yield "enable", statement.condition, f"~({statement.condition})"


def schemata(verilog: str, planted: Sequence[Mutant], top: str) -> str:
    """The Verilog with all mutants; ``+mutant=N`` chooses one, and whether its value was ever another one than that of
    the circuit is written to ``infected`` at the end."""
    text = placed(verilog, planted, alive=lambda mutant: f"{PACKAGE}::chosen == {mutant.number}", infected=True)
    body = (f"  initial if (!$value$plusargs(\"mutant=%d\", {PACKAGE}::chosen)) {PACKAGE}::chosen = 0;\n"
            "  final begin : said\n    integer told;\n    told = $fopen(\"infected\", \"w\");\n"
            f"    $fwrite(told, \"%0d\", {PACKAGE}::infected);\n    $fclose(told);\n  end\n")
    text = re.sub(rf"(^module {top} \(.*?)(^endmodule)", lambda m: m[1] + body + m[2], text, count=1,
                  flags=re.MULTILINE | re.DOTALL)
    return f"package {PACKAGE};\n  int chosen;\n  int infected = 0;\nendpackage\n{text}"


def placed(verilog: str, planted: Sequence[Mutant], *, alive: Callable[[Mutant], str],
           declared: Callable[[Mutant], str] = lambda mutant: "", infected: bool = False) -> str:
    """The Verilog with all mutants.

    Parameters:
        alive: an expression that chooses a mutant.
        declared: what is needed for it before the statement.
        infected: whether it is noted when a chosen value is another one than that of the circuit.
    """
    groups: dict[Statement, list[Mutant]] = {}
    for mutant in planted:
        groups.setdefault(mutant.statement, []).append(mutant)
    edits: list[tuple[int, int, str]] = []
    for n, (statement, here) in enumerate(groups.items()):
        lines = [*map(declared, here), *_versions(n, statement, here, alive, infected)]
        wires = [f"  {line}\n" for line in lines if line]
        condition = f"choice_{n}_c" if statement.condition else ""
        operator = "<=" if statement.clocked else "="
        again = f"{statement.target} {operator} choice_{n}_v;"
        if statement.clocked:
            body = f"    {f'if ({condition}) ' if condition else ''}{again}"
            process = verilog.rindex("  always @(posedge clk)", 0, statement.start)
            edits += [(process, process, "".join(wires)), (statement.start, statement.end, body)]
        else:
            edits.append((statement.start, statement.end, "".join(wires) + f"  assign {again}"))
    text = verilog
    for start, end, new in sorted(edits, key=lambda edit: edit[0], reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _versions(n: int, statement: Statement, here: Sequence[Mutant], alive: Callable[[Mutant], str], infected: bool
              ) -> Iterator[str]:
    """Wires of the value and of the condition of a statement, each as it is and as its mutants have it."""
    for letter, width, was, own in (
            ("v", statement.width, statement.value, [each for each in here if each.kind != "enable"]),
            ("c", 1, statement.condition, [each for each in here if each.kind == "enable"])):
        if not was:
            continue
        shape, name = f"wire [{width - 1}:0]", f"choice_{n}_{letter}"
        yield f"{shape} {name}_0 = {was};"
        for each in own:
            yield f"{shape} {name}_{each.number} = {each.now};"
        select = "".join(f"{alive(each)} ? {name}_{each.number} : " for each in own)
        yield f"{shape} {name} = {select}{name}_0;"
        if own and infected:
            yield (f"always @(posedge clk) if ({name} != {name}_0) {PACKAGE}::infected = 1;")
