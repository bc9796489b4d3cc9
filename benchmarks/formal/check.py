"""Properties of a component, proved for every state that it can reach: IC3 (Bradley 2011) as ABC has it, in `pdr`.

A component says itself what has to hold: each output ``ok_…`` is 1 in every cycle up to which all its outputs
``assume_…`` have been 1. Its inputs are free in each cycle, but for its reset, which is low.
"""
import hashlib
import re
import subprocess
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from amaranth.back import rtlil
from amaranth.lib import wiring

from benchmarks.formal.aig import FALSE, Aig
from benchmarks.formal.machine import machine
from benchmarks.formal.netlist import netlist
from benchmarks.resume import Record

FIRST = 8
"""Cycles within which most faults show, and `QUICK` seconds in which they are looked for."""

QUICK = 10

__all__ = ["Proof", "abc", "available", "prove"]


@dataclass(frozen=True)
class Proof:
    """Parameters:
        depth: "induction" for all states that can be reached, else so many cycles from the start; 0 where the time was
            too short for any.
        broken: name of a property that breaks within so many cycles; None where none does.
    """

    depth: str | int
    broken: str | None = None


def available() -> bool:
    """Whether ABC is installed, with the wheel of pyosys."""
    return find_spec("pyosys") is not None


def abc(commands: str, folder: Path, seconds: float) -> str:
    """The output of ABC."""
    spec = find_spec("pyosys")
    assert spec is not None and spec.origin is not None, "pyosys brings ABC"
    try:
        done = subprocess.run([str(Path(spec.origin).parent / "yosys-abc"), "-q", commands], cwd=folder, text=True,
                              capture_output=True, check=False, timeout=seconds)
    except subprocess.TimeoutExpired as late:
        return (late.stdout or b"").decode() if isinstance(late.stdout, bytes) else late.stdout or ""
    return done.stdout


def prove(component: wiring.Component, *, seconds: float = 60.0, cycles: int = 40, record: Record[Proof] | None = None
          ) -> Proof:
    """Prove all properties of a component at once; where that takes too long, for so many cycles.

    Parameters:
        record: of earlier proofs, by the hash of the circuit and these numbers; what it has is not proved again.

    Raises:
        RuntimeError: when there is nothing to prove.
    """
    text = rtlil.convert(component, name="top", emit_src=False)
    key = hashlib.sha256(f"{seconds:g} {cycles} {text}".encode()).hexdigest()
    return (record or Record(None, Proof)).get(key, lambda: _proved(text, type(component).__name__, seconds, cycles))


def _proved(text: str, name: str, seconds: float, cycles: int) -> Proof:
    """The same of a circuit as RTLIL."""
    circuit = netlist(text, "top", language="rtlil")
    aig = Aig()
    outputs = machine(aig, circuit, lambda name, width: [FALSE] * width if name in ("clk", "rst") else [
        aig.input() for _ in range(width)])
    wanted = {name: bits[0] for name, bits in outputs.items() if name.startswith("ok_")}
    if not wanted:
        raise RuntimeError(f"{name} must have outputs ok_…, and has none")
    broken = aig.latch()  # An assumption was broken before.
    allowed = aig.all([broken ^ 1, *(bits[0] for name, bits in outputs.items() if name.startswith("assume_"))])
    aig.follow(broken, allowed ^ 1)
    bad = {name: aig.both(allowed, value ^ 1) for name, value in wanted.items()}
    with tempfile.TemporaryDirectory(prefix="circulant-proof-") as temporary:
        folder = Path(temporary)
        aig.write(folder / "all.aig", [aig.any(bad.values())])
        first = abc(f"read all.aig; bmc3 -v -F {FIRST} -T {QUICK}", folder, 2 * seconds)
        if "was asserted" in first:
            for name, literal in bad.items():
                aig.write(folder / "one.aig", [literal])
                said = abc(f"read one.aig; bmc3 -F {FIRST} -T {QUICK}", folder, 2 * seconds)
                if found := re.search(r"asserted in frame (\d+)", said):
                    return Proof(int(found[1]), name)
        # Induction over all pairs of signals that are equal, then IC3; where the first leaves nothing, it was all.
        said = abc(f"read all.aig; scorr -C 100000; print_stats; pdr -T {seconds:.0f}", folder, 3 * seconds)
        if "Property proved" in said or re.search(r"lat = +0 +and = +0 ", said):
            return Proof("induction")
        said = abc(f"read all.aig; bmc3 -v -F {cycles} -T {seconds:.0f}", folder, 2 * seconds)
    if found := re.search(r"asserted in frame (\d+)", said):
        return Proof(int(found[1]), "any")
    reached = re.findall(r"(?:No output asserted in|frame) +(\d+)", first + said)
    return Proof(max(map(int, reached), default=0))

