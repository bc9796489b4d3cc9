# amaranth: UnusedElaboratable=no
import re

import numpy as np
import pytest
from amaranth.hdl import Module, Value
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.arith.fft import FftShape, ForwardFft, InverseFft
from circulant.hw.array.mac_row import MacRow, MacRowShape
from circulant.hw.emit.target import Rom, VerilogTarget, instances, packed, separate_module
from tests.hw.simulate import trace

SHAPE = MacRowShape(k=2, columns=1, data_width=6, weight_width=5, terms=3, slots=2)
FORWARD = {"shape": FftShape(2, 6, 4), "shift": -1, "spectrum_width": 7}


class Holder(wiring.Component):
    """Some components of one kind, all with the same inputs."""

    def __init__(self, kind, count, **parameters):
        self._made = (kind, count, parameters)
        self.found = []
        super().__init__({"en": In(1)})

    def elaborate(self, platform):
        m = Module()
        kind, count, parameters = self._made
        self.found = instances(m, platform, "unit", kind, count, **parameters)
        return m


def modules(text):
    return [name for name in re.findall(r"^module (\w+) ", text, re.M) if name != "circulant_rom"]


def ports(text, instance):
    """Connections of an instance, by port."""
    body = re.search(rf"^  \S+ {instance} \(\n(.*?)\n  \);", text, re.M | re.S)
    return dict(re.findall(r"\.(\w+)\(([^()]*)\)", body[1]))


@pytest.mark.parametrize(("width", "text"), [
    (8, "00\n01\nff\n7f\n"), (5, "00\n01\n1f\n1f\n"), (4, "0\n1\nf\nf\n"), (13, "0000\n0001\n1fff\n007f\n"),
    (1, "0\n1\n1\n1\n")])
def test_an_image_has_a_word_per_line_in_whole_digits(width, text):
    target = VerilogTarget()
    assert target.add_image("part", [0, 1, -1, 127], width) == "part.hex"
    assert target.images == {"part.hex": text}


def test_a_name_is_taken_once_unless_the_contents_are_the_same():
    target = VerilogTarget()
    assert [target.add_image("part", [3, 4], 8) for _ in range(2)] == ["part.hex"] * 2
    for words, width in (([3, 5], 8), ([3, 4, 0], 8), ([3, 4], 9)):
        with pytest.raises(ValueError, match=r"^A memory image must have a name of its own, not 'part' twice$"):
            target.add_image("part", words, width)
    assert target.images == {"part.hex": "03\n04\n"}


def test_packed_words_hold_their_first_number_in_the_low_bits():
    assert packed(np.array([[1, -1, 2], [-8, 7, 0]]), 4) == [0x2f1, 0x078]


@pytest.mark.parametrize("words", [[5], [1, -2, 3], list(range(-8, 8))])
def test_a_rom_shows_a_word_a_cycle_later_and_keeps_it(words):
    addresses = [*range(len(words)), 0]
    rom = Rom(words=words, width=4, image="part")
    assert trace(rom, {"addr": addresses, "en": [1] * len(addresses)})["data"][1:] == [word & 15 for word in words]
    last = len(words) - 1
    assert trace(rom, {"addr": [last, 0, 0], "en": [1, 0, 0]})["data"][1:] == [words[last] & 15] * 2


def test_a_rom_in_verilog_reads_its_image():
    target = VerilogTarget()
    text = target.convert(Rom(words=range(5), width=12, image="part"), "top")
    assert target.images == {"part.hex": "000\n001\n002\n003\n004\n"}
    assert modules(text) == ["top"]
    instance = re.search(r"^  circulant_rom #\((.*?)\) rom \((.*?)  \);", text, re.M | re.S)
    assert dict(re.findall(r"\.(\w+)\((.*?)\)", instance[1])) == {
        "IMAGE": '"part.hex"', "WIDTH": "12", "DEPTH": "5", "ADDRESS": "3", "STYLE": '"logic"'}
    assert dict(re.findall(r"\.(\w+)\((.*?)\)", instance[2])) == {name: name for name in ("clk", "en", "addr", "data")}
    assert text.count("module circulant_rom #(") == 1
    assert text.count("$readmemh(IMAGE, mem)") == 1


def test_equal_components_are_one_module():
    text = VerilogTarget().convert(Holder(MacRow, 3, shape=SHAPE), "top")
    assert modules(text) == ["top", "circulant_macrow_2_1_6_5_3_2_1_4", "circulant_macrow_2_1_6_5_3_2_1_4_accumulators"]
    assert re.findall(r"^  circulant_macrow_2_1_6_5_3_2_1_4 (\w+) ", text, re.M) == ["unit_0", "unit_1", "unit_2"]


def test_a_shared_module_is_the_verilog_of_its_component():
    text = VerilogTarget().convert(Holder(MacRow, 2, shape=SHAPE), "top")
    name = "circulant_macrow_2_1_6_5_3_2_1_4"
    alone = VerilogTarget().convert(MacRow(SHAPE), name)
    assert re.search(rf"^module {name}.*?^endmodule\n", alone, re.M | re.S)[0] in text


class Table(wiring.Component):
    """A memory with contents that is no `Rom`."""

    def __init__(self, contents):
        self._contents = contents
        super().__init__({"addr": In(2), "data": Out(4)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.table = table = memory.Memory(shape=4, depth=4, init=self._contents)
        port = table.read_port()
        m.d.comb += [port.addr.eq(self.addr), self.data.eq(port.data)]
        return m


def test_a_memory_with_contents_must_be_a_rom():
    with pytest.raises(ValueError, match=r"^A memory must start without contents, since Verilog gives it none; take a "
                                         r"Rom$"):
        VerilogTarget().convert(Table([0, 3]), "top")
    assert "initial" not in VerilogTarget().convert(Table([]), "top").partition("circulant_rom")[0]


def test_names_tell_parameters_apart():
    target = VerilogTarget()
    text = target.convert(Holder(ForwardFft, 1, **FORWARD), "top")
    other = target.convert(Holder(ForwardFft, 1, **FORWARD | {"shift": 1}), "top")
    assert set(modules(text)) == {"top", "circulant_forwardfft_2_6_4_4_m1_7"}
    assert set(modules(other)) == {"top", "circulant_forwardfft_2_6_4_4_1_7"}


@pytest.mark.parametrize(("kind", "parameters", "controls"), [
    (ForwardFft, FORWARD, {"clk", "rst"}), (MacRow, {"shape": SHAPE}, {"clk", "rst"}),
    (InverseFft, {"shape": FftShape(1, 6, 4)}, set()),  # no registers
])
def test_an_instance_has_the_clock_and_the_reset_that_its_module_has(kind, parameters, controls):
    holder = Holder(kind, 1, **parameters)
    text = VerilogTarget().convert(holder, "top")
    connected = ports(text, "unit_0")
    header = re.search(r"^module circulant_\w+ \((.*?)^\);", text, re.M | re.S)[1]
    assert set(connected) == set(re.findall(r"^  (?:input|output(?: reg)?) (?:\[.*?\] )?(\w+)", header, re.M))
    assert {port for port in connected if port in ("clk", "rst")} == controls
    assert {port: connected[port] for port in controls} == {port: port for port in controls}


def test_a_module_is_made_once():
    target, made = VerilogTarget(), []

    def make():
        made.append(MacRow(SHAPE))
        return made[-1]

    assert [target.share("lane", make) for _ in range(3)] == [(made[0].signature, ["clk", "rst"])] * 3
    assert len(made) == 1


class SeparateModule(wiring.Component):
    """Two rows, of which the second one is a module of its own."""

    def __init__(self):
        self.rows = [MacRow(SHAPE), MacRow(SHAPE)]
        super().__init__(dict(MacRow(SHAPE).signature.members))

    def elaborate(self, platform):
        m = Module()
        m.submodules.inner = first = self.rows[0]
        m.submodules.outer = separate_module(platform, second := self.rows[1], "second_one")
        streams = (self.signature.flatten(each) for each in (self, first, second))
        for (_, member, mine), (_, _, one), (_, _, other) in zip(*streams, strict=True):
            mine, one, other = map(Value.cast, (mine, one, other))
            m.d.comb += [one.eq(mine), other.eq(mine)] if member.flow is In else mine.eq(one ^ other)
        return m


def test_a_component_apart_is_a_module_beside_that_has_its_signals():
    text = VerilogTarget().convert(SeparateModule(), "top")
    assert modules(text) == ["top", "top_inner", "top_inner_accumulators", "second_one", "second_one_accumulators"]
    assert re.findall(r"^  (\S+) (inner|outer) \(", text, re.M) == [("top_inner", "inner"), ("second_one", "outer")]
    members = MacRow(SHAPE).signature.flatten(MacRow(SHAPE))
    assert ports(text, "outer").keys() == {"clk", "rst", *(path[0] for path, _, value in members
                                                           if len(Value.cast(value)))}  # A port of no bits is none.


def test_in_simulation_a_component_apart_is_itself():
    holder = SeparateModule()
    assert separate_module(None, holder.rows[1], "second_one") is holder.rows[1]


def test_in_simulation_each_is_a_component_of_its_own():
    holder = Holder(MacRow, 3, shape=SHAPE)
    trace(holder, {"en": [0]})
    assert [type(row) for row in holder.found] == [MacRow] * 3
    assert len(set(map(id, holder.found))) == 3


def test_interfaces_have_the_members_of_the_component():
    holder = Holder(MacRow, 1, shape=SHAPE)
    VerilogTarget().convert(holder, "top")
    (interface,) = holder.found
    signature = MacRow(SHAPE).signature
    assert signature.is_compliant(interface)
    assert (signature.members["x"].flow, signature.members["sums"].flow) == (In, Out)
