"""Scan: flip-flops become scan flip-flops in one chain, clock gates are held open while it shifts.

The ports are ``scan_enable``, ``scan_in`` and ``scan_out``. With ``scan_enable`` set, each cycle moves every value to
the next flip-flop of the chain. One clock, rising edges alone, a synchronous reset: nothing else has to be held.
"""
from dataclasses import dataclass

from circulant.boards.asic.cells.library import Cell, Library
from circulant.boards.asic.netlist import Net, Netlist
from circulant.sim.refusal import Refusal

__all__ = ["scan_form", "stitch"]


@dataclass(frozen=True)
class Form:
    """The scan form of a flip-flop: its cell, and its pin for each of the plain cell's."""

    cell: Cell
    pins: dict[str, str]


def stitch(netlist: Netlist, library: Library) -> int:
    """Put all flip-flops on a chain, in the order of their names; returns how many.

    Raises:
        Refusal: when the library has no scan form of a flip-flop that is used.
    """
    fresh = netlist.fresh()
    enable, first = next(fresh), next(fresh)
    netlist.ports["scan_enable"] = ("input", [enable])
    netlist.ports["scan_in"] = ("input", [first])
    forms: dict[str, Form] = {}
    at: Net = first
    count = 0
    for _, instance in sorted(netlist.instances.items()):
        cell = library.cells.get(instance.cell)
        if cell is None:
            continue
        if cell.gating:
            instance.pins[cell.pin("test")] = [enable]
        elif cell.sequential and cell.sequential.kind == "ff":
            form = forms.setdefault(cell.name, scan_form(library, cell))
            instance.pins = {form.pins[pin]: nets for pin, nets in instance.pins.items()}
            instance.cell = form.cell.name
            instance.pins |= {form.cell.pin("scan_in"): [at], form.cell.pin("scan_enable"): [enable]}
            for pin in form.cell.inputs:  # An asynchronous set that the plain cell lacks.
                instance.pins.setdefault(pin, ["1"])
            output = next(pin for pin in form.cell.outputs if _shown(form.cell, pin) == "state")
            if output not in instance.pins:
                instance.pins[output] = [next(fresh)]
            at = instance.pins[output][0]
            count += 1
    netlist.ports["scan_out"] = ("output", [at])
    return count


def scan_form(library: Library, cell: Cell) -> Form:
    """The smallest scan flip-flop that holds what a flip-flop holds.

    Raises:
        Refusal: when the library has none.
    """
    plain = cell.sequential
    assert plain is not None, "called for flip-flops"
    for each in sorted(library.cells.values(), key=lambda cell: cell.area):
        found, clock = each.sequential, each.pin("clock")
        if not (each.scan and found and found.kind == "ff" and each.pin("scan_in") and each.pin("scan_enable")
                and "D" in each.pins and found.clock.strip("() ") == clock
                and plain.clock.strip("() ") == cell.pin("clock")):
            continue
        # Outputs are matched by what they show of the state, other pins by their names.
        shown = {_shown(each, pin): pin for pin in each.outputs}
        pins = {"D": "D", cell.pin("clock"): clock} | {pin: shown.get(_shown(cell, pin), "") for pin in cell.outputs}
        pins |= {pin: pin for pin in cell.inputs if pin not in pins}
        if all(pin in each.pins for pin in pins.values()) and "state" in shown:
            return Form(each, pins)
    raise Refusal(f"A scan chain needs a scan form of {cell.name}, but {library.name} has none; leave out --scan")


def _shown(cell: Cell, pin: str) -> str:
    """Whether an output shows what the data pin was, or its inverse; a state may itself be kept inverted."""
    assert cell.sequential is not None, "called for flip-flops"
    inverse = cell.pins[pin].function.strip("() ") != cell.sequential.states[0]
    if not cell.scan:
        inverse ^= cell.sequential.data.strip("() ") in ("!D", "D'")
    return "inverse" if inverse else "state"
