"""Each stream unit is proved in every shape that a shipped design has; the record has the shapes of all designs."""
import pytest

from benchmarks.designs import DESIGNS
from benchmarks.formal import shapes
from benchmarks.formal.check import Proof, prove
from circulant.hw.stream.storage import DeepQueue
from tests.hw.stream_properties import Clipped, Pipeline, Words, frames

QUICK = 1
"""Shapes of each unit that a person waits for."""

EVERY = [pytest.param(unit, shape, marks=[] if n < QUICK else pytest.mark.soak, id=f"{unit} {shape}")
         for unit, every in shapes.recorded().items() for n, shape in enumerate(every)]


LARGE = {"Queue": [[192]], "DeepQueue": [[211], [214], [236]], "Registers": [[10], [11]],
         "WidthConverter": [[256, 4, 8], [12, 12, 6]]}
"""Shapes too large for an induction in the time that there is: they hold for so many cycles as it allows."""


@pytest.mark.parametrize(("unit", "shape"), EVERY)
def test_the_properties_hold_by_induction(unit, shape):
    found = prove(shapes.component(unit, shape))
    assert found == Proof("induction") or (shape in LARGE.get(unit, []) and found.broken is None), found


@pytest.mark.parametrize(("component", "broken"), [
    (lambda: Words(DeepQueue(1, depth=3), holds=5, room=True, ring=3), "ok_room"),
    (lambda: Words(Pipeline(3, "off by one"), holds=3), "ok_word"),
    (lambda: frames(8, 3, really=9, lanes=4), "ok_data"),
    (lambda: Clipped(20, 2, 16, lambda x, shift, width: (x >> shift)[:width].as_signed()), "ok_range"),
], ids=["queue", "pipeline", "frames", "clipped"])
def test_a_fault_is_found_in_its_property(component, broken):
    found = prove(component())
    assert (found.broken, isinstance(found.depth, int)) == (broken, True)


def test_the_record_has_every_design():
    assert sorted(shapes.load()["designs"]) == sorted(DESIGNS)


def test_the_record_has_the_shapes_of_a_design_of_today():
    found, known = shapes.measure(("digits-gru",))["shapes"], shapes.recorded()
    assert found["Queue"] and found["clipped"]
    assert not [(unit, shape) for unit, every in found.items() for shape in every if shape not in known[unit]]
