"""A library of standard cells: what a liberty file says of area, capacitance, energy and function of each cell.

Units here: µm², fF, fJ, nW. Tables of energy are averaged over the conditions under which a pin switches, and over
rising and falling, which a count of toggles does not tell apart.
"""
import gzip
import lzma
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from circulant.boards.asic.cells.liberty import Group, numbers, parse
from circulant.sim.files.files import read_bytes, reason
from circulant.sim.refusal import Refusal

__all__ = ["Cell", "Library", "Pin", "Sequential", "read_text"]

_FARADS = {"f": 1.0, "p": 1e3, "n": 1e6}
_WATTS = {"f": 1e-6, "p": 1e-3, "n": 1.0, "u": 1e3, "m": 1e6}


@dataclass(frozen=True)
class Pin:
    """A pin of a cell.

    Parameters:
        direction: "input", "output" or "internal".
        capacitance: that it adds to its net, in fF.
        most: that an output may drive, in fF; 0 where nothing is said.
        function: of an output, as liberty has it.
        role: "clock", "enable" or "test" of a clock gate's pin, "scan_in" or "scan_enable" of a scan flip-flop's.
        loads: of ``energy``, in fF; one where it does not depend on them.
        energy: of a transition at each of them and the second of the library's slews, in fJ, without that of the load.
    """

    direction: str
    capacitance: float = 0.0
    most: float = 0.0
    function: str = ""
    role: str = ""
    loads: tuple[float, ...] = (0.0,)
    energy: tuple[float, ...] = (0.0,)

    def at(self, load: float) -> float:
        """Energy of a transition at a load, in fJ."""
        return float(np.interp(load, self.loads, self.energy))


@dataclass(frozen=True)
class Sequential:
    """A flip-flop or a latch: its state and the expressions of its pins, as liberty has them."""

    kind: str
    states: tuple[str, ...]
    clock: str
    data: str
    clear: str = ""
    preset: str = ""


@dataclass(frozen=True)
class Cell:
    """A cell.

    Parameters:
        leakage: in nW.
        gating: kind of a clock gate; an empty string for all other cells.
        dont_use: the library asks tools to leave it alone.
        scan: it is the scan form of a flip-flop.
    """

    name: str
    area: float
    leakage: float
    pins: dict[str, Pin]
    sequential: Sequential | None = None
    gating: str = ""
    dont_use: bool = False
    scan: bool = False

    @cached_property
    def inputs(self) -> list[str]:
        return [name for name, pin in self.pins.items() if pin.direction == "input"]

    @cached_property
    def outputs(self) -> list[str]:
        return [name for name, pin in self.pins.items() if pin.direction == "output"]

    @cached_property
    def repeats(self) -> bool:
        """Whether it is a buffer."""
        return (len(self.inputs) == len(self.outputs) == 1 and not self.sequential
                and self.pins[self.outputs[0]].function.strip("() ") == self.inputs[0])

    def pin(self, role: str) -> str:
        """The pin with a role; an empty string without one."""
        return next((name for name, pin in self.pins.items() if pin.role == role), "")


@dataclass(frozen=True)
class Library:
    """Cells, with the files that they come from.

    Parameters:
        name: as messages have it.
        files: liberty files, which tools read.
        voltage: nominal, in V.
        nanoseconds: of the library's unit of time.
        title: of the first library, which names its corner.
    """

    name: str
    files: tuple[Path, ...]
    voltage: float
    nanoseconds: float
    title: str
    cells: dict[str, Cell] = field(repr=False)

    @classmethod
    def read(cls, files: Sequence[Path], name: str = "") -> "Library":
        """Read some liberty files, packed by gzip or xz or not at all, as one library.

        Raises:
            Refusal: when a file is missing or none of liberty, or they have no flip-flop.
        """
        parts = [_part(read_text(file), file.name) for file in files]
        found = replace(parts[0], name=name or files[0].name, files=tuple(files),
                        cells={name: cell for part in parts for name, cell in part.cells.items()})
        if not any(cell.sequential and cell.sequential.kind == "ff" for cell in found.cells.values()):
            raise Refusal(f"A library must have flip-flops, but {', '.join(file.name for file in files)} holds "
                          f"{len(found.cells)} cells and none of them; name the file of sequential cells, too")
        return found

    @cached_property
    def buffers(self) -> list[Cell]:
        """Buffers for data, the smallest first: those that the library lets tools use, without delay cells."""
        found = [cell for cell in self.cells.values() if cell.repeats and not cell.dont_use and cell.area
                 and not any(word in cell.name.lower() for word in ("dly", "clk", "lpflow", "hb", "bufbuf", "probe"))]
        return sorted(found, key=lambda cell: (cell.pins[cell.outputs[0]].most, cell.area))

    @cached_property
    def clock_gates(self) -> list[Cell]:
        """Clock gates for rising edges, with a latch, the smallest first, those with a test pin behind the others."""
        found = [cell for cell in self.cells.values() if cell.gating.startswith("latch_posedge")]
        return sorted(found, key=lambda cell: (bool(cell.pin("test")), cell.area))

    @cached_property
    def gate_area(self) -> float:
        """Area of the smallest NAND of two inputs, in µm²: a gate equivalent. 0 without one."""
        nands = [cell.area for cell in self.cells.values() if cell.name.lower().replace("_", "").find("nand2") >= 0
                 and len(cell.inputs) == 2]
        return min(nands, default=0.0)


def read_text(file: Path) -> str:
    """The text of a file, packed or not.

    Raises:
        Refusal: when it cannot be read.
    """
    unpacked = {".gz": gzip.decompress, ".xz": lzma.decompress}.get(file.suffix, bytes)
    try:
        return unpacked(read_bytes(file)).decode("utf-8", "replace")
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise Refusal(f"A liberty file must be readable, but {file} is not ({reason(error)}); name another one"
                      ) from None


@lru_cache(maxsize=8)
def _part(text: str, file: str) -> Library:
    """The library of a file."""
    group = parse(text, file)
    time, leakage = group.text("time_unit", "1ns"), group.text("leakage_power_unit", "1nW")
    capacitance = group.attributes.get("capacitive_load_unit", ["1", "pf"])
    farads = float(capacitance[0]) * _FARADS[capacitance[1].lower()[0]]
    watts = float(leakage[:-2]) * _WATTS[leakage[-2].lower()]
    return Library(file, (), group.number("nom_voltage", 1.0),
                   float(time[:-2]) * {"n": 1.0, "p": 1e-3, "u": 1e3}[time[-2]], title=group.name,
                   cells={cell.name: _read(cell, farads, watts) for cell in group.all("cell")})


def _read(group: Group, farads: float, watts: float) -> Cell:
    pins = {pin.name: _pin(pin, farads) for pin in group.all("pin")}
    sequential = None
    for kind in ("ff", "latch"):
        for state in group.all(kind):
            clock, data = (("clocked_on", "next_state") if kind == "ff" else ("enable", "data_in"))
            sequential = Sequential(kind, tuple(state.arguments), state.text(clock), state.text(data),
                                    clear=state.text("clear"), preset=state.text("preset"))
    test = group.all("test_cell")
    for pin in test[0].all("pin") if test else ():
        role = {"test_scan_in": "scan_in", "test_scan_enable": "scan_enable"}.get(pin.text("signal_type"))
        if role and pin.name in pins:
            pins[pin.name] = replace(pins[pin.name], role=role)
    return Cell(group.name, group.number("area"), _leakage(group) * watts, pins, sequential,
                gating=group.text("clock_gating_integrated_cell"), dont_use=group.text("dont_use") == "true",
                scan=bool(test))


def _leakage(group: Group) -> float:
    if "cell_leakage_power" in group.attributes:
        return group.number("cell_leakage_power")
    supplies: dict[str, list[float]] = {}
    for entry in group.all("leakage_power"):
        supplies.setdefault(entry.text("related_pg_pin"), []).append(entry.number("value"))
    return sum(float(np.mean(values)) for values in supplies.values())


def _pin(group: Group, farads: float) -> Pin:
    role = next((role for attribute, role in (("clock_gate_enable_pin", "enable"), ("clock_gate_test_pin", "test"),
                                              ("clock_gate_clock_pin", "clock"), ("clock", "clock"))
                 if group.text(attribute) == "true"), "")
    loads, energy = _energy(group.all("internal_power"), farads)
    return Pin(group.text("direction"), group.number("capacitance") * farads,
               group.number("max_capacitance") * farads, group.text("function") or group.text("state_function"), role,
               loads=loads, energy=energy)


def _energy(arcs: Sequence[Group], farads: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Loads, and the mean energies of a pin at them and the second slew; energies are in units of capacitance, as
    voltages are in volts."""
    supplies: dict[str, list[NDArray[np.float64]]] = {}
    loads = np.zeros(1)
    for arc in arcs:
        for table in (*arc.all("rise_power"), *arc.all("fall_power")):
            values, rows, columns = (numbers(table.attributes.get(key, [])) for key in ("values", "index_1", "index_2"))
            if values.size > 1 and rows.size * max(1, columns.size) == values.size:
                loads = columns * farads if columns.size else loads
                values = values.reshape(rows.size, -1)
            if values.size:
                supplies.setdefault(arc.text("related_pg_pin"), []).append(np.atleast_2d(values) * farads)
    total = np.zeros(loads.size)
    for tables in supplies.values():
        total += np.mean([table[min(1, len(table) - 1)] if table.shape[1] == loads.size else np.full(
            loads.size, table.mean()) for table in tables], axis=0)
    return tuple(loads.tolist()), tuple(total.tolist())
