import csv
import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from circulant.sweep import sheets

DOCS = Path(__file__).parents[3] / "docs"


def printed(table):
    console = Console(width=140, color_system=None)
    with console.capture() as captured:
        console.print(table)
    return captured.get()


def test_csv_has_every_figure_in_full(rows):
    read = list(csv.DictReader(io.StringIO(sheets.comma_separated(rows))))
    assert len(read) == len(rows)
    assert tuple(read[0]) == sheets.EXACT
    for found, row in zip(read, rows, strict=True):
        for column in set(sheets.EXACT) - {"front"}:
            assert found[column] == str(row.get(column, "")), column
    assert [row["front"] for row in read[:8]] == ["", "", "memory work", "", "memory", "", "memory work", ""]
    assert (read[0]["quantized"], read[0]["reason"]) == ("", rows[0]["reason"])


def test_the_terminal_shows_every_row_of_a_short_sweep(rows):
    said = printed(sheets.terminal("mine", rows)).splitlines()
    assert said[0].strip() == "mine: 16 points, 1 failed"
    assert len([line for line in said if line.startswith((" one", " two"))]) == 16
    assert said[4].split() == ["one", "1", "4", "12", "16", "99.00%", "99.00%", "failed"]
    assert said[6].split() == ["one", "1", "8", "12", "16", "99.00%", "99.00%", "99.00%", "64,000", "15", "3,240",
                               "3,200", "memory", "work"]


def test_cells_have_columns_where_a_point_was_mapped(rows):
    assert "mm²" not in printed(sheets.terminal("mine", rows))
    rows[2] |= {"cells_mm2": 0.2679, "inference_nj": 457.0, "cells_mhz": 174.0}
    said = printed(sheets.terminal("mine", rows)).splitlines()
    assert said[2].split()[-4:] == ["mm²", "nJ", "MHz", "front"]
    assert said[6].split()[-5:] == ["0.2679", "457", "174", "memory", "work"]
    assert "| floor | mm² | nJ | MHz | front |" in sheets.markdown("mine", rows, "circulant sweep", "p.png", "p.csv")


def test_the_terminal_shows_the_fronts_of_a_long_sweep(rows):
    long = rows + [row | {"activation_bits": 16} for row in 2 * rows]
    said = printed(sheets.terminal("mine", long))
    assert said.startswith("mine: 48 points, 3 failed; the 6 that nothing beats")
    assert len([line for line in said.splitlines() if line.startswith((" one", " two"))]) == 6


def test_points_of_several_seeds_are_one_row(rows):
    mine = [{**row, "seed": seed, "quantized": row["quantized"] + 0.01 * (seed - 1)}
            for seed in range(3) for row in rows if row["experiment"] == "two"]
    said = printed(sheets.terminal("mine", mine)).splitlines()
    assert said[0].strip() == "mine: 24 points"
    cells = [line.split() for line in said if line.startswith(" two")]
    assert len(cells) == 8
    assert cells[2][5:14] == ["99.00%", "±", "0.00%", "95.00%", "±", "0.00%", "95.00%", "±", "1.00%"]
    text = sheets.markdown("mine", mine, "command", "picture", "points")
    assert "| 95.00% ± 1.00% |" in text
    assert ("Points that differ in their seed alone are one, with the mean of up to 3 seeds ± the standard deviation; "
            "*front* compares the means.") in text
    assert "too few to tell" not in text
    one = sheets.markdown("mine", mine[:8], "command", "picture", "points")
    assert "±" not in one and "1 seed is too few to tell a difference of a point from chance: train three." in one
    assert len(sheets.comma_separated(mine).splitlines()) == 25


def test_failures_are_counted_by_reason(rows):
    assert sheets.failures([*rows, rows[0], rows[1] | {"reason": "other"}]) == {rows[0]["reason"]: 2, "other": 1}


def test_a_reason_is_said_once_on_the_page(rows):
    (title, _, cells), (_, _, every) = sheets.tables([row | {"reason": "The budget is too small"} for row in rows])
    assert (title, cells) == ("Points that failed", [["The budget is too small", "16"]])
    assert [line[-1] for line in every] == ["failed"] * 16
    assert [title for title, *_ in sheets.tables(rows[1:])] == ["All points"]


def test_markdown(rows):
    text = sheets.markdown("mine", rows, "circulant sweep mine.toml", "images/mine.png", "measured/mine.csv")
    assert text.startswith("# Sweep `mine`\n\nWritten by `circulant sweep mine.toml`; 16 points, 1 failed, all in "
                           "[a CSV file](measured/mine.csv).\n")
    assert "](images/mine.png)" in text
    assert f"- 1: {rows[0]['reason']}\n" in text
    assert "\n## Points that nothing beats\n" in text
    lines = text.splitlines()
    assert len([line for line in lines if line.startswith(("| one", "| two"))]) == 6
    assert {line.count("|") for line in lines if line.startswith("|")} == {len(sheets.COLUMNS) - len(sheets.CELLS) + 1}
    assert "| one | gru=8 linear=4 | 8 | 12 | 16 | 99.00% | 98.00% | 98.00% | 8,000 | 15 | 440 | 400 | memory work |" \
        in lines


def test_markdown_has_ten_points_and_those_on_both_fronts_first(rows):
    many = [row | {"experiment": f"{row['experiment']}{copy}"} for copy in range(2) for row in rows]
    text = sheets.markdown("mine", many, "x", "y", "z")
    shown = [line for line in text.splitlines() if re.match(r"\| (one|two)\d ", line)]
    assert "\n## Points that nothing beats, 10 of 12\n" in text
    assert len(shown) == 10
    both = [row for row in csv.DictReader(io.StringIO(sheets.comma_separated(many))) if row["front"] == "memory work"]
    assert sum("memory work" in line for line in shown) == len(both) == 8
    assert shown == sorted(shown, key=lambda line: line[5]), "in the order of the sweep"


def test_a_sweep_that_all_failed_has_no_picture(rows):
    assert "![" not in sheets.markdown("mine", rows[:1], "x", "y", "z")


def test_a_sweep_without_failures_names_none(rows):
    assert "failed" not in sheets.markdown("mine", rows[1:], "x", "y", "z")


@pytest.mark.parametrize(("page", "name", "count"), [
    ("results-sweep.md", "recurrent", 270), ("results-search.md", "recurrent-search", 400)])
def test_a_page_of_the_documentation_has_the_points_of_its_file(page, name, count):
    with (DOCS / f"measured/sweep-{name}.csv").open(encoding="utf-8") as file:
        points = list(csv.DictReader(file))
    assert len(points) == count
    best = [(row["experiment"], row["block_size"], row["weight_bits"], row["activation_bits"], row["budget"],
             f"{float(row['quantized']):.2%}", row["cycles_per_step"], row["front"]) for row in points if row["front"]]
    cells = [re.split(r" *\| *", line)[1:-1] for line in (DOCS / page).read_text("utf-8").splitlines()
             if re.match(r"\| \w+-gru ", line)]
    assert [(*row[:5], row[7], row[10].replace(",", ""), row[12]) for row in cells] == best
