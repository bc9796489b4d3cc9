"""The benchmark of standard cells: what is measured once and kept, operations, the figures that docs/asic.md quotes."""
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks import asic as module
from benchmarks.designs import network
from circulant.boards.asic.cells.catalogue import OWN
from circulant.sim import artifact, design
from circulant.sim.vectors import Vectors
from tests.boards.asic import tiny

MEASURED = Path(__file__).parents[2] / "docs/measured/asic.json"


def rewritten(folder, old, new):
    """The design with other Verilog, as if it had been generated so."""
    described = design.read(folder)
    text = (folder / "top.v").read_text()
    assert old in text
    (folder / "top.v").write_text(text.replace(old, new, 1))
    contents = {name: (folder / name).read_bytes() for name in described["files"]}
    body = {key: value for key, value in described.items() if key not in ("hash", "kind", "version", "format")}
    body["files"] = design.hashes(contents)
    artifact.write_json(folder / "manifest.json", design.KIND, design.VERSION, body)


def test_what_leaves_the_circuit_alone_measures_nothing_anew(tmp_path, monkeypatch):
    folder, vectors = tiny.design(tmp_path)
    monkeypatch.setattr(module, "library", lambda names: (tiny.read(tmp_path), OWN))
    calls = []
    figures = SimpleNamespace(as_json=lambda: {"cells": 1})
    monkeypatch.setattr(module, "asic", lambda *_, **__: calls.append(1) or figures)

    def measured(played=vectors, samples=2):
        return module.of_design(folder, tmp_path / "out", "tiny", vectors=played, samples=samples, note=print)

    (tmp_path / "out").mkdir()
    first = measured()
    assert first["cells"] == 1 and measured() == first and len(calls) == 1
    rewritten(folder, "// Top", "// Changed top")
    assert measured() == first and len(calls) == 1
    rewritten(folder, "input clk,", "\n  input clk, ")
    assert measured() == first and len(calls) == 1
    measured(samples=3)
    assert len(calls) == 2
    measured(Vectors(**vars(vectors) | {"inputs": -vectors.inputs}), samples=3)
    assert len(calls) == 3
    rewritten(folder, "endmodule", "  wire more;\nendmodule")
    last = measured(samples=3)
    assert len(calls) == 4
    # Another folder has nothing of it, but the repository's figures do.
    monkeypatch.setattr(module, "MEASURED", tmp_path / "asic.json")
    module.MEASURED.write_text(json.dumps({"designs": {"tiny": {"tiny": last | {"fmax_mhz": 5}}}}))
    (tmp_path / "out/measured.json").unlink()
    assert measured(samples=3) == last | {"fmax_mhz": 5} and len(calls) == 4


@pytest.mark.parametrize(("name", "actual", "dense"), [
    ("digits-gru", 43_488, 149_504),
    # Pixels × windows × channels of both convolutions, and the matrices behind them, all padded to whole blocks.
    ("lenet5", 284_690, 2 * (28 * 28 * 25 * 6 + 10 * 10 * 25 * 2 * 64 + 15 * 50 * 64 + 11 * 15 * 64 + 10 * 84))])
def test_operations_both_ways(name, actual, dense):
    kept = json.loads(MEASURED.read_text())["designs"][name]["asap7"]
    assert (kept["operations"], kept["dense_operations"]) == (actual, dense)
    assert kept["pj_per_dense_operation"] == pytest.approx(1e3 * kept["energy_nj_total"] / dense, rel=1e-3)
    made = network(name)
    steps = SimpleNamespace(steps=SimpleNamespace(mean=lambda: 8.0))
    counts = {"multiplications": {"per_step": 0, "per_sequence": 0}}
    assert module._operations(counts, made, steps, {})["dense_operations"] == dense


@pytest.mark.parametrize("name", module.NETWORKS)
def test_figures_have_the_form_that_is_documented(name):
    rows = json.loads(MEASURED.read_text())["designs"][name]
    assert set(rows) <= set(module.LEVELS) and len(rows) >= 2
    for found in rows.values():
        assert min(found["fmax_mhz"], found["cells"], found["area_um2"]["logic"], found["energy_nj"]["clock"]) > 0
        assert sum(found["energy_nj"].values()) == pytest.approx(found["energy_nj_total"], rel=1e-4)
        assert (found["activity"]["words"], found["activity"]["mismatches"]) == (20, 0)


def test_the_page_has_the_kept_figures_of_block_sizes():
    docs = MEASURED.parents[1]
    page = (docs / "asic.md").read_text()
    for row in json.loads((docs / "measured/blocks.json").read_text())["rows"]:
        shape = f"| {row['block_size']} | {row['multipliers']} × {row['cycles']:g} |"
        lines = [line for line in page.splitlines() if line.startswith(shape)]
        assert any(f" | {row['energy_nj_total']:,.0f} nJ | " in line for line in lines), shape
        assert f" | {row['multiplications']:,.0f} | " in page and row["activity"]["mismatches"] == 0
