"""Ports of a design: names, directions, bits and meanings, in the order in which an engineer reads them."""
from amaranth.hdl import Shape
from amaranth.lib.wiring import Out, Signature

from circulant.hw.emit.comments import NAMED, PORTS
from circulant.sim.design import Signal

__all__ = ["MEANINGS", "port_list"]

MEANINGS = {
    **PORTS,
    "s_axis_tdata": "input: a beat of values, value 0 in the low bits",
    "s_axis_tvalid": "input: a beat is offered",
    "s_axis_tready": "input: a beat that is offered is taken at this edge",
    "s_axis_tlast": "input: last beat of a sequence or image",
    "m_axis_tdata": "output: a beat of values, value 0 in the low bits",
    "m_axis_tvalid": "output: a beat is offered",
    "m_axis_tready": "output: a beat that is offered is taken at this edge",
    "m_axis_tlast": "output: last beat of the outputs of a sequence or image",
    "s_axi_aclk": "bus: everything of the bus happens at its rising edge",
    "s_axi_aresetn": "bus: its reset, synchronous, active low",
    "s_axi_awaddr": "bus: byte address of a write",
    "s_axi_awprot": "bus: protection of a write, which is not looked at",
    "s_axi_awvalid": "bus: the address of a write is offered",
    "s_axi_awready": "bus: the address of a write is taken",
    "s_axi_wdata": "bus: word to write",
    "s_axi_wstrb": "bus: bytes to write; all, or the write is refused",
    "s_axi_wvalid": "bus: a word is offered",
    "s_axi_wready": "bus: the word to write is taken",
    "s_axi_bresp": "bus: 0, or 2 where the write was refused",
    "s_axi_bvalid": "bus: the answer to a write is offered",
    "s_axi_bready": "bus: the answer to a write is taken",
    "s_axi_araddr": "bus: byte address of a read",
    "s_axi_arprot": "bus: protection of a read, which is not looked at",
    "s_axi_arvalid": "bus: the address of a read is offered",
    "s_axi_arready": "bus: the address of a read is taken",
    "s_axi_rdata": "bus: word that was read",
    "s_axi_rresp": "bus: 0, or 2 where the read was refused",
    "s_axi_rvalid": "bus: the answer to a read is offered",
    "s_axi_rready": "bus: the answer to a read is taken",
    "overflow": "a sequence was too long and has been cut; stays set until reset",
    "malformed": "s_axis_tlast came at a wrong beat; stays set until reset",
    "corrected": "a wrong word of a memory was read and put right, in each cycle in which one was",
    "uncorrected": "a word with wrong bits was read from a memory and could not be put right; stays set until reset",
    "cfg_addr": "configuration: word address",
    "cfg_wdata": "configuration: word to write",
    "cfg_we": "configuration: write in this cycle",
    "cfg_re": "configuration: read in this cycle",
    "cfg_rdata": "configuration: word that was read",
    "cfg_rvalid": "configuration: the word that was read is there, three cycles after cfg_re",
}
"""Meaning of each port that a design may have, in the order of the list."""


def port_list(signature: Signature) -> list[Signal]:
    """Clock, reset and the members of a top: ``name``, ``direction`` ("in" or "out"), ``bits``, ``meaning``."""
    members = {name: (member.flow, Shape.cast(member.shape).width) for name, member in signature.members.items()}
    found = {"clk": ("in", 1), "rst": ("in", 1)} | {
        name: ("out" if flow is Out else "in", bits) for name, (flow, bits) in members.items()}
    order = list(MEANINGS)
    known = {name: NAMED.sub(r"\1_\2", name) for name in found}
    return [{"name": name, "direction": found[name][0], "bits": found[name][1], "meaning": MEANINGS[known[name]]}
            for name in sorted((name for name in found if known[name] in order), key=lambda name: _place(name, known))]


def _place(name: str, known: dict[str, str]) -> tuple[int, str, int]:
    """The place of a port in the list: the signals of one of several streams stand together."""
    order = list(MEANINGS)
    at = order.index(known[name])
    if known[name] == name:
        return at, "", 0
    return order.index(f"{name[0]}_axis_tdata"), name.rpartition("_")[0], at
