"""Registers of a design's Verilog, each in its place in the circuit, so that a bit of one can be flipped."""
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = ["FlipFlop", "flip_flops"]

MODULE = re.compile(r"^module (\w+)\b(.*?)^endmodule", re.M | re.S)
PORT = re.compile(r"^\s*output reg(?: signed)? (?:\[(\d+):0\] )?(\w+)", re.M)
DECLARED = re.compile(r"\breg(?: signed)? (?:\[(\d+):0\] )?([\w,\s]+);")
SET = re.compile(r"^\s+(?:if \([^\n]*?\) )?(\w+) <= ", re.M)
INSTANCE = re.compile(r"^  (\w+) (?:#\([^\n]*\) )?(\w+) \($", re.M)
NUMBERS = re.compile(r"(^|_)(base|beyond|clipped|combined|data|difference|entry|factor|late|near|nh|nx|operands|"
                     r"payload|place|pre|product|r|reset|rounded|row_x|rows|spectra|stage|state|sums?|update|weights|"
                     r"whole|word|y|z|z_wait)$")
"""Names, without numbers at their end, of registers that hold numbers of a network: data, weights, sums, results."""

DECIDES = ("sequencer", "dispatch")
"""Units all of whose registers are control."""


class FlipFlop(NamedTuple):
    """A register: its path from the top, and its bits."""

    path: str
    bits: int

    @property
    def unit(self) -> str:
        """The unit that it is in, one name for all that differ by their numbers."""
        return _bare(self.path.split(".")[-2])

    @property
    def control(self) -> bool:
        """Membership in control: valid bits, counters, states, addresses, words of programs, and whatever has a name
        that is not known to be of numbers of the network."""
        return self.unit in DECIDES or NUMBERS.search(_bare(self.path.split(".")[-1])) is None


def _bare(name: str) -> str:
    """A name without the numbers at its end."""
    return re.sub(r"(_\d+)+$", "", name)


def flip_flops(verilog: str | Path, top: str) -> list[FlipFlop]:
    """The registers of a circuit; words of memories are none.

    Parameters:
        verilog: a file that `circulant.hw.design.generate` wrote.
        top: its top module.
    """
    bodies = dict(MODULE.findall(Path(verilog).read_text()))
    own = {name: list(_own(body)) for name, body in bodies.items()}
    within = {name: [(kind, called) for kind, called in INSTANCE.findall(body) if kind in bodies]
              for name, body in bodies.items()}

    def below(module: str, path: str) -> Iterator[FlipFlop]:
        for name, bits in own[module]:
            yield FlipFlop(f"{path}.{name}", bits)
        for kind, called in within[module]:
            yield from below(kind, f"{path}.{called}")

    return list(below(top, top))


def _own(body: str) -> Iterator[tuple[str, int]]:
    """The registers of a module: names and bits."""
    widths = {name: int(high or 0) + 1 for high, name in PORT.findall(body)}
    for high, names in DECLARED.findall(body):
        widths |= dict.fromkeys(re.split(r"\s*,\s*", names.strip()), int(high or 0) + 1)
    for name in dict.fromkeys(SET.findall(body)):
        if name in widths:
            yield name, widths[name]
