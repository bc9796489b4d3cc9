"""`circulant train --find-rate`: which samples judge, what is said and written, and what is refused."""
import json
from types import SimpleNamespace

import pytest

from circulant import rates

SET = [word for each in ("data.subset=200", "model.hidden=8", "training.method=direct", "training.dense_epochs=1",
                         "training.distillation=0", "training.direct_epochs=16") for word in ("--set", each)]


def test_the_rate_is_chosen_on_samples_held_out_of_training(call, tmp_path, monkeypatch):
    monkeypatch.setattr("circulant.training.FACTORS", (0.01, 1))
    code, out, err = call("train", "digits-gru", "--find-rate", "--out", "here", *SET)
    assert code == 0, err
    first, second, last = out.splitlines()
    assert (first.split()[0], second.split()[0]) == ("0.0001:", "0.01:")
    assert last == ("here/rates.png: of 2 rates 0.01 has the least loss on 20 training samples held out, after 4 "
                    "epochs; take it with --set training.learning_rate=0.01. It is the greatest: the best may be "
                    "beyond")
    kept = json.loads((tmp_path / "here" / "rates.json").read_text())
    assert [each["rate"] for each in kept["tried"]] == [0.0001, 0.01] and kept["best"] == 0.01
    assert kept["tried"][1]["loss"] < kept["tried"][0]["loss"]
    assert kept["experiment"]["data"]["held_out"] == 20
    assert (tmp_path / "here" / "rates.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in (tmp_path / "here").iterdir()) == ["rates.json", "rates.png"], "nothing else"


def test_the_experiment_may_say_how_many_are_held_out():
    tried = [{"rate": 0.1, "loss": None, "accuracy": None}, {"rate": 0.2, "loss": 0.5, "accuracy": 0.8},
             {"rate": 0.4, "loss": 0.7, "accuracy": 0.9}]
    assert rates.best(tried) == 0.2, "the loss decides, and what has none does not count"
    assert rates.closing(tried, 7, 4) == ("of 3 rates 0.2 has the least loss on 7 training samples held out, after 4 "
                                       "epochs; take it with --set training.learning_rate=0.2")


def test_without_a_warm_up_one_is_proposed_where_greater_rates_are_worse():
    tried = [{"rate": rate, "loss": loss} for rate, loss in ((0.1, 0.7), (0.2, 0.5), (0.4, 2.3))]
    hint = ". Greater ones may do with a rate that rises first: try --set training.warmup_epochs=1"
    assert rates.closing(tried, 7, 4, warm=False) == rates.closing(tried, 7, 4) + hint
    assert hint not in rates.closing(tried[:2], 7, 4, warm=False), "the greatest is the best"


def test_rates_that_are_all_too_large_are_refused(call, monkeypatch):
    monkeypatch.setattr("circulant.training.try_rates", lambda data, settings, rates, **more: [
        SimpleNamespace(rate=rate, loss=None, score=None) for rate in rates])
    code, _, err = call("train", "digits-gru", "--find-rate", *SET, "--set", "training.learning_rate=4")
    assert code == 2
    assert "A learning rate must keep the loss finite, but none from 1 to 8 does; set training." in err, (
        "rates beyond what is legal are not tried")


@pytest.mark.parametrize(("words", "message"), [
    (("--resume",), "--find-rate and --resume must not both be given, as a search of rates has no checkpoint"),
    (("--set", "training.dense=gone"), "gone")])
def test_wrong(call, words, message):
    code, _, err = call("train", "digits-gru", "--find-rate", *SET, *words)
    assert code == 2
    assert message in err
