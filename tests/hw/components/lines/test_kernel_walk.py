"""The walk reads what the definition of a convolution says, and no line that has not come or was given back."""
from itertools import pairwise

import numpy as np
import pytest

from circulant.hw.components.lines.kernel_walk import KernelWalk
from circulant.hw.components.lines.line_store import line
from circulant.sim.shape.window import Window
from tests.hw.components.lines.lines import Lines
from tests.hw.simulate import run

IMAGES = 3

SHAPES = {
    "padding": Lines((5, 6), Window((3, 3), (1, 1), (1, 1)), positions=2),
    "strides": Lines((7, 5), Window((3, 2), (2, 3)), beats=3, blocks=2, passes=2),
    "fold": Lines((4, 4), Window((2, 3), (1, 2), (1, 1)), positions=3, beats=2, fold=2, passes=3),
    "every cycle": Lines((4, 5), Window((2, 2)), positions=4),
    "a pixel": Lines((3, 3), Window((3, 3)), positions=9, passes=2),
    "padding alone": Lines((4, 3), Window((2, 2), (2, 1), (2, 2)), positions=4),
    "gaps between windows": Lines((9, 7), Window((2, 2), (4, 3)), positions=2),
}


def simulated(shape, *, stall=0.0, seed=0):
    """What the ports of a walk show in each cycle, while pixels come as long as there is a line for them."""
    shown, rng = [], np.random.default_rng(seed)
    (height, width), pixels = shape.grid, shape.grid[0] * shape.grid[1] * IMAGES
    wanted = IMAGES * np.prod(shape.walk.output_grid) * shape.cycles

    def agent():
        came = freed = issued = 0
        while issued < wanted:
            assert len(shown) < 50 * (pixels + wanted), "the walk stands still"
            comes = came < pixels and came // width - freed < shape.lines and rng.random() >= stall
            ports = yield {"column": came % width, "done": comes and came % width == width - 1,
                           "room": rng.random() >= stall}
            shown.append({**ports, "came": came, "freed_before": freed})
            came, freed, issued = came + comes, freed + ports["freed"], issued + ports["issue.valid"]
        assert freed == IMAGES * height
        for _ in range(3):  # Nothing is issued, or given back, behind the last image.
            ports = yield {"done": 0, "room": 1}
            assert not ports["issue.valid"] and not ports["freed"]

    run(KernelWalk(shape), agent())
    return shown


def definition(shape):
    """For every cycle of every pixel: its image, its top and left, and the numbers of its issue."""
    window, (outer, inner) = shape.window, shape.turns
    for image in range(IMAGES):
        for y, x in np.ndindex(*shape.walk.output_grid):
            corner = (y * window.stride[0] - window.padding[0], x * window.stride[1] - window.padding[1])
            for weight, (number, turn, part) in enumerate(np.ndindex(shape.passes, outer, inner)):
                for phase in range(shape.fold):
                    yield image, corner, {
                        "number": number, "weight": weight, "phase": phase, "turn": turn, "part": part,
                        "first": turn == part == 0,
                        "ends": (turn, part, phase) == (outer - 1, inner - 1, shape.fold - 1)}


def read(shape, ports, image, corner):
    """Check the lines and columns of a group, and return how many pixels, from the first one on, must have come, and
    the first line that is still needed, if any."""
    (height, width), ring = shape.grid, shape.lines
    inside = [[0 <= start + n < size for n in range(kernel)]
              for start, kernel, size in zip(corner, shape.window.kernel, shape.grid, strict=True)]
    assert [[bool(ports[f"group.inside_{axis}.{n}"]) for n in range(len(sides))]
            for axis, sides in zip(("rows", "columns"), inside, strict=True)] == inside
    assert ports["group.offset"] == corner[1] * shape.turns[1]
    rows = [image * height + corner[0] + r for r, seen in enumerate(inside[0]) if seen]
    assert [ports[f"group.rows.{r}"] for r, seen in enumerate(inside[0]) if seen] == [
        row % ring * line(shape) for row in rows]
    columns = [corner[1] + c for c, seen in enumerate(inside[1]) if seen]
    return (rows[-1] * width + columns[-1] + 1, rows[0]) if rows and columns else (0, None)


@pytest.mark.parametrize("stall", [0.0, 0.4])
@pytest.mark.parametrize("name", SHAPES)
def test_every_group_of_every_pixel_is_read_in_order(name, stall):
    """An issue shows a cycle behind its group, which the lines then hold."""
    shape, wanted = SHAPES[name], definition(SHAPES[name])
    shown = simulated(shape, stall=stall)
    for ports, behind in pairwise(shown):
        if not behind["issue.valid"]:
            continue
        image, corner, numbers = next(wanted)
        shows = {field: behind.get(f"issue.{field}", 0) for field in ("number", "weight", "phase", "first", "ends")}
        assert shows | {"turn": ports["group.turn"], "part": ports["group.part"]} == numbers
        came, oldest = read(shape, ports, image, corner)
        assert came <= ports["came"]
        assert oldest is None or ports["freed_before"] <= oldest
    assert next(wanted, None) is None


@pytest.mark.parametrize("name", ["padding", "strides", "fold", "every cycle"])
def test_no_cycle_is_lost_between_pixels_that_are_there(name):
    """The first pixel of the second row starts behind the last one of the first, as soon as its last pixel has come."""
    shape = SHAPES[name]
    issued = [cycle for cycle, ports in enumerate(simulated(shape)) if ports["issue.valid"]]
    gaps = np.diff(issued[-shape.walk.output_grid[1] * shape.cycles:])
    assert (gaps == 1).all()
