"""Names in the generated Verilog: each register has one that says what it holds, each port a sentence of its own."""
import ast
import re
from importlib import import_module
from pkgutil import resolve_name

import pytest
from amaranth.lib import wiring

from benchmarks.designs import DESIGNS, network
from benchmarks.logic import image
from circulant.hw import generate
from tests.sources import ROOT, python_files, tree

SHARED = "shared"
"""Name of a design whose layers share an array, beside those of the benchmarks."""

SMALL = "images 1"
"""Name of a small residual network, which has all units that resnet8 has and LeNet-5 has not."""

FEW = ("digits-gru", "interleaved", "lenet5", SMALL, SHARED)
"""Designs that are always looked at: a GRU, an LSTM with projection, a CNN, a residual network, a shared array."""

MAKER = re.compile(r"Signal(\.like)?|.*\.(read|write)_port")
"""Calls that make what Amaranth names."""

UNNAMED = re.compile(r"(signal|like|port|register|choice|unnamed)(_?\d+)?")
"""Names that the language or the emitter gives where the source has none."""


def verilog(name):
    """Text of a design."""
    if name == SMALL:
        return image(1).verilog
    options = DESIGNS["fsdd-lstm" if name == SHARED else name].options
    more = {"multipliers": 24, "objective": "area"} if name == SHARED else {"objective": "throughput"}
    return generate(network("fsdd-lstm" if name == SHARED else name), **{**options, **more}).verilog


def registers(text):
    """Names of the registers and memories of a text."""
    declared = re.findall(r"^  (?:output )?(?:\(\*.*?\*\) )?reg (?:\[[^]]*\] )?([^;]*?)(?:,  //.*|  //.*|;)?$",
                          re.sub(r",\n {6,}", ", ", text), re.MULTILINE)
    return [name.partition(" ")[0].rstrip(",") for names in declared for name in names.split(", ")]


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in FEW else pytest.mark.soak)
                                  for name in (*DESIGNS, SMALL, SHARED)])
def test_every_register_has_a_name_and_every_port_a_sentence(name):
    text = verilog(name)
    found = registers(text)
    assert ("// SharedArray" in text) == (name == SHARED)
    assert len(found) > 300
    assert [each for each in found if UNNAMED.fullmatch(each)] == []
    assert unsaid(text) == []


def unsaid(text):
    """Ports without a comment, or whose comment refers to another place."""
    ports = re.findall(r"^  ((?:in|out)put [^/\n]*?),?(?:  // (.*))?$", text, re.MULTILINE)
    assert ports
    return [port for port, said in ports if not said or re.search(r"\bsee\b", said)]


def test_a_register_without_a_name_is_seen():
    text = ('  output reg [3:0] o__valid,  // o: valid\n  output reg y\n'
            '  (* src = "a.py:3" *) reg [1:0] state, signal_18,\n      like;\n  reg x;\n'
            '  (* ram_style = "block" *) reg [7:0] lines [0:15];\n  wire signal_2;\n')
    assert registers(text) == ["o__valid", "y", "state", "signal_18", "like", "x", "lines"]
    assert [name for name in ("signal", "signal_18", "like", "like_2", "signals", "alike", "port_3")
            if UNNAMED.fullmatch(name)] == ["signal", "signal_18", "like", "like_2", "port_3"]


def test_a_port_without_a_sentence_is_seen():
    text = ("module top (\n  input clk,  // clock\n  input rst,\n  output reg [3:0] y,  // see Banks\n"
            "  output [1:0] z  // what you see, is\n  input [1:0] w  // seed\n);")
    assert unsaid(text) == ["input rst", "output reg [3:0] y", "output [1:0] z"]


def module_name(path):
    """Name under which a file of the hardware is imported."""
    below = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(("circulant", *(part for part in below if part != "__init__")))


UNITS = {name: kind for path in python_files("hw") for name, kind in vars(import_module(module_name(path))).items()
         if isinstance(kind, type) and issubclass(kind, wiring.Component) and kind.__module__ == module_name(path)}
"""Units of the hardware by their names."""


@pytest.mark.parametrize("unit", UNITS)
def test_what_a_unit_refers_to_is_there(unit):
    kind = UNITS[unit]
    for reference in re.findall(r"see `([\w.]+)`", (kind.__doc__ or "").partition("Members:")[2]):
        assert (resolve_name(reference) if "." in reference else vars(import_module(kind.__module__))[reference])


def hidden(source):
    """Places where the name of a signal, or of a memory's port, is hidden from Amaranth: it finds the name that a
    value alone is assigned to."""
    seen = {id(node.value) for node in ast.walk(source) if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr)}
    return [f"line {call.lineno}: {maker}" for call in ast.walk(source) if isinstance(call, ast.Call)
            and MAKER.fullmatch(maker := ast.unparse(call.func))
            and id(call) not in seen and "name" not in {each.arg for each in call.keywords}]


def test_each_signal_has_a_line_of_its_own():
    found = {str(path.relative_to(ROOT)): wrong for path in python_files("hw", "boards")
             if (wrong := hidden(tree(path)))}
    assert found == {}, "assign one to a line, or give it a name="


def test_a_hidden_name_is_seen():
    source = """\
a = Signal()
self.b = b = Signal(3)
c: Value = Signal.like(a)
d, e = Signal(), Signal.like(a)
f = [Signal(name=f"f_{n}") for n in range(3)]
g, h = (Signal() for _ in range(2))
i = Signal() if a else None
j = {"k": Signal()}
w, r = mem.write_port(), mem.read_port()
if (x := Signal()): pass
"""
    assert hidden(ast.parse(source)) == [
        "line 4: Signal", "line 4: Signal.like", "line 6: Signal", "line 7: Signal", "line 8: Signal",
        "line 9: mem.write_port", "line 9: mem.read_port"]


def named(source, word):
    """Whether a variable, parameter, member, class or imported name of a file has a word in it; methods of others,
    such as that of texts, are called and do not count."""
    called = [call.func for call in ast.walk(source) if isinstance(call, ast.Call)]
    names = [getattr(node, key, None) for node in ast.walk(source) for key in ("id", "arg", "attr", "name")
             if key != "attr" or node not in called]
    return any(word in map(str.lower, re.findall("[A-Z]?[a-z]+", name)) for name in names if isinstance(name, str))


@pytest.mark.parametrize("word", ["early", "split", "adjacent"])
def test_a_mode_of_the_array_is_a_class_that_few_files_name(word):
    found = [str(path.relative_to(ROOT)) for path in python_files("hw/array", "hw/plan") if named(tree(path), word)]
    assert len(found) <= 4, found


def test_a_name_with_a_word_is_seen():
    assert not named(ast.parse("x = text.split(',')  # split\ndef f(early_ones): pass"), "split")
    for source in ("a.split = 1", "class SplitRow: pass", "from b import SplitRows", "f(split=1)", "_split_shapes()"):
        assert named(ast.parse(source), "split")
