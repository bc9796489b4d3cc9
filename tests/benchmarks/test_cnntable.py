"""The table of networks over images: every figure from a file, the paper's beside them, the rest of the text kept."""
import json

import click
import pytest

from benchmarks import cnntable

FIGURES = {"model": "lenet5", "trained": "1 epoch on all training samples", "tested": 10000, "accuracy": 0.9787,
           "cycles_per_image": 500.0, "cycles_planned": 500, "images_per_s_at_200_mhz": 400000.0, "multipliers": 342,
           "budget": 342, "utilisation": 1.0, "images": 200, "mismatches": 0, "verilog_lines": 5900,
           "slowest_layer": "conv2"}


def put(folder, name, **changes):
    path = folder / f"{name}.json"
    path.write_text(json.dumps(FIGURES | changes))
    return path


def test_a_line_for_each_file_in_the_order_of_the_models(tmp_path):
    files = [put(tmp_path, "a", model="crnn", accuracy=0.9967, mismatches=3), put(tmp_path, "b")]
    lines = cnntable.document(cnntable.load(files)).splitlines()
    assert lines[2] == ("| LeNet-5, MNIST | 1 epoch on all training samples | 97.87% of 10,000 | 500 (500) | 400,000 | "
                        "342 (342) | 100% of the cycles (conv2) | 200 samples, 0 mismatches | 5,900 lines |")
    assert lines[3].startswith("| CRNN") and "3 mismatches" in lines[3]
    assert "not checked against the paper" in lines[4]
    assert len({line.count("|") for line in lines}) == 1


def test_what_stands_around_the_marks_is_kept(tmp_path):
    path = tmp_path / "results.md"
    path.write_text(f"before\n{cnntable.BEGIN}\nold\n{cnntable.END}\nbehind\n")
    cnntable.write(path, cnntable.load([put(tmp_path, "a")]))
    text = path.read_text()
    assert text.startswith(f"before\n{cnntable.BEGIN}\n\n| network |")
    assert text.endswith(f"|\n\n{cnntable.END}\nbehind\n")
    assert "old" not in text


def test_refusals(tmp_path):
    path = tmp_path / "bare.json"
    path.write_text(json.dumps({name: value for name, value in FIGURES.items() if name != "trained"}))
    with pytest.raises(click.ClickException, match=r"bare\.json must hold the figures .*, but it has no trained; "):
        cnntable.load([path])
    path.write_text("no marks")
    with pytest.raises(click.ClickException, match=r"must have the lines .* once each; put them back$"):
        cnntable.write(path, [])
