"""Sweeps that take a second, and rows of one that never ran."""
import pytest

GRID = """
[[grid]]
experiment = "digits-gru"
set = ["data.subset=60", "data.test_subset=40", "model.hidden=8", "training.dense_epochs=1",
       "training.admm_epochs=1", "training.retrain_epochs=1"]
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CIRCULANT_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def sweep_file(tmp_path):
    """Writes a sweep over the tiny experiment; returns its path."""

    def write(axes, head="", name="tiny"):
        path = tmp_path / f"{name}.toml"
        path.write_text(f"{head}\n{GRID}\n{axes}\n")
        return str(path)

    return write


@pytest.fixture
def rows():
    """Two experiments of 2 block sizes × 2 widths × 2 budgets, of which one point failed."""
    found = []
    for label, best in (("one", 0.99), ("two", 0.95)):
        for k, cost in (("1", 8), ("gru=8 linear=4", 1)):
            for bits, lost in ((4, 0.05), (8, 0.0)):
                found += [{
                    "experiment": label, "block_size": k, "weight_bits": bits, "activation_bits": 12, "budget": budget,
                    "measure": "plan", "reason": "", "metric": "accuracy", "higher_is_better": True, "dense": 0.99,
                    "circulant": best - 0.01 * (cost == 1), "quantized": best - 0.01 * (cost == 1) - lost,
                    "weights": 1000 * cost, "weight_memory_bits": 1000 * cost * bits, "multipliers": budget - 1,
                    "cycles_per_step": 40 + 6400 * cost // budget, "floor_cycles": 6400 * cost // budget}
                    for budget in (16, 64)]
    for name in ("quantized", "weights", "weight_memory_bits", "multipliers", "cycles_per_step", "floor_cycles"):
        del found[0][name]
    found[0]["reason"] = "The budget must be larger, not 16; raise it"
    return found
