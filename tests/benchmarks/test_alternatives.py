"""The comparison at equal cost: the figures of docs/when.md, and a picture whose names cover nothing."""
import json

import pytest
from click.testing import CliRunner
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks import alternatives
from benchmarks.commands import main
from tests.sources import ROOT


def said(rows):
    """Rows of the document's tables that are measured, as they begin and end."""
    return [(f"| {label} | {alternatives.mean(row['errors'].values()):.1f} ± ",
             f" | {row['weight_bits']:,} | {row['multiplications']:,} |") for label, row in rows.items()]


def test_rows_of_the_document_are_measured():
    measured = [each for name in alternatives.COMPARISONS for each in said(alternatives.collect(name))]
    shown = [line for line in (ROOT / "docs" / "when.md").read_text("utf-8").splitlines()
             if line.startswith("| ") and " ± " in line and line.count("|") == 5]
    assert len(shown) >= 17
    assert [line for line in shown if not any(line.startswith(begin) and line.endswith(end)
                                              for begin, end in measured)] == []


@pytest.mark.parametrize("name", alternatives.COMPARISONS)
def test_a_table_has_all_rows_of_three_seeds(name):
    rows = alternatives.collect(name)
    lines = alternatives.table(name, rows)
    assert len(rows) >= 19 and all(len(row["errors"]) == 3 for row in rows.values())
    assert len(lines) == sum(max(1, len(row["tables"])) for row in rows.values())


def test_names_cover_nothing(monkeypatch):
    drawn = []

    def savefig(figure):
        drawn.append(figure)
        return b""

    monkeypatch.setattr(alternatives, "png", savefig)
    rows = alternatives.collect("digits")
    alternatives.draw("digits", rows)
    (figure,) = drawn
    assert isinstance(figure, Figure)
    for axes in figure.axes:
        assert isinstance(axes, Axes)
        boxes = [text.get_window_extent() for text in axes.texts]
        points = [tuple(at) for marks in axes.collections for at in axes.transData.transform(marks.get_offsets())]
        assert len(points) == len(rows)
        assert len(boxes) >= 10, "most block-circulant and dense networks have a name"
        assert not [pair for at, one in enumerate(boxes) for pair in boxes[:at] if one.overlaps(pair)]
        assert not [point for box in boxes for point in points if box.contains(*point)]


def test_the_command_draws_one_comparison(tmp_path):
    path = tmp_path / "picture.png"
    done = CliRunner().invoke(main, ["alternatives", "--data", "digits", "--picture", str(path), "--json",
                                     str(tmp_path / "out.json")])
    assert done.exit_code == 0, done.output
    assert path.read_bytes().startswith(b"\x89PNG")
    assert json.loads((tmp_path / "out.json").read_text())["rows"].keys() == {"digits"}
    done = CliRunner().invoke(main, ["alternatives", "--picture", str(path)])
    assert done.exit_code == 2 and "It is of one comparison; give one --data." in done.output
