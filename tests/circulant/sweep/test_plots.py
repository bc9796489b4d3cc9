import struct
import xml.etree.ElementTree as ET

import pytest

from circulant.sweep.plots import NEAR, draw, images


def test_png_and_svg(rows):
    found = images("mine", rows)
    width, height = struct.unpack(">II", found["png"][16:24])
    assert width >= 900 and height >= 700
    assert ET.fromstring(found["svg"]).tag.endswith("svg")
    assert images("mine", rows) == found, "the same rows must give the same bytes"


def test_a_row_of_panels_for_each_experiment(rows):
    titles = [axes.get_title(loc="left") for axes in draw("mine", rows).axes]
    assert titles == [f"{label}: accuracy of the golden model" for label in ("one", "one", "two", "two")]
    assert len(draw("mine", rows[:8]).axes) == 2


def test_every_point_that_did_not_fail_is_a_dot(rows):
    for axes, count in zip(draw("mine", rows).axes, (7, 7, 8, 8), strict=True):
        assert len(axes.collections[0].get_offsets()) == count


@pytest.mark.parametrize("better", [True, False])
def test_a_panel_keeps_near_the_best_and_says_what_is_beyond(rows, better):
    best = 0.5
    for row in rows:
        row |= {"higher_is_better": better, "quantized": best}
    rows[-1]["quantized"] = best - 2 * NEAR if better else best + 2 * NEAR
    panel = draw("mine", rows).axes[2]
    assert panel.get_xlabel() == "weight bits; 1 of 8 points are outside"
    low, high = panel.get_ylim()
    assert low < best < high and high - low < 1.5 * NEAR


def test_nothing_but_failures(rows):
    assert images("mine", [rows[0]])["png"].startswith(b"\x89PNG")
