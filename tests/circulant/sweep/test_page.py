"""The page of points in a real browser: pictures, pointer, themes, phone, files; nothing from the network."""
import sys
import tomllib
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from circulant.experiment import load, parse
from circulant.report.interactive import SCALE
from circulant.sweep.page import experiment_of, keyed, page
from circulant.sweep.pictures import pictures
from circulant.sweep.space import Space

PICTURES = ("front-one", "parallel-one", "widths-one", "front-two", "parallel-two", "widths-two", "papers")


@pytest.fixture
def spaces():
    return [Space(label, load("digits-gru", ["training.dense_epochs=3"]), ()) for label in ("one", "two")]


@pytest.fixture
def written(rows, spaces, tmp_path):
    for row in rows:
        row["dense_weights"] = 8000
    path = tmp_path / "explore.html"
    path.write_text(page("mine </script>", rows, spaces, "circulant sweep mine.toml"), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def chromium():
    path = Path(__file__).parents[2] / "browser.py"
    spec = spec_from_file_location("browser", path)
    module = sys.modules["browser"] = module_from_spec(spec)
    spec.loader.exec_module(module)
    with module.browser() as opened:
        yield opened


def place(browser, picture, trace=0, point=0):
    """The place of a point in the window, its picture scrolled into view."""
    return browser.run("""
        const plot = document.querySelector(`[id="${arguments[0]}"] .plot`);
        plot.scrollIntoView({block: "center"});
        const at = plot.querySelectorAll(".scatterlayer .trace")[arguments[1]].querySelectorAll(".point")[arguments[2]];
        const box = at.getBoundingClientRect();
        return [box.x + box.width / 2, box.y + box.height / 2];""", picture, trace, point)


def test_a_pointer_finds_figures_and_the_experiment_and_nothing_else_is_asked_for(chromium, written, spaces, rows):
    chromium.open(written)
    assert chromium.run("return [...document.querySelectorAll('section.picture')].map(each => each.id)") == [*PICTURES]
    x, y = place(chromium, "front-one", point=1)  # The first one is far below the axis.
    chromium.hover(x, y)
    hovered = chromium.run("return document.querySelector('.hoverlayer').textContent")
    assert "k = 1" in hovered and "weight bits" in hovered and "nJ a step" in hovered, hovered
    chromium.click(x, y)
    assert chromium.run("return document.querySelector('dialog').open")
    text = chromium.run("return document.getElementById('text').textContent")
    same = [row for row in keyed(rows) if (row["experiment"], row["block_size"], row["weight_bits"]) == ("one", "1", 8)]
    assert parse(tomllib.loads(text)) in [experiment_of(spaces[0].experiment, row) for row in same], "all lie there"
    chromium.run("document.getElementById('close').click()")
    assert not chromium.run("return document.querySelector('dialog').open")
    chromium.run("""const view = document.querySelector('#front-one select');
                    view.selectedIndex = 1; view.dispatchEvent(new Event('change'));""")
    assert "cycles" in chromium.run("return document.querySelector('#front-one .xtitle').textContent")
    for form, start in (("png", "data:image/png;base64,iVBOR"), ("svg", "data:image/svg+xml,%3Csvg")):
        made = chromium.driver.execute_async_script(
            "Plotly.toImage(document.querySelector('#front-one .plot'), {format: arguments[0], width: 600, "
            "height: 400}).then(arguments[1])", form)
        assert made.startswith(start)
    assert chromium.errors() == []
    assert all(url.startswith(("file:", "data:", "blob:")) for url in chromium.requests())


def test_dark_and_phone(chromium, written):
    colors = []
    for dark in (False, True):
        chromium.open(written, dark=dark, size=(390, 800))
        colors.append(chromium.run("return document.querySelector('#front-one .xtitle').style.fill"))
        assert chromium.run("return document.documentElement.scrollWidth <= innerWidth"), "it does not scroll sideways"
        assert chromium.errors() == []
    assert colors == ["rgb(43, 47, 54)", "rgb(228, 230, 234)"], "words of pictures have the colour of the theme"


def test_each_point_has_its_experiment(rows, spaces):
    row = next(row for row in keyed(rows) if row["block_size"] == "gru=8 linear=4")
    found = experiment_of(spaces[0].experiment, {**row, "seed": 5})
    assert (found.compression.block_size, found.training.seed) == ({"gru": 8, "linear": 4}, 5)
    assert (found.quantization.weight_bits, found.hardware.multipliers) == (row["weight_bits"], row["budget"])
    assert found.training.dense_epochs == 3


def test_the_spread_of_seeds(rows):
    """The mean of the best of each seed, and bars to the best and to the worst; a front is of means."""
    again = [{**row, "seed": 1, **({} if row["reason"] else {"quantized": row["quantized"] - 0.02})} for row in rows]
    made = {each.name: each for each in pictures(keyed([*rows, *again]))}
    picture, trace = made["widths-two"], made["widths-two"].choices[0].traces[0]
    best = max(row["quantized"] for row in rows if row["experiment"] == "two" and row["block_size"] == "1"
               and row["weight_bits"] == 8)
    assert trace["y"][1] == pytest.approx(best - 0.01)
    assert trace["error_y"]["array"][1] == trace["error_y"]["arrayminus"][1] == pytest.approx(0.01)
    assert "the mean of 2 seeds" in picture.note
    traces = made["front-two"].choices[0].traces
    assert sum(len(trace["x"]) for trace in traces[:-1]) == 8
    assert max(traces[-1]["y"]) == pytest.approx(best - 0.01)
    assert any("± 1.41%, 2 seeds" in text for trace in traces[:-1] for text in trace["text"])


def test_what_compression_costs_is_told_at_equal_epochs(rows):
    """Against k = 1, which is trained as long, and not against the baseline, from which all are trained on."""
    whole = [row | {"dense_weights": 8000, "dense": 0.90} for row in rows if not row["reason"]]
    picture = next(each for each in pictures(keyed(whole)) if each.name == "papers")
    ours = {trace["name"]: dict(zip(trace["text"], trace["y"], strict=True)) for trace in picture.choices[0].traces[:2]}
    assert ours["two"] == pytest.approx({"k = 1": 0.0, "k = gru=8 linear=4": 1.0})
    assert "with k = 1, which had as many epochs" in picture.note
    some = [row for row in whole if row["experiment"] == "one" or row["block_size"] != "1"]
    picture = next(each for each in pictures(keyed(some)) if each.name == "papers")
    assert [trace["name"] for trace in picture.choices[0].traces][:1] == ["one"]
    assert "two" not in [trace["name"] for trace in picture.choices[0].traces]
    assert "Those of two are not here: their dense baselines had other epochs than they, and no point" in picture.note


def test_a_spread_of_rows_that_were_repeated_is_one_of_like_points(rows):
    """Of the first seed only points with the same activations and budget count, or the best of more would be better."""
    some = [row for row in keyed(rows) if row["experiment"] == "two" and not row["reason"]]
    like = {name: some[0][name] for name in ("activation_bits", "budget")}
    more = [{**some[0], "seed": 1, "quantized": 0.5}]
    picture = next(each for each in pictures([*some, {**some[0], "budget": 1, "quantized": 1.0}], (), more)
                   if each.name == "widths-two")
    trace = next(each for each in picture.choices[0].traces if each["name"] == f"k = {some[0]['block_size']}")
    at = trace["x"].index(str(some[0]["weight_bits"]))
    assert trace["y"][at] == pytest.approx((some[0]["quantized"] + 0.5) / 2)
    assert f"With {like['activation_bits']}-bit activations and all multipliers; the mean of up to 2" in picture.note


def test_the_front_is_drawn_through_what_nothing_beats(rows):
    picture = next(each for each in pictures(keyed(rows)) if each.name == "front-one")
    line = picture.choices[0].traces[-1]
    assert line["name"] == "front" and line["x"] == sorted(line["x"]) and line["y"] == sorted(line["y"])


def test_parallel_coordinates_have_an_axis_for_each_matrix(rows):
    """A row with one block size for all has it for each."""
    some = [{**rows[0], "reason": "", **rows[-1], "block_size": size} for size in ("8", "gru=4 linear=2")]
    trace = next(each for each in pictures(keyed(some)) if each.name.startswith("parallel")).choices[0].traces[0]
    assert [(each["label"], each["values"]) for each in trace["dimensions"][:2]] == [
        ("k of gru", [3.0, 2.0]), ("k of linear", [3.0, 1.0])]


def test_many_block_sizes_are_told_apart_by_colour(rows):
    many = [{**rows[-1], "block_size": f"gru={k} linear={n}", "weights": 1000 * k + n}
            for k in (1, 2, 4) for n in (1, 2, 4)]
    traces = pictures(keyed(many))[0].choices[0].traces
    assert traces[0]["marker"]["colorscale"] == SCALE and len(traces[0]["x"]) == 9


def test_what_is_marked_stays_in_view_and_what_is_far_from_the_best_does_not(rows):
    mine = [row for row in rows if row["experiment"] == "one" and not row["reason"]]
    worst = min(mine, key=lambda row: row["quantized"])
    ranges = [pictures(mine, marks)[0].choices[0].layout["yaxis"]["range"]
              for marks in ((), (("chosen", "star", [worst]),))]
    assert ranges[0][0] > worst["quantized"] > ranges[1][0]
    assert ranges[0][1] == ranges[1][1]
