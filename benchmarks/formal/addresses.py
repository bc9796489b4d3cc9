"""Whether a design writes its memories within their words alone, whatever comes: IC3 over the registers that decide.

Data is free, as are products of multipliers and what memories hold that are written: what holds for any data holds for
that of the design. The first cycle is a reset. Registers without a reset hold anything until they are loaded; so does a
memory without an image, which is looked at from the cycle `LOADED` on, while one with an image is looked at from the
first cycle on. Words beyond the last one are read now and then, by registers that have not been loaded yet or whose
word is not used; that such words do not count is left to simulations with unknown values.
"""
import re
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from benchmarks.formal.aig import FALSE, TRUE
from benchmarks.formal.check import abc
from benchmarks.formal.induction import cone
from benchmarks.formal.netlist import Bit, netlist
from benchmarks.formal.parts import RESET, parts
from benchmarks.formal.twin import Machine
from circulant.sim.cosim.manifest import Manifest

__all__ = ["LOADED", "outside", "written"]

LOADED = 16
"""Cycles after which no register holds what it held at first, in the stages between a sequencer and an array's rows."""

SMALL = 400
"""Registers of a part below which all of them are real."""


def outside(machine: Machine) -> dict[str, tuple[int, int]]:
    """By writing port of a memory the literals that are true where it is addressed beyond the last word, at all and
    while it is enabled. A memory of as many words as its address has values has none."""
    aig, at = machine.aig, machine.at
    found = dict[str, tuple[int, int]]()
    for memory in machine.circuit.memories:
        for n, (places, _, enables) in enumerate(memory.writes):
            beyond = aig.both(machine.begun, _at_least(machine, places, memory.depth))
            if beyond != FALSE:
                found[f"{memory.name}, port {n}"] = beyond, aig.both(beyond, aig.any(at[bit] for bit in enables))
    return found


def _at_least(machine: Machine, places: Sequence[Bit], limit: int) -> int:
    """Whether a word of nets, the lowest first, is a number or more."""
    if limit >> len(places):
        return FALSE
    aig, more, same = machine.aig, FALSE, TRUE
    for n in reversed(range(len(places))):
        bit = machine.at[places[n]]
        if not limit >> n & 1:
            more = aig.either(more, aig.both(same, bit))
        same = aig.both(same, bit if limit >> n & 1 else bit ^ 1)
    return aig.either(more, same)


def written(manifest: Manifest, *, seconds: float = 20.0, note: Callable[[str], None] = lambda text: None
            ) -> dict[str, bool]:
    """By module and memory whether it is proved that no word beyond the last one is written: of the module by itself,
    whatever is around it, or else of a larger part of the circuit.

    Parameters:
        seconds: for a port, first for its address alone and then for the cycles in which it is enabled.
    """
    verilog = "".join(path.read_text() for path in manifest.verilog)
    made = cache(lambda part: Machine(netlist(verilog, part, images=manifest.images, boxes=True),
                                      manifest.reset if part == manifest.top else RESET, inner=part != manifest.top))
    found = dict[str, bool]()
    for module in re.finditer(r"^module (\w+) \(.*?^endmodule", verilog, re.MULTILINE | re.DOTALL):
        for memory in re.findall(r"^    if \([^;]*?\) (\w+)\[[^;]*?\] <= ", module[0], re.MULTILINE):
            name = f"{module[1]}.{memory}"
            found[name] = any(_proved(made(part), memory, seconds) for part in parts(verilog, module[1], manifest.top))
            note(f"{name}: {'proved' if found[name] else 'not proved'}")
    return found


def _proved(machine: Machine, memory: str, seconds: float) -> bool:
    """The same of all memories of that name in a part; False where it has none."""
    if memory not in (each.name.split(".")[-1] for each in machine.circuit.memories):
        return False
    control = machine.nexts if len(machine.nexts) < SMALL else machine.control
    real = {machine.at[bit]: machine.at[machine.nexts[bit]] for bit in control}
    empty = {each.name for each in machine.circuit.memories if set("".join(each.contents)) <= {"x"}}
    late, delays = _late(machine)
    every = [[machine.aig.both(bad, late) if name.rpartition(", ")[0] in empty else bad for bad in conditions]
             for name, conditions in outside(machine).items() if re.split("[.,]", name)[-2] == memory]
    return all(any(_never(machine, real | delays, bad, seconds) for bad in conditions) for conditions in every)


def _late(machine: Machine) -> tuple[int, dict[int, int]]:
    """A literal that is true from the cycle `LOADED` on, and the registers that it takes, with their next values."""
    late, delays = machine.begun, dict[int, int]()
    for _ in range(LOADED):
        register = machine.aig.input()  # It may be true in the first cycle, in which ``begun`` is false.
        delays[register] = late
        late = machine.aig.both(machine.begun, register)
    return late, delays


def _never(machine: Machine, real: dict[int, int], bad: int, seconds: float) -> bool:
    if bad == FALSE:
        return True
    with tempfile.TemporaryDirectory(prefix="circulant-addresses-") as temporary:
        folder = Path(temporary)
        (folder / "outside.aig").write_bytes(cone(machine.aig, bad, real, machine.begun)[1])
        return "Property proved" in abc(f"read outside.aig; pdr -T {seconds:.0f}", folder, 3 * seconds)
