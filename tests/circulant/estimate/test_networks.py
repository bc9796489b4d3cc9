import pytest

from circulant.estimate import networks
from circulant.experiment import load
from circulant.sim.quantize.bitwidth_cost import weight_bits


def test_the_network_of_an_experiment_is_made_once_and_has_its_settings(monkeypatch, tmp_path):
    monkeypatch.setenv("CIRCULANT_CACHE", str(tmp_path))
    experiment = load("digits-gru", ("model.hidden=16", "compression.block_size=4", "quantization.weight_bits=9",
                                     "data.subset=50"))
    made = networks.untrained(experiment)
    assert [layer.kind for layer in made.layers] == ["gru", "linear"] and made.layers[0].hidden == 16
    assert made.layers[0].gates.block_size == 4 and made.layers[0].gates.parts[0].weight.width == 9
    assert weight_bits(made)
    monkeypatch.setattr(networks.run, "untrained", lambda experiment: pytest.fail("it is kept"))
    assert networks.untrained(experiment).hash == made.hash
    kept, = (tmp_path / "networks").iterdir()
    (kept / "weights.npz").write_bytes(b"")
    with pytest.raises(pytest.fail.Exception, match="it is kept"):
        networks.untrained(experiment)  # A damaged one is made anew.


@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_tables_cover_the_range_of_a_trained_network(monkeypatch, tmp_path, kind):
    monkeypatch.setenv("CIRCULANT_CACHE", str(tmp_path))
    layer, _ = networks.untrained(load("digits-gru", (f"model.kind='{kind}'", "model.hidden=16",
                                                      "compression.block_size=4", "data.subset=50"))).layers
    tables = [layer.sigmoid, layer.tanh, *([layer.tanh_cell] if kind == "lstm" else [])]
    assert [table.reach for table in tables] == [3, 2, 2][:len(tables)]  # Beyond ±8 and ±4 both are flat.
    assert min(table.segments for table in tables) > 30


def test_a_folder_without_a_network_has_none(tmp_path):
    assert networks.network_of(tmp_path) is None
