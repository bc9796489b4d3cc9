"""hw/emit/dataflow.py: what is needed, by how many readers, and what is left out."""
import pytest

from circulant.hw.emit.dataflow import Dataflow, is_register
from circulant.hw.emit.rtlil import Chunk
from tests.hw.emit.rtlil_text import cell, module


def test_what_nobody_reads_is_not_needed():
    flow = Dataflow(module("<a:4 <b:4 >y:4 1:4 2:4 spare:4", cell("$and", "$8", A="\\a", B="\\a", Y="$1"),
                           cell("$or", "$9", A="\\a", B="\\b", Y="$2"), "connect \\y $1", "connect \\spare $2"), {})
    assert flow.needed == {"\\y": 4, "$1": 4, "\\a": 4}
    assert flow.references == {"$1": 1, "\\a": 2}


@pytest.mark.parametrize(("kind", "bits"), [
    ("$and", 3), ("$add", 3), ("$sub", 3), ("$mul", 8), ("$lt", 8), ("$shr", 8)])
def test_low_bits_of_a_sum_need_only_those_of_its_operands(kind, bits):
    """A product and a comparison need all."""
    flow = Dataflow(module("<a:8 <b:8 >y:3 1:8 2:8", cell("$xor", "$7", A="\\a", B="\\b", Y="$2"),
                           cell(kind, "$8", A="$2", B="\\b", Y="$1"), "connect \\y $1 [2:0]"), {})
    assert flow.needed["$2"] == bits
    assert flow.needed["\\b"] == 8, "a wire with a name is needed as a whole"


def test_parts_that_are_read_alone_are_known():
    flow = Dataflow(module("<a:4 <b:4 >y:4 >z:1 1:4", cell("$and", "$8", A="\\a", B="\\b", Y="$1"), "connect \\y $1",
                           "connect \\z $1 [2]"), {})
    assert flow.parted == {"$1"}
    assert flow.references["$1"] == 2


def test_inputs_of_an_instance_are_needed_and_its_outputs_where_they_are_read():
    body = [cell("\\unit", "\\u", x="\\a", p="$1", q="$2"), "connect \\y $1"]
    flow = Dataflow(module("<a:4 >y:4 1:4 2:4", *body), {"unit": {"p", "q"}})
    assert flow.needed == {"\\y": 4, "\\a": 4, "$1": 4}
    assert [each.name for each in flow.instances] == ["\\u"]
    assert is_register(flow.drivers["$1"]), "nothing looks into an instance"
    with pytest.raises(ValueError, match=r"every module that it instantiates, but 'unit' is missing"):
        Dataflow(module("<a:4 >y:4 1:4 2:4", *body), {})


MEMORY = """
memory width 4 size 8 \\{name}
cell $memrd_v2 ${read}
  parameter \\MEMID "\\\\{name}"
  parameter \\CLK_ENABLE 1'1
  connect \\ADDR \\at
  connect \\DATA {data}
  connect \\EN 1'1
  connect \\CLK \\clk
end
cell $memwr_v2 ${write}
  parameter \\MEMID "\\\\{name}"
  parameter \\WIDTH 4
  connect \\ADDR \\at
  connect \\DATA \\{new}
  connect \\EN {{ \\we \\we \\we \\we }}
  connect \\CLK \\clk
end
"""


def test_a_memory_that_is_not_read_goes_with_what_is_written_into_it():
    flow = Dataflow(module(
        "<clk:1 <at:3 <we:1 <in:4 <other:4 >y:4 1:4 2:4",
        MEMORY.format(name="kept", read=4, write=5, data="$1", new="in"),
        MEMORY.format(name="left", read=6, write=7, data="$2", new="other"), "connect \\y $1"), {})
    assert flow.memories == ["\\kept"]
    assert "\\in" in flow.needed
    assert "\\other" not in flow.needed
    assert is_register(flow.drivers["$1"])


def test_a_value_that_is_chosen_from_twice_becomes_a_wire():
    process = r'''
process $9
  assign \y [3:0] \a
  switch \s
    case 1'1
      assign \y [3:0] \b
  end
  switch \t
    case 2'00
    case 2'01
      assign \y [3:0] 4'0001
    case 2'10
    case
      assign \y [3:0] 4'0010
  end
end'''
    flow = Dataflow(module("<a:4 <b:4 <s:1 <t:2 >y:4", process), {})
    made, = (name for name in flow.module.wires if name.startswith("$choice"))
    assert (flow.needed[made], flow.references[made]) == (4, 2)
    assert {chunk.name for bits in flow.inputs(flow.drivers[made], 4) for chunk in bits} == {"\\a", "\\b", "\\s"}
    assert {chunk.name for bits in flow.inputs(flow.drivers["\\y"], 4) for chunk in bits} == {made, "\\t", ""}


def test_a_register_is_what_does_not_follow_its_inputs_at_once():
    flow = Dataflow(module("<clk:1 <a:4 >y:4 1:4", cell("$dff", "$8", D="$1", CLK="\\clk", Q="\\y"),
                           cell("$not", "$9", A="\\a", Y="$1")), {})
    assert is_register(flow.drivers["\\y"])
    assert not is_register(flow.drivers["$1"])
    assert list(flow.inputs(flow.drivers["$1"], 2)) == [(Chunk("\\a", 0, 2),)]
