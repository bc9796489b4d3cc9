"""The registers of a design behind a bus, for everybody who talks to it: SystemRDL, a C header, a Python map, a page.

All follow from one table, `circulant.sim.registers.REGISTERS`, which the circuit follows too. The circuit is ours and
not PeakRDL's regblock: that is SystemVerilog on one clock, and knows neither the windows of memories behind the
configuration port nor the crossing of clocks; ours is Verilog as the core's is, and proved. The SystemRDL file is for
PeakRDL's other exporters (UVM, HTML, …); the header and the map are templates here, so that whoever generates a core
needs none of it installed.
"""
from collections.abc import Mapping
from typing import Any

from circulant.sim.configuration import CONTROL, RESUME, STATUS
from circulant.sim.registers import IDENTIFICATION, RegisterMap

__all__ = ["BUS_FILES", "bus_context"]

BUS_FILES = {
    "circulant_registers.rdl": "registers.rdl.j2",
    "circulant_registers.h": "registers.h.j2",
    "circulant_registers.py": "registers.py.j2",
    "registers.md": "registers.md.j2",
    "circulant_axi4lite.xdc": "bus.xdc.j2",
    "circulant_axi4lite.sdc": "bus.sdc.j2",
}
"""Template of each file of a kit with a bus."""

PORT = (
    ("cfg_control", CONTROL, "rw", "bit 0, hold: no input is taken"),
    ("cfg_status", STATUS, "r", "bit 0, idle: the port is open; bit 1, restoring; bit 2, refused"),
    ("cfg_resume", RESUME, "rw", "streams that go on from the states in the memories"),
)
"""Registers of the configuration port, see docs/reload.md."""


def bus_context(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The names that the templates of `BUS_FILES` use, from a design's manifest."""
    addresses = RegisterMap.from_manifest(manifest)
    port = [{"name": name, "offset": addresses.address(word), "access": access, "meaning": meaning}
            for name, word, access, meaning in PORT] if addresses.base else []
    windows = [{"name": window.name, "offset": addresses.address(window.first), "entries": window.size,
                "words": window.words, "width": window.width, "stride": 4 * window.stride,
                "access": "rw" if window.state is not None else "w"} for window in addresses.windows]
    states = [{"offset": addresses.address(window.first), "words": window.words, "parts": window.parts,
               "stride": 4 * window.stride, "count": window.words * window.parts}
              for window in addresses.windows if window.state is not None]
    return {"registers": addresses.registers, "base": addresses.base, "size": 1 << addresses.address_bits,
            "identification": IDENTIFICATION, "port": port, "windows": windows,
            "states": states}
