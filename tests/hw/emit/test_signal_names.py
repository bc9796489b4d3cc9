"""hw/emit/signal_names.py: the name of a wire is the plainest that the source has for it."""
from circulant.hw.emit.dataflow import Dataflow
from circulant.hw.emit.signal_names import SignalNames
from tests.hw.emit.rtlil_text import cell, module


def names(wires, *body, kinds=None):
    kinds = {"unit": ("circulant_unit", {"port$1$0": "total"})} if kinds is None else kinds
    found = module(wires, *body)
    flow = Dataflow(found, {"unit": {"p", "port$1$0"}})
    return SignalNames(flow, {wire.name[1:]: wire.name[1:] for wire in found.wires.values() if wire.port}, kinds)


def test_ports_come_first_and_a_wire_of_the_same_name_gets_a_number():
    found = names("<a:4 >y:4 y.:4", cell("$not", "$8", A="\\a", Y="\\y."), cell("$not", "$9", A="\\y.", Y="\\y"))
    assert found.wires == {"\\a": "a", "\\y": "y", "\\y.": "y_2"}


def test_a_value_without_a_name_is_called_by_what_makes_it_or_where_it_goes():
    cells = [cell("$not", "$6", A="\\a", Y="$1"), cell("$add", "$7", A="\\a", B="$1", Y="$2"),
             cell("$dff", "$8", D="$2", CLK="\\clk", Q="\\state"), cell("$xor", "$9", A="\\state", B="$2", Y="$3")]
    found = names("<clk:1 <a:4 >y:4 state:4 1:4 2:4 3:4", *cells, "connect \\y $3")
    assert [found.of(wire) for wire in ("$1", "$2", "$3", "$1")] == ["inverse_1", "state_next", "parity_1", "inverse_1"]
    assert found.part("$1", 0, 4) == "inverse_1"
    assert (found.part("$1", 2, 1), found.part("$1", 1, 2)) == ("inverse_1[2]", "inverse_1[2:1]")


def test_what_leaves_an_instance_has_its_name_in_front():
    found = names("<a:4 >y:4 1:4", cell("\\unit", "\\adder", x="\\a", **{"port$1$0": "$1"}),
                  cell("$not", "$9", A="$1", Y="\\y"))
    assert found.instances == {"\\adder": "adder"}
    assert found.of("$1") == "adder_total"
