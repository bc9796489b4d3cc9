"""The flow of data in a module: what drives each wire, and which of its bits anything needs."""
from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from circulant.hw.emit.choices import Segment, Tree, leaves, lowest, segments, selectors
from circulant.hw.emit.rtlil import Bits, Cell, Chunk, Module, Process, Wire, low_bits

__all__ = ["ARITHMETIC", "BITWISE", "Dataflow", "Driver", "is_register"]

BITWISE = frozenset({"$and", "$or", "$xor", "$not", "$mux"})
ARITHMETIC = frozenset({"$add", "$sub", "$neg"})
"""Cells whose low bits need only the low bits of their operands; so are `BITWISE` ones."""

Driver = Cell | list[Segment] | Bits
"""Driver of a wire: a cell or an instance, what a process assigns, or other bits."""


class Dataflow:
    """A module, from what it needs backwards: from its outputs, its instances and its memories.

    Parameters:
        outputs: names of the outputs of each kind of instance.

    Raises:
        ValueError: when there is an instance of a kind whose outputs are unknown.
    """

    def __init__(self, module: Module, outputs: Mapping[str, Collection[str]]) -> None:
        self.module = module
        self.instances = [cell for cell in module.cells if not cell.kind.startswith("$")]
        self.writes: dict[str, list[Cell]] = {}
        self.drivers: dict[str, Driver] = {}
        self._outputs = outputs
        self._made = 0
        for cell in module.cells:
            if cell.kind == "$memwr_v2":
                self.writes.setdefault(cell.memory, []).append(cell)
            for bits in self._results(cell):
                self.drivers.update((chunk.name, cell) for chunk in bits)
        for process in module.processes:
            self.drivers[_target(process)] = segments(process, self._intermediate)
        for (target,), value in module.connections:
            self.drivers[target.name] = value
        self.needed: dict[str, int] = {}
        """Low bits of each wire that anything needs; a wire with a name is needed as a whole."""
        self._need()
        self.memories = [name for name in module.memories if any(
            isinstance(driver, Cell) and driver.kind == "$memrd_v2" and driver.memory == name and wire in self.needed
            for wire, driver in self.drivers.items())]
        """Memories that are read."""
        self.references: Counter[str] = Counter()
        self.parted: set[str] = set()
        """Wires of which anything reads a part alone."""
        for chunk in self._read():
            self.references[chunk.name] += 1
            if chunk.low or chunk.width < self.needed[chunk.name]:
                self.parted.add(chunk.name)

    def inputs(self, driver: Driver, width: int) -> Iterator[Bits]:
        """Bits that the lowest ``width`` bits of a driver are made of."""
        if isinstance(driver, list):
            for segment in driver:
                if segment.low < width:
                    part = lowest(segment.value, min(segment.width, width - segment.low))
                    yield from leaves(part)
                    yield from selectors(part)
        elif isinstance(driver, Cell):
            yield from self._operands(driver, width)
        else:
            yield low_bits(driver, width)

    def is_output(self, cell: Cell, port: str) -> bool:
        return port in self._outputs[cell.kind[1:]]

    def _operands(self, cell: Cell, width: int) -> Iterator[Bits]:
        kind, ports = cell.kind, cell.ports
        if not kind.startswith("$"):
            return  # Its inputs are needed whatever is needed of it.
        if kind == "$dff":
            yield ports["D"]
            yield ports["CLK"]
        elif kind == "$memrd_v2":
            for each in (cell, *self.writes.get(cell.memory, ())):
                yield from (bits for name, bits in each.ports.items()
                            if name in ("ADDR", "EN", "CLK") or (name == "DATA" and each is not cell))
        else:
            low = kind in BITWISE or kind in ARITHMETIC
            for name, bits in ports.items():
                if name != "Y":
                    yield low_bits(bits, width) if (low and name != "S") or (kind == "$shl" and name == "A") else bits

    def _results(self, cell: Cell) -> Iterator[Bits]:
        if cell.kind.startswith("$"):
            result = {"$dff": "Q", "$memrd_v2": "DATA"}.get(cell.kind, "Y")
            if result in cell.ports:
                yield cell.ports[result]
            return
        if cell.kind[1:] not in self._outputs:
            raise ValueError(f"A design must hold every module that it instantiates, but {cell.kind[1:]!r} is missing")
        yield from (bits for name, bits in cell.ports.items() if self.is_output(cell, name))

    def _intermediate(self, value: Tree, width: int) -> Bits:
        self._made += 1
        name = f"$choice{self._made}"
        self.module.wires[name] = Wire(name, width, "", {})
        self.drivers[name] = [Segment(0, width, value)]
        return (Chunk(name, 0, width),)

    def _given(self) -> Iterator[Bits]:
        for cell in self.instances:
            yield from (bits for name, bits in cell.ports.items() if not self.is_output(cell, name))

    def _need(self) -> None:
        wires, drivers, needed = self.module.wires, self.drivers, self.needed
        waiting: list[Bits] = [(Chunk(wire.name, 0, wire.width),) for wire in wires.values() if wire.port == "output"]
        waiting.extend(self._given())
        while waiting:
            for name, low, width in waiting.pop():
                if not name:
                    continue
                driver = drivers.get(name)
                shrinks = name[0] == "$" and (isinstance(driver, list) or (isinstance(driver, Cell) and (
                    driver.kind in BITWISE or driver.kind in ARITHMETIC or driver.kind == "$shl")))
                bits = low + width if shrinks else wires[name].width
                if bits > needed.get(name, 0):
                    needed[name] = bits
                    if driver is not None:
                        waiting.extend(self.inputs(driver, bits))

    def _read(self) -> Iterator[Chunk]:
        """All that is read, each as often as it is."""
        found = list(self._given())
        for name, bits in self.needed.items():
            driver = self.drivers.get(name)
            if isinstance(driver, Cell) and driver.kind == "$memrd_v2":
                found += (driver.ports["ADDR"], driver.ports["EN"])
            elif driver is not None:
                found += self.inputs(driver, bits)
        for memory in self.memories:
            for cell in self.writes.get(memory, ()):
                found += (cell.ports[name] for name in ("ADDR", "DATA", "EN"))
        return (chunk for bits in found for chunk in bits if chunk.name)


def _target(process: Process) -> str:
    """The wire that a process assigns to."""
    target = process[0][0]
    assert isinstance(target, Chunk)
    return target.name


def is_register(driver: Driver) -> bool:
    """Whether a driver's value does not follow its inputs at once, or is an instance, which nothing looks into."""
    return isinstance(driver, Cell) and (driver.kind == "$dff" or not driver.kind.startswith("$") or (
        driver.kind == "$memrd_v2" and driver.number("CLK_ENABLE") == 1))
