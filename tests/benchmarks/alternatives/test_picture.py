"""The picture of a comparison: names cover neither points nor each other, whatever was trained."""
from click.testing import CliRunner
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.alternatives import measure, picture
from benchmarks.alternatives.comparisons import COMPARISONS
from benchmarks.commands import main


def test_names_cover_nothing(monkeypatch):
    drawn = []

    def savefig(figure):
        drawn.append(figure)
        return b""

    monkeypatch.setattr(picture, "png", savefig)
    rows = measure.collect(COMPARISONS["digits"])
    picture.draw("digits", rows)
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
    done = CliRunner().invoke(main, ["alternatives", "--data", "digits", "--picture", str(path)])
    assert done.exit_code == 0, done.output
    assert path.read_bytes().startswith(b"\x89PNG")
    done = CliRunner().invoke(main, ["alternatives", "--picture", str(path)])
    assert done.exit_code == 2 and "It is of one comparison; give one --data." in done.output
