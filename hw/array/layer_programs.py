"""The programs of the layers: their matrices, the vectors they meet, and the order of the passes."""
from collections.abc import Iterator, Sequence
from functools import singledispatch
from weakref import WeakKeyDictionary

from circulant.hw.array.program import ArrayShape, Matrix, Program
from circulant.hw.array.schedules.abreast import Abreast
from circulant.hw.array.schedules.adjacent import Adjacent
from circulant.hw.array.schedules.either_first import EitherFirst
from circulant.hw.array.schedules.input_first import InputFirst
from circulant.hw.array.schedules.split_rows import SplitRows
from circulant.sim.golden.stages import Stage
from circulant.sim.refusal import Refusal

__all__ = ["IN_TURN", "OWN_SHAPES", "layer_program", "matrices", "matrices_of", "schedule_of", "spacings",
           "without_hardware"]

ROWS = 1 << 30
"""A spacing with which the rows lead."""

FORMS: dict[type[Program], tuple[type[Program], ...]] = {
    EitherFirst: (Abreast, EitherFirst), Adjacent: (SplitRows, Adjacent, Abreast, EitherFirst)}
"""Schedules of which the first one that serves a layer is taken."""

OWN_SHAPES = Abreast, SplitRows
"""Schedules with arrays of their own."""

IN_TURN = ROWS, ROWS, ROWS
"""The spacing of a layer without a state: pass after pass, each of which leaves while the next one is summed up."""


def without_hardware(layer: Stage) -> Refusal:
    """The refusal of a kind of layer that a generator does not know."""
    return Refusal(f"The hardware must have a unit for each layer, but has none for {layer.name!r}, a layer of the "
                   f"kind {layer.kind!r}; the golden model computes it")


@singledispatch
def matrices(layer: Stage) -> list[Matrix]:
    """The matrices that the array multiplies with for a layer.

    Raises:
        Refusal: when the layer has no array of its own.
    """
    raise without_hardware(layer)


MADE: WeakKeyDictionary[Stage, list[Matrix]] = WeakKeyDictionary()


def matrices_of(layer: Stage) -> list[Matrix]:
    """The `matrices` of a layer, made once."""
    if layer not in MADE:
        MADE[layer] = matrices(layer)
    return MADE[layer]


def layer_program(layer: Stage, shape: ArrayShape, spacing: tuple[int, int, int],
                  schedule: type[Program] = InputFirst) -> Program:
    """The program of a layer, of the schedule that `schedule_of` gives.

    Raises:
        ValueError: when rows of the shape share lanes, but those of the layer cannot.
    """
    found = matrices_of(layer)
    form = schedule_of(found, shape, schedule)
    if shape.shared and form is not SplitRows:
        raise ValueError("Rows that share lanes need adjacent vectors, of a GRU that resets after its matrix, whose "
                         f"input ends within a group of columns; layer {layer.name!r} has none for {shape!r}")
    return form.of(found, shape, spacing)


def schedule_of(found: Sequence[Matrix], shape: ArrayShape, wanted: type[Program]) -> type[Program]:
    """The schedule of a layer with these matrices: the first one of a kind that is wanted which serves it."""
    return next(each for each in FORMS.get(wanted, (wanted,)) if each.serves(found, shape))


def spacings(shape: ArrayShape) -> Iterator[tuple[int, int, int]]:
    """Spacings worth a try, from columns first to rows first; the first passes of AHEAD end as fast as they drain."""
    for main in (ROWS, *(shape.slots * n for n in (1, 2, 3, 4, 6))):
        for second in (ROWS, shape.slots):
            yield shape.slots, main, second
