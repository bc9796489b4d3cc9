"""hw/emit/declarations.py: ports in an order that a reader expects, wires of a kind side by side."""
from circulant.hw.emit.dataflow import Dataflow
from circulant.hw.emit.declarations import Declarations, Notes
from circulant.hw.emit.signal_names import SignalNames
from tests.hw.emit.rtlil_text import cell, module


def declarations(notes, wires, *body):
    found = module(wires, *body)
    flow = Dataflow(found, {})
    ports = {wire.name[1:]: wire.name[1:] for wire in found.wires.values() if wire.port}
    return Declarations(flow, SignalNames(flow, ports, {}), notes), found


def test_clock_and_reset_come_first_then_ports_with_comments_then_inputs():
    made, _ = declarations(
        Notes(ports={"y": "what leaves", "clk": "clock"}), "<a:4 >z:1 >y:4 <rst:1 <clk:1", cell(
            "$dff", "$8", D="\\a", CLK="\\clk", Q="\\y"), "connect \\z \\a [0]")
    assert list(made.ports()) == [
        "  input clk,  // clock", "  input rst,", "  output reg [3:0] y,  // what leaves", "  input [3:0] a,",
        "  output z"]


def test_wires_of_one_kind_share_a_line_and_attributes_for_tools_stay():
    cells = [cell("$not", "$6", A="\\a", Y="\\p"), cell("$not", "$7", A="\\p", Y="\\q"),
             cell("$dff", "$8", D="\\q", CLK="\\clk", Q="\\r")]
    made, found = declarations(Notes(source=lambda place: place.upper()), "<clk:1 <a:4 >y:4 p:4 q:4 r:4 unread:4",
                               *cells, "connect \\y \\r")
    found.wires["\\r"].attributes |= {"src": '"a.py:3"', "keep": "1", "init": "4'0000"}
    assert list(made.within()) == ["  wire [3:0] p, q;", '  (* src = "A.PY:3", keep = 1 *) reg [3:0] r;']
    assert list(made.source({"src": '"b.py:1"'}, "    ")) == ['    (* src = "B.PY:1" *)']
    assert list(made.source({})) == []
