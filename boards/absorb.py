"""Registers around an ECP5's multipliers become those within them: Yosys leaves them outside.

So a result is kept where it arises, and the way to an operand ends at the multiplier.
"""
import json
from collections import Counter
from pathlib import Path
from typing import Any

from circulant.sim import artifact

__all__ = ["absorb"]

PRODUCT, REGISTER = "MULT18X18D", "TRELLIS_FF"
OPERANDS = {letter: [f"{letter}{n}" for n in range(18)] for letter in "AB"}
RESULT = [f"P{n}" for n in range(36)]

Cell = dict[str, Any]


def absorb(file: str | Path, top: str) -> int:
    """Change a netlist for an ECP5, as Yosys writes it as JSON; the number of registers that multipliers took in.

    The register of an operand is taken in when every bit is constant or comes from a plain flip-flop, which stays for
    what else reads it; that of a result, when a plain flip-flop is the only reader of each bit that is read. Plain is
    one that begins with 0 and takes a value in each cycle. In every cycle the circuit does what it did.

    Parameters:
        top: the flat module.
    """
    netlist = json.loads(Path(file).read_text("utf-8"))
    module = netlist["modules"][top]
    cells: dict[str, Cell] = module["cells"]
    flops = {name: cell for name, cell in cells.items() if cell["type"] == REGISTER and _plain(cell)}
    after = {cell["connections"]["DI"][0]: name for name, cell in flops.items()}
    before = {cell["connections"]["Q"][0]: name for name, cell in flops.items()}
    reads = _reads(module)
    taken = 0
    for product in [cell for cell in cells.values() if cell["type"] == PRODUCT]:
        pins = product["connections"]
        for letter, ports in OPERANDS.items():
            bits = {port: pins[port][0] for port in ports if port in pins and not isinstance(pins[port][0], str)}
            if bits and all(bit in before for bit in bits.values()):
                sources = {port: flops[before[bit]] for port, bit in bits.items()}
                if _clock(product, f"INPUT{letter}", sources.values()):
                    for port, flop in sources.items():
                        pins[port] = flop["connections"]["DI"]
                        reads[flop["connections"]["Q"][0]] -= 1
                    taken += 1
        bits = {port: pins[port][0] for port in RESULT if port in pins and reads[pins[port][0]]}
        if bits and all(reads[bit] == 1 and bit in after for bit in bits.values()):
            names = {port: after[bit] for port, bit in bits.items()}
            if _clock(product, "OUTPUT", [flops[name] for name in names.values()]):
                for port, name in names.items():
                    pins[port] = cells.pop(name)["connections"]["Q"]
                taken += 1
    for bit, name in before.items():
        if name in cells and not reads[bit]:
            del cells[name]
    artifact.atomic_text(Path(file), json.dumps(netlist))
    return taken


def _plain(flop: Cell) -> bool:
    pins = flop["connections"]
    return (flop["parameters"].get("CEMUX", "").strip() == "1" and flop["parameters"].get("REGSET") == "RESET"
            and pins.get("LSR", ["0"])[0] in ("0", "x") and not isinstance(pins["DI"][0], str))


def _clock(product: Cell, register: str, flops: Any) -> bool:
    """Switch a register of a multiplier on, where the flip-flops have its clock, or whose clock it can take."""
    clocks = {flop["connections"]["CLK"][0] for flop in flops}
    pins = product["connections"]
    if len(clocks) != 1 or pins.get("CLK0", [None])[0] not in (None, *clocks):
        return False
    pins |= {"CLK0": [clocks.pop()], "CE0": ["1"], "RST0": ["0"]}
    product["port_directions"] |= dict.fromkeys(("CLK0", "CE0", "RST0"), "input")
    product["parameters"] |= {f"REG_{register}_CLK": "CLK0", f"REG_{register}_CE": "CE0", f"REG_{register}_RST": "RST0"}
    return True


def _reads(module: dict[str, Any]) -> Counter[Any]:
    """How many inputs of cells, and outputs of the module, each net goes to."""
    reads = Counter(bit for cell in module["cells"].values() for port, bits in cell["connections"].items()
                    if cell["port_directions"][port] == "input" for bit in bits)
    reads.update(bit for port in module["ports"].values() if port["direction"] != "input" for bit in port["bits"])
    return reads
