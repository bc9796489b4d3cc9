import click
import pytest

from benchmarks import marks


def test_only_what_stands_between_the_marks_is_replaced(tmp_path):
    path = tmp_path / "page.md"
    path.write_text("head\n<a>\nold\n<b>\ntail\n")
    marks.replace(path, "<a>", "<b>", "new")
    assert path.read_text() == "head\n<a>\n\nnew\n<b>\ntail\n"


@pytest.mark.parametrize("text", ["", "<a>", "<a> <a> <b>"])
def test_both_marks_must_be_there_once(tmp_path, text):
    path = tmp_path / "page.md"
    path.write_text(text)
    with pytest.raises(click.ClickException, match="must have the lines <a> and <b> once each; put them back"):
        marks.replace(path, "<a>", "<b>", "new")
    assert path.read_text() == text
