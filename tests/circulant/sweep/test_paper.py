"""Pictures for a paper: every point is in view and in the legend, and what is written is what was drawn."""
import csv

import pytest

from circulant.sim import artifact
from circulant.sim.refusal import Refusal
from circulant.sweep.paper import KINDS, draw, rows_of, ticks, written


@pytest.fixture
def folder(tmp_path, rows):
    artifact.write_json(tmp_path / "sweep.json", "circulant-sweep", 1, {"name": "mine", "rows": rows})
    return tmp_path


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("columns", [1, 2])
def test_every_point_is_in_view_and_in_the_legend(folder, rows, kind, columns):
    made = [row | {"cells_mm2": row["weights"] / 1e4, "inference_nj": row["cycles_per_step"]}
            for row in rows_of(folder)]
    assert len(made) == len([row for row in rows if not row["reason"]])
    figure = draw(made, kind, columns)
    shown = 0
    for axes in figure.axes:
        (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
        for bars in axes.containers:
            for x, y in bars.lines[0].get_xydata():
                assert left <= x <= right and low <= y <= high
                shown += 1
    assert shown == 2 * len(made), "each point is in both panels of its experiment"
    named = {text.get_text() for text in figure.legends[0].get_texts()}
    assert named - {"front"} == {"dense" if row["block_size"] == "1" else f"k = {row['block_size']}" for row in made}


def test_many_block_sizes_differ_and_their_legend_is_no_wider_than_the_page(rows):
    many = [{**rows[2], "block_size": f"gru={gru} linear={linear}"} for gru in (2, 4, 8, 16) for linear in (1, 2, 4, 8)]
    figure = draw(many, "front")
    looks = {(bars.lines[0].get_color(), bars.lines[0].get_marker()) for bars in figure.axes[0].containers}
    assert len(looks) == 16, "each has a colour and a marker of its own"
    figure.draw_without_rendering()
    assert figure.legends[0].get_window_extent().width <= figure.bbox.width


def test_seeds_have_bars_and_the_conditions_say_so(folder, rows):
    both = [{**row, "seed": seed, "quantized": row["quantized"] - 0.01 * seed} for row in rows if not row["reason"]
            for seed in (0, 1)]
    artifact.write_json(folder / "sweep.json", "circulant-sweep", 1, {"name": "mine", "rows": both})
    figure = draw(rows_of(folder), "front")
    assert "2 seeds, mean ± standard deviation" in figure.get_suptitle().replace("\n", " ")
    assert all(bars.has_yerr for axes in figure.axes for bars in axes.containers)


def test_an_exploration_has_its_dense_networks_beside_its_designs(tmp_path, rows):
    """On the same axes, with the means of the seeds that the chosen model was trained from."""
    designs = [{**row, "experiment": f"one, k = {row['block_size']}", "seed": 0} for row in rows[2:4]]
    repeated = [{**designs[0], "experiment": "one, seed 1", "seed": 1, "quantized": designs[0]["quantized"] - 0.1}]
    dense = [{**designs[1], "experiment": "one, dense", "said": f"dense, {count} hidden", "block_size": "1",
              "seed": seed, "multipliers": count}
             for seed, count in (("0 1", 9), (0, 11))]
    artifact.write_json(tmp_path / "explore.json", "circulant-exploration", 1, {
        "designs": designs, "repeated": repeated, "fair": {"rows": dense}})
    made = rows_of(tmp_path)
    assert [row.get("seeds", 1) for row in made] == [2, 1, 1, 1]
    assert [axes.get_title(loc="left") for axes in draw(made, "cost").axes] == ["one", "one"]
    _, *lines = written(made, "cost", "csv").decode().splitlines()
    assert [row["said"] for row in csv.DictReader(lines)] == ["", "", "dense, 9 hidden", "dense, 11 hidden"]


@pytest.mark.parametrize(("low", "high", "named"), [
    (95, 320, [100, 150, 200, 300]), (2100, 2350, [2100, 2150, 2200, 2250, 2300, 2350]), (26, 28, [26, 27, 28]),
    (0.52, 0.61, [0.52, 0.54, 0.56, 0.58, 0.6]), (90, 1e6, [100, 1e3, 1e4, 1e5, 1e6]),
    (8000, 250_000, [10_000, 30_000, 100_000])])
def test_an_axis_has_round_values(low, high, named):
    assert ticks(low, high) == pytest.approx(named)


def test_what_the_command_writes(call, folder):
    code, out, _ = call("plot", folder, "--kind", "cost")
    assert code == 0 and [line.rpartition(".")[2] for line in out.split()] == ["pdf", "svg", "png", "csv"]
    for ending, start in (("pdf", b"%PDF"), ("svg", b"<?xml"), ("png", b"\x89PNG")):
        assert (folder / f"plot-cost.{ending}").read_bytes().startswith(start)
    first, *lines = (folder / "plot-cost.csv").read_text().splitlines()
    assert first.startswith("# ") and "circulant" in first
    table = list(csv.DictReader(lines))
    assert len(table) == len(rows_of(folder)) and {"cycles_per_step", "multipliers"} <= table[0].keys()
    before = (folder / "plot-cost.svg").read_bytes()
    call("plot", folder, "--kind", "cost", "--format", "svg")
    assert (folder / "plot-cost.svg").read_bytes() == before


def test_what_is_refused(call, folder, tmp_path):
    code, _, err = call("plot", folder, "--kind", "cells")
    assert code == 2 and 'sweep with set = ["hardware.library=sky130hd"]' in err.replace("\n", " ")
    code, _, err = call("plot", folder, "--format", "png,jpg")
    assert code == 2 and "--format must list formats among pdf, svg, png, csv, not 'jpg'" in err
    (folder / "sweep.json").unlink()
    with pytest.raises(Refusal, match=r"^A folder to plot must hold sweep\.json or explore\.json, but .* has none"):
        rows_of(folder)
