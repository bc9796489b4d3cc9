"""The comparison at equal cost: the figures of docs/when.md, and a picture whose names cover nothing."""
import json

import pytest
from click.testing import CliRunner
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks import alternatives
from benchmarks.commands import main
from tests.sources import ROOT


@pytest.mark.parametrize("name", alternatives.COMPARISONS)
def test_rows_are_those_of_the_document(name):
    rows = alternatives.collect(name)
    document = (ROOT / "docs" / "when.md").read_text("utf-8")
    lines = alternatives.table(name, rows)
    assert len(rows) >= 19 and all(len(row["errors"]) == 3 for row in rows.values())
    said = [label for label, row in rows.items()
            if f"| {label} | {alternatives.mean(row['errors'].values()):.1f} ± " in document
            and f" | {row['weight_bits']:,} | {row['multiplications']:,} |" in document]
    assert len(said) >= 12
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
