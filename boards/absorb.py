"""Registers behind an ECP5's multipliers become those within them: Yosys leaves them outside.

Those of operands stay where they are. They can lie anywhere on the path to a multiplier; without them nextpnr
looked for ways to all pins of 154 multipliers for an hour, and found half of them.
"""
import json
from collections import Counter
from pathlib import Path
from typing import Any

from circulant.boards.yosys_json import Cell, Module, Netlist
from circulant.sim.files.writing import atomic_text

__all__ = ["absorb"]

PRODUCT, REGISTER = "MULT18X18D", "TRELLIS_FF"
RESULT = [f"P{n}" for n in range(36)]


def absorb(file: str | Path, top: str) -> int:
    """Change a netlist for an ECP5, as Yosys writes it as JSON; the number of multipliers that took in a register.

    A result's register is taken in when a plain flip-flop is the only reader of each bit that is read. Plain is one
    that begins with 0 and takes a value in each cycle. In every cycle the circuit does what it did.

    Parameters:
        top: the flat module.
    """
    netlist: Netlist = json.loads(Path(file).read_text("utf-8"))
    module = netlist["modules"][top]
    cells = module["cells"]
    after = {cell["connections"]["DI"][0]: name for name, cell in cells.items()
             if cell["type"] == REGISTER and _plain(cell)}
    reads, taken = _reads(module), 0
    for product in [cell for cell in cells.values() if cell["type"] == PRODUCT]:
        pins = product["connections"]
        bits = {port: pins[port][0] for port in RESULT if port in pins and reads[pins[port][0]]}
        if not bits or not all(reads[bit] == 1 and bit in after for bit in bits.values()):
            continue
        names = {port: after[bit] for port, bit in bits.items()}
        clocks = {cells[name]["connections"]["CLK"][0] for name in names.values()}
        if len(clocks) == 1:
            for port, name in names.items():
                pins[port] = cells.pop(name)["connections"]["Q"]
            _clock(product, clocks.pop())
            taken += 1
    atomic_text(Path(file), json.dumps(netlist))
    return taken


def _plain(flop: Cell) -> bool:
    pins = flop["connections"]
    return (flop["parameters"].get("CEMUX", "").strip() == "1" and flop["parameters"].get("REGSET") == "RESET"
            and pins.get("LSR", ["0"])[0] in ("0", "x") and not isinstance(pins["DI"][0], str))


def _clock(product: Cell, clock: int | str) -> None:
    """Switch the register of a result on."""
    product["connections"] |= {"CLK0": [clock], "CE0": ["1"], "RST0": ["0"]}
    product["port_directions"] |= dict.fromkeys(("CLK0", "CE0", "RST0"), "input")
    product["parameters"] |= {"REG_OUTPUT_CLK": "CLK0", "REG_OUTPUT_CE": "CE0", "REG_OUTPUT_RST": "RST0"}


def _reads(module: Module) -> Counter[Any]:
    """How many inputs of cells, and outputs of the module, each net goes to."""
    reads = Counter(bit for cell in module["cells"].values() for port, bits in cell["connections"].items()
                    if cell["port_directions"][port] == "input" for bit in bits)
    reads.update(bit for port in module["ports"].values() if port["direction"] != "input" for bit in port["bits"])
    return reads
