"""hw/emit/comments.py: what Verilog says of a unit is what the unit says of itself."""
from dataclasses import dataclass
from pathlib import Path

import amaranth
import pytest
from amaranth.hdl import Fragment, Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw import top as top_file
from circulant.hw.emit.comments import components, meaning, notes, source
from circulant.hw.unit import unelaborated


@pytest.fixture(autouse=True)
def _read_alone():
    """Units that are read and never elaborated."""
    with unelaborated():
        yield


@dataclass(frozen=True)
class Shape:
    rows: int
    name: str = "not a number"
    latency: int = 7


class Inner(wiring.Component):
    """Inner unit.

    Members:
        go: begin.
    """

    go: In(1)

    def elaborate(self, platform):
        return Module()


class Outer(wiring.Component):
    """Sum of `things`, in
    two lines.

    A second paragraph.

    A third one, which is too much.

    Parameters:
        shape: of it.

    Members:
        i: what comes. In any order.
        y, z: what leaves,
            in two lines.
    """

    def __init__(self, shape, *, depth):
        self._shape, self.depth = shape, depth
        super().__init__({"i": In(stream.Signature(4)), "y": Out(4), "z": Out(4), "unsaid": Out(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.inner = Inner()
        return m


def test_the_header_is_the_docstring_the_shape_and_the_latency():
    header = notes(Outer(Shape(3), depth=5)).header
    assert " ".join(header) == (
        "Outer (tests/hw/emit/test_comments.py): Sum of things, in two lines. A second paragraph. "
        "Shape: rows = 3, latency = 7, depth = 5. Latency: 7 cycles.")


def test_ports_are_described_by_the_members_clock_and_reset_first():
    ports = notes(Outer(Shape(3), depth=5)).ports
    assert list(ports) == ["clk", "rst", "i__payload", "i__valid", "i__ready", "y", "z", "unsaid"]
    assert ports["y"] == ports["z"] == "what leaves, in two lines"
    assert ports["i__valid"] == "i: a payload is offered"
    assert ports["i__ready"] == "i: a payload that is offered is taken at this edge"
    assert ports["i__payload"] == "what comes. In any order"
    assert ports["unsaid"] == "unsaid", "a port without a description has its name"


def interface():
    """Interface of a reader.

    Members:
        word: the word that is read.
        more: what `Inner` says, see `Inner`.
    """


class Referring(wiring.Component):
    """A unit that says of most members what others say.

    Members:
        go, stays: see `Inner`.
        reader: the reader of this unit, see `interface`.
        way_…: one of the ways, see `circulant.hw.stream.pipeline.Queue`.
        own: its own block (see `Shape`).
        own.second: it is the second one.
        gone: see `NoSuchThing`.
    """


class Heir(Referring):
    """The same with another member.

    Members:
        gone: it is here.
    """


@pytest.mark.parametrize(("path", "said"), [
    (("go",), "begin"),
    (("stays",), "stays"),
    (("reader",), "the reader of this unit"),
    (("reader", 0, "word"), "reader: the word that is read"),
    (("reader", "valid"), "reader: a payload is offered"),
    (("reader", "other"), "the reader of this unit"),
    (("way_2", "level"), "way_2: number of payloads held"),
    (("own", "data"), "its own block"),
    (("own", "second"), "own: it is the second one"),
    (("gone",), "gone"),
    (("unsaid", 1), "unsaid.1"),
])
def test_a_reference_to_another_description_is_followed(path, said):
    assert meaning(Referring, path) == said


def test_a_class_describes_what_it_inherits_and_what_it_adds():
    assert meaning(Heir, ("gone",)) == "it is here"
    assert meaning(Heir, ("reader",)) == "the reader of this unit"


def test_long_headers_are_wrapped():
    class Long(wiring.Component):
        __doc__ = "word " * 60

        def __init__(self):
            super().__init__({})

    header = notes(Long()).header
    assert len(header) > 1
    assert max(map(len, header)) <= 117


def test_a_module_without_a_unit_has_the_clock_alone():
    assert notes(None).header == ()
    assert list(notes(None).ports) == ["clk", "rst"]


def test_units_are_found_by_the_names_of_their_modules():
    outer = Outer(Shape(3), depth=5)
    found = components(Fragment.get(outer, None), "top")
    assert found["top"] is outer
    assert isinstance(found["top.inner"], Inner)


def test_places_in_the_source_name_no_folder_of_this_machine():
    assert source(f"{Path(top_file.__file__).resolve()}:12") == "hw/top.py:12"
    assert source(f"{Path(amaranth.__file__).resolve()}:3") == "amaranth/__init__.py:3"
    assert source("/somewhere/else/mine.py:4") == "mine.py:4"
    assert source("") == ""
