import numpy as np
import pytest

from circulant.sim.refusal import Refusal
from circulant.sim.shape.window import Flow, Window, pixels
from tests.refused import refused


@pytest.mark.parametrize(("window", "grid", "outputs"), [
    (Window((3, 3)), (5, 4), (3, 2)), (Window((5, 5), padding=(2, 2)), (28, 28), (28, 28)),
    (Window((3, 2), (2, 3), (1, 0)), (7, 8), (4, 3)), (Window((7, 1)), (7, 1), (1, 1))])
def test_outputs(window, grid, outputs):
    assert window.outputs("conv", grid) == outputs
    assert len(list(window.views(np.zeros((2, *grid, 3)), grid, axis=1))) == window.positions
    assert Window.from_json(window.as_json()) == window


def test_views_are_what_the_kernel_sees():
    grid, window = (5, 6), Window((3, 2), (2, 1), (1, 1))
    x = np.arange(30).reshape(1, *grid)
    views = list(window.views(x, grid, axis=1, fill=-7))
    for down in range(window.outputs("", grid)[0]):
        for across in range(window.outputs("", grid)[1]):
            for n, view in enumerate(views):
                r, c = 2 * down + n // 2 - 1, across + n % 2 - 1
                inside = 0 <= r < 5 and 0 <= c < 6
                assert view[0, down, across] == (x[0, r, c] if inside else -7)


def test_a_kernel_that_is_too_large():
    assert refused(Window((7, 3), padding=(1, 0)).outputs, "conv1", (4, 4)) == (
        "Layer 'conv1': the kernel must fit into the padded image, but 7 x 3 is larger than 6 x 4; choose a smaller "
        "kernel or more padding")


@pytest.mark.parametrize("sizes", [((0, 1),), ((1, 1), (1, 0)), ((1, 1), (1, 1), (-1, 0))])
def test_sizes_that_are_none(sizes):
    with pytest.raises(Refusal, match=r"^A window must have a positive kernel, stride and dilation and no negative "):
        Window(*sizes)


def test_pixels():
    x = np.arange(24).reshape(1, 2, 3, 4)
    assert pixels(x, (2, 3, 4))[0, 1, 2].tolist() == [6, 18]
    assert pixels(x.reshape(1, 2, 12), (2, 12)).shape == (1, 12, 1, 2)


def test_flow_in_words():
    assert [str(flow) for flow in (Flow(3), Flow(3, sequence=True), Flow(3, (4, 5)))] == [
        "vectors of 3 values", "sequences of vectors of 3 values", "images of 4 x 5 with 3 channels"]
