"""Properties of a component, proved for every state that it can reach: IC3 (Bradley 2011) as ABC has it, in `pdr`.

A component says itself what has to hold: each output ``ok_…`` is 1 in every cycle up to which all its outputs
``assume_…`` have been 1. Its inputs are free in each cycle, but for its reset, which is low.
"""
import hashlib
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from amaranth.back import rtlil
from amaranth.hdl import Cat, ClockDomain, ClockSignal, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from benchmarks.formal.tools import abc, available, yosys
from benchmarks.resume import Record

__all__ = ["Proof", "available", "prove", "proved"]

FIRST = 8
"""Cycles within which most faults show, and `QUICK` seconds in which they are looked for."""

QUICK = 10

NOTHING_LEFT = re.compile(r"lat = +0 +and = +0 ")
"""Statistics of a circuit that merging has emptied."""

SCRIPT = """\
read_rtlil text
hierarchy -top top
delete -port top/o:* top/broken %d
proc
flatten
memory_collect
memory_nordff
memory_map
opt -nodffe -nosdff
techmap
setundef -zero
opt -full -nodffe -nosdff
dffunmap
aigmap
opt_clean
write_aiger -zinit all.aig
"""


@dataclass(frozen=True)
class Proof:
    """Parameters:
        depth: "induction" for all states that can be reached, else so many cycles from the start; 0 where the time was
            too short for any.
        broken: name of a property that breaks within so many cycles; None where none does.
    """

    depth: str | int
    broken: str | None = None


class _Broken(wiring.Component):
    """A component, with a bit for each property that does not hold although all assumptions have held so far.

    Members:
        names: of the properties, in the order of the bits.

    Raises:
        RuntimeError: when there is nothing to prove.
    """

    def __init__(self, component: wiring.Component) -> None:
        self._unit, members = component, component.signature.members
        self.names = [name for name in members if name.startswith("ok_")]
        if not self.names:
            raise RuntimeError(f"{type(component).__name__} must have outputs ok_…, and has none")
        super().__init__({"clk": In(1), "unit": Out(component.signature), "broken": Out(len(self.names))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.domains.sync = ClockDomain(local=True)  # Its reset is low.
        m.submodules.unit = unit = self._unit
        wiring.connect(m, wiring.flipped(self.unit), unit)
        assumed = [getattr(unit, name) for name in unit.signature.members if name.startswith("assume_")]
        held, holds = Signal(init=1), Signal()
        m.d.comb += [ClockSignal().eq(self.clk), holds.eq(held & Cat(assumed).all()),
                     self.broken.eq(Cat(holds & ~getattr(unit, name) for name in self.names))]
        m.d.sync += held.eq(holds)
        return m


def prove(component: wiring.Component, *, seconds: float = 60.0, cycles: int = 40, record: Record[Proof] | None = None
          ) -> Proof:
    """Prove all properties of a component at once; where that takes too long, for so many cycles.

    Parameters:
        record: of earlier proofs, by the hash of the circuit and these numbers; what it has is not proved again.

    Raises:
        RuntimeError: when there is nothing to prove.
    """
    whole = _Broken(component)
    text = rtlil.convert(whole, name="top", emit_src=False)
    key = hashlib.sha256(f"{seconds:g} {cycles} {text}".encode()).hexdigest()
    return (record or Record(None, Proof)).get(key, lambda: _proved(text, whole.names, seconds, cycles))


def _proved(text: str, names: list[str], seconds: float, cycles: int) -> Proof:
    """The same of a circuit as RTLIL, each of whose outputs says that a property is broken."""
    with tempfile.TemporaryDirectory(prefix="circulant-proof-") as temporary:
        folder = Path(temporary)
        (folder / "text").write_text(text)
        yosys(SCRIPT, folder, "all.aig")
        said = ""
        # Behind a quick look: induction over all pairs of signals that are equal, and where that leaves anything, IC3.
        for way, limit in ((f"bmc3 -v -F {FIRST} -T {QUICK}", QUICK),
                           (f"scorr -C 100000; print_stats; pdr -T {seconds:.0f}", seconds),
                           (f"bmc3 -v -F {cycles} -T {seconds:.0f}", seconds)):
            said += abc(f"read all.aig; {way}", folder, 3 * limit)
            if found := re.search(r"Output (\d+) .*asserted in frame (\d+)", said):
                return Proof(int(found[2]), names[int(found[1])])
            if proved(said):
                return Proof("induction")
    reached = re.findall(r"(?:No output asserted in|frame) +(\d+)", said)
    return Proof(max(map(int, reached), default=0))


def proved(said: str) -> bool:
    """Whether ABC, which prints statistics behind merging, has proved that an output is false in every cycle: where
    nothing is left, the output is a constant."""
    return "was asserted" not in said and ("Property proved" in said or NOTHING_LEFT.search(said) is not None)
