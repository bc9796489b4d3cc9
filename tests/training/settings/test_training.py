"""The settings of a training: all that is wrong is said at once, and what does nothing has a reason."""
import pytest

from circulant.sim.refusal import Refusal
from circulant.sim.settings import choices, keys
from circulant.training.loop.optimize import DECAYS, OPTIMIZERS, SCALED, SCALINGS
from circulant.training.loop.runtime import PRECISIONS
from circulant.training.settings import training
from circulant.training.settings.training import METHODS, PHASES, TrainingSettings, idle
from circulant.training.task.augment import AUGMENTS


def test_wrong():
    with pytest.raises(Refusal) as refusal:
        TrainingSettings(dense_epochs=-1, batch_size=0, learning_rate=0, rho_growth=0.5, decay="cosin", seed=True,
                         method="dirct", rho="much", clip=-1, label_smoothing=1.0, precision="half", tensorboard="yes",
                         admm_interval=0)
    for part in ("dense_epochs must be an integer from 0 to 10000, not -1",
                 "batch_size must be an integer from 1 to 65536, not 0",
                 "learning_rate must be a number from 1e-08 to 10, not 0",
                 "rho_growth must be a number from 1 to 100, or 0 for what takes it to rho_max with the last epoch "
                 "(1.1 where it balances), not 0.5",
                 "decay must be one of 'cosine', 'step', 'none', not 'cosin'; did you mean 'cosine'?",
                 "seed must be an integer",
                 "method must be one of 'admm', 'direct', 'search', not 'dirct'; did you mean 'direct'?",
                 "rho must be a number from 1e-09 to 1000000, or a table from matrix name to such a number, not 'much'",
                 "clip must be a number from 1e-06 to 1000000, or 0 for none, not -1",
                 "label_smoothing must be a number from 0 to 0.9, not 1.0",
                 "precision must be one of 'auto', 'float32'", "tensorboard must be true or false, not 'yes'",
                 "admm_interval must be an integer from 1 to 10000, not 0"):
        assert f"training.{part}" in str(refusal.value), f"{part!r} must be in {refusal.value}"


def test_every_choice_is_implemented():
    for name, made in (("optimizer", OPTIMIZERS), ("decay", DECAYS), ("rate_scaling", SCALINGS),
                       ("precision", PRECISIONS), ("augment", AUGMENTS), ("method", METHODS)):
        assert set(choices(TrainingSettings, name)) == made.keys(), name
    assert set(SCALED) == set(training.SCALED)


def test_idle_settings_are_those_of_other_phases():
    found = idle("admm", "retrain")
    assert {"dense_epochs", "direct_epochs", "start", "stages", "self_guided", "search_epochs", "search_cost",
            "search_share", "device", "tensorboard"} == found.keys()
    assert found["start"] == "it has no phase 'direct'; leave it out"
    assert {"rho", "retrain_rate", "tolerance"} < idle("direct").keys()
    assert {name for names in PHASES.values() for name in names} < keys(TrainingSettings).keys()


@pytest.mark.parametrize("optimizer", ["muon", "sgd"])
def test_rates_are_scaled_for_adam_alone(optimizer):
    with pytest.raises(Refusal, match=f"training.rate_scaling must be 'none' with the optimizer '{optimizer}', not "
                                      "'block': its rules are for the steps of adam and adamw"):
        TrainingSettings(optimizer=optimizer, rate_scaling="block")
    assert TrainingSettings(optimizer="adamw", rate_scaling="block").rate_scaling == "block"


@pytest.mark.parametrize("rho", [0.0, float("nan"), {"gru": 0.0}, "much"])
def test_rho_wrong(rho):
    with pytest.raises(Refusal, match=r"^training\.rho must be a number from 1e-09 to 1000000, or a table from "):
        TrainingSettings(rho=rho)


def test_phases():
    settings = TrainingSettings(dense_epochs=1, admm_epochs=2, retrain_epochs=3, direct_epochs=4, retrain_rate=0.5)
    assert [settings.epochs(phase) for phase in ("dense", "admm", "retrain", "direct")] == [1, 2, 3, 4]
    assert settings.rate("retrain") == 0.5
    assert {settings.rate(phase) for phase in ("dense", "admm", "direct")} == {settings.learning_rate}
    assert METHODS["direct"][-1] == "direct"
