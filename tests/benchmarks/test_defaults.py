"""The points that default settings lose: what is trained, what counts as lost, and that nothing is trained twice."""
import pytest

from benchmarks import defaults

WINE = "wine, perceptron"


def test_the_better_dense_rate_counts_and_losses_are_against_it(tmp_path):
    kept = tmp_path / "kept.jsonl"
    found = defaults.measure(seeds=1, epochs=1, sets=(WINE,), kept=kept)
    scores = found["sets"][WINE]["seeds"]
    assert scores["dense"] == [max(defaults.Record(kept, dict)[f"{WINE}, {rate}, seed 0, 1 epochs"]["score"]
                                   for rate in defaults.RATES)]
    for way, part in (("admm", "sets"), ("direct", "direct")):
        loss = scores["dense"][0] - scores[way][0]
        assert found[part][WINE]["loss"] == found["losses"][way]["mean"] == found["losses"][way]["worst"] == loss


def test_one_dense_rate_counts_for_all_seeds(monkeypatch):
    scores = {("0.01", 0): 90.0, ("0.01", 1): 96.0, ("0.0025", 0): 94.0, ("0.0025", 1): 94.0}
    monkeypatch.setattr(defaults, "_trained",
                        lambda name, way, seed, epochs: {"score": scores.get((way, seed), 93.5), "guess": 40.0})
    found = defaults.measure(seeds=2, sets=(WINE,), kept=None)
    assert found["sets"][WINE]["seeds"]["dense"] == [94.0, 94.0], "the better mean, not the better of each seed"
    assert found["losses"]["admm"] == {"mean": 0.5, "worst": 0.5}


def test_what_was_trained_is_not_trained_again(tmp_path, monkeypatch):
    trained, kept = [], tmp_path / "kept.jsonl"
    monkeypatch.setattr(defaults, "_trained", lambda *call: trained.append(call) or {"score": 40.0, "guess": 40.0})
    found = defaults.measure(seeds=2, sets=(WINE,), kept=kept)
    assert len(trained) == 8 and {epochs for *_, epochs in trained} == {defaults.EPOCHS}
    assert found["at_chance"] == [f"{WINE}, {way}, seed {seed}" for seed in (0, 1) for way in ("admm", "direct")]
    assert defaults.measure(seeds=2, sets=(WINE,), kept=kept) == found and len(trained) == 8


@pytest.mark.parametrize("name", ["digits, CNN", "breast cancer, perceptron"])
def test_a_network_takes_its_samples(name):
    data, test = defaults.SETS[name].load()
    x = data.train_x if test is None else data[0]
    assert defaults.SETS[name].model()(defaults.torch.from_numpy(x[:2])).shape == (2, 10 if test is None else 2)
