"""The lines give back what came, zeros around it, and take no more than they hold."""
import numpy as np
import pytest

from circulant.hw.array.issue import SPECTRA
from circulant.hw.components.lines.line_store import LineStore, line
from circulant.sim.shape.window import Window
from tests.hw.components.lines.lines import K, Lines
from tests.hw.simulate import run

SHAPES = {
    "one by one": Lines((4, 3), Window((2, 2))),
    "two positions": Lines((3, 4), Window((3, 3), (1, 1), (1, 1)), positions=2),
    "blocks side by side": Lines((3, 3), Window((2, 2), (1, 1), (1, 0)), beats=3, positions=3, blocks=2),
}


def image(shape, seed=0):
    """The blocks of an image: height, width, blocks of a pixel, k."""
    return np.random.default_rng(seed).integers(1, 100, (*shape.grid, shape.beats, K))


def feeding(blocks):
    """Offer blocks, one after the other."""
    for each in blocks.reshape(-1, K).tolist():
        shown = yield {"i.valid": 1, "i.payload": {"data": each, "last": 0}}
        while not shown["i.ready"]:
            shown = yield {}
    yield {"i.valid": 0}


@pytest.mark.parametrize("name", SHAPES)
def test_a_group_is_what_the_kernel_sees(name):
    """At every place of the kernel, inside the image and over its edges."""
    shape, x = SHAPES[name], image(SHAPES[name])
    window, (outer, inner), (height, width) = shape.window, shape.turns, shape.grid

    def reading():
        for _ in range(2 * x.size // K + 10):
            yield {}
        for y, left, turn, part in np.ndindex(*shape.walk.output_grid, outer, inner):
            top, left = y * window.stride[0] - window.padding[0], left * window.stride[1] - window.padding[1]
            sides = {f"group.inside_{axis}.{n}": 0 <= start + n < size for axis, start, count, size in zip(
                ("rows", "columns"), (top, left), window.kernel, shape.grid, strict=True) for n in range(count)}
            rows = {f"group.rows.{r}": (top + r) % shape.lines * line(shape) for r in range(window.kernel[0])}
            yield {"group.turn": turn, "group.part": part, "group.offset": left * inner, **rows, **sides}
            for _ in range(SPECTRA + 1):
                shown = yield {}
            for n, b in np.ndindex(shape.positions, shape.blocks):
                r, c = divmod(turn * shape.positions + n, window.kernel[1])
                place, beat = (top + r, left + c), part * shape.blocks + b
                if r >= window.kernel[0]:
                    continue  # No position of the kernel: the array has no weights there.
                there = 0 <= place[0] < height and 0 <= place[1] < width and beat < shape.beats
                assert shown["spectra"][n * shape.blocks + b] == (x[(*place, beat)].tolist() if there else [0] * K)

    run(LineStore(shape), feeding(x), reading())


def test_no_more_lines_come_than_are_held():
    """What is given back makes room for as many lines, and what has come is counted."""
    shape, freed = SHAPES["one by one"], [0, 2, 1]
    x = np.concatenate([image(shape, seed) for seed in range(4)])
    lines = []

    def watching():
        held = 0
        for count in freed:
            shown = yield {"freed": count}
            held += shown["done"] - count
            for _ in range(6 * x.shape[1] * shape.lines):
                shown = yield {"freed": 0}
                held += shown["done"]
                assert shown["column"] < x.shape[1]
            assert not shown["i.ready"]
            lines.append(held)

    run(LineStore(shape), feeding(x[:shape.lines + sum(freed)]), watching())
    assert lines == [shape.lines] * len(freed)
