"""Registers under simulation: bits that never rise or never fall, and counters that never come back.

Beside each register, a copy of the Verilog notes which of its bits have risen and fallen without a reset, how often its
value has become smaller, and the greatest value that it had. It writes them to a file when the simulation ends.
"""
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from benchmarks.mutation.mutants import statements, widths_of

__all__ = ["FILE", "Toggles", "counters", "instrumented"]

FILE = "toggles"
PACKAGE = "circulant_toggles"

WORD = re.compile(r"\b[a-z_]\w*")


@dataclass
class _Register:
    """A register of an instance, and what has been seen of it.

    Parameters:
        counter: whether its next value is its own plus or minus one.
        rose, fell: bits that did.
        smaller: how often its value became smaller.
        greatest: its greatest value.
    """

    width: int
    counter: bool
    rose: int = 0
    fell: int = 0
    smaller: int = 0
    greatest: int = 0

    def still(self) -> int:
        """Bits that have never risen or never fallen."""
        return ~(self.rose & self.fell) & ((1 << self.width) - 1)


class Toggles:
    """Registers of a design, and what many runs have shown of them."""

    def __init__(self) -> None:
        self._registers: dict[str, _Register] = {}

    def add(self, text: str) -> None:
        """Add what a run has written."""
        for line in text.splitlines():
            scope, name, width, counter, rose, fell, smaller, greatest = line.split()
            place = f"{scope.rpartition('.')[0]}.{name}"
            one = self._registers.setdefault(place, _Register(int(width), counter == "1"))
            one.rose |= int(rose, 16)
            one.fell |= int(fell, 16)
            one.smaller += int(smaller)
            one.greatest = max(one.greatest, int(greatest, 16))

    def figures(self) -> dict[str, Any]:
        """Bits of all registers, those that rose and fell, and the others by name; the same of counters, which came
        back if their value became smaller."""
        found = sorted(self._registers.items())
        own = [(name, one) for name, one in found if one.counter]
        bits = sum(one.width for _, one in found)
        return {"bits": bits, "toggled": bits - sum(one.still().bit_count() for _, one in found),
                "still": {name: format(one.still(), f"0{one.width}b") for name, one in found if one.still()},
                "counters": len(own), "came_back": sum(one.smaller > 0 for _, one in own),
                "widest_counter": max((one.width for _, one in own), default=0),
                "fewest": min((one.smaller for _, one in own if one.smaller), default=0),
                "never_came_back": {name: one.greatest for name, one in own if not one.smaller}}

    def __str__(self) -> str:
        found = self.figures()
        return (f"{found['toggled']:,} of {found['bits']:,} bits of registers rose and fell; {found['came_back']} of "
                f"{found['counters']} counters came back, at least {found['fewest']:,} times")


def instrumented(verilog: str, top: str, reset: str) -> str:
    """The Verilog that writes to `FILE` what its registers have done.

    Parameters:
        reset: an expression that is true while the top module is reset.
    """
    def noting(match: re.Match[str]) -> str:
        lines = [*_noted(match[0])]
        if match[1] == top:
            lines.append(f"always @(posedge clk) {PACKAGE}::reset <= {reset};")
        return match[0].removesuffix("endmodule") + "".join(f"  {line}\n" for line in lines) + "endmodule"

    text = re.sub(r"^module (\w+) \(.*?^endmodule", noting, verilog, flags=re.MULTILINE | re.DOTALL)
    return f"package {PACKAGE};\n  bit reset = 1;\nendpackage\n{text}"


def _noted(module: str) -> Iterator[str]:
    """Lines that note what the registers of a module do."""
    body = statements(module)
    own = {each.target: each.width for each in body if each.clocked and not each.condition and "[" not in each.target}
    if not own:
        return
    counting = counters(module)
    for name, width in own.items():
        shape = f"logic [{width - 1}:0]"
        yield f"{shape} was_{name}, rose_{name} = 0, fell_{name} = 0, greatest_{name} = 0;"
        yield f"longint smaller_{name} = 0;"
        yield "always @(posedge clk) begin"
        yield f"  was_{name} <= {name};"
        yield f"  if (!{PACKAGE}::reset) begin"
        yield f"    rose_{name} <= rose_{name} | ({name} & ~was_{name});"
        yield f"    fell_{name} <= fell_{name} | (~{name} & was_{name});"
        yield f"    if ($unsigned({name}) < was_{name}) smaller_{name} <= smaller_{name} + 1;"
        yield f"    if ($unsigned({name}) > greatest_{name}) greatest_{name} <= {name};"
        yield "  end"
        yield "end"
    yield "final begin : told"
    yield "  integer file;"
    yield f'  file = $fopen("{FILE}", "a");'
    for name, width in own.items():
        yield (f'  $fdisplay(file, "%m {name} {width} {int(name in counting)} %h %h %0d %h", rose_{name}, fell_{name}, '
               f"smaller_{name}, greatest_{name});")
    yield "  $fclose(file);"
    yield "end"


def counters(module: str) -> set[str]:
    """Registers of a module whose next value is their own plus or minus one, or a single bit."""
    body, wires = statements(module), dict[str, list[str]]()
    narrow = {name for name, width in widths_of(module).items() if width == 1}
    for each in body:
        if not each.clocked:
            wires.setdefault(each.target.partition("[")[0], []).append(each.value)
    found = set()
    for each in body:
        if not each.clocked or each.condition or "[" in each.target:
            continue
        name, seen, left = each.target, set[str](), [each.value]
        while left:
            value = left.pop()
            if any(step in narrow or re.fullmatch(r"\d+'[db]1", step)
                   for step in re.findall(rf"\b{name} [+-] ([\w']+)", value)):
                found.add(name)
                break
            for word in WORD.findall(value):
                if word not in seen and word in wires:
                    seen.add(word)
                    left += wires[word]
    return found
