"""The settings of a training: all that is wrong is said at once."""
import pytest

from circulant.sim.refusal import Refusal
from circulant.training.loop.settings import METHODS, TrainingSettings


def test_wrong():
    with pytest.raises(Refusal) as refusal:
        TrainingSettings(dense_epochs=-1, batch_size=0, learning_rate=0, rho_growth=0.5, decay="cosin", seed=True,
                         method="dirct", rho={}, clip=-1, label_smoothing=1.0, precision="half", tensorboard="yes",
                         admm_interval=0)
    for part in ("dense_epochs must be an integer of at least 0, not -1", "batch_size must be an integer of at least 1",
                 "learning_rate must be a positive number, not 0", "rho_growth must be at least 1, not 0.5",
                 "decay must be one of 'cosine', 'step', 'none', not 'cosin'; did you mean 'cosine'?",
                 "seed must be an integer",
                 "method must be one of 'admm', 'direct', not 'dirct'; did you mean 'direct'?",
                 "rho must be a positive number, or one for each matrix, not {}", "clip must be a number of at least 0",
                 "label_smoothing must be below 1, not 1.0", "precision must be one of 'auto', 'float32'",
                 "tensorboard must be true or false, not 'yes'",
                 "admm_interval must be an integer of at least 1, not 0"):
        assert part in str(refusal.value), f"{part!r} must be in {refusal.value}"


@pytest.mark.parametrize("optimizer", ["muon", "sgd"])
def test_rates_are_scaled_for_adam_alone(optimizer):
    with pytest.raises(Refusal, match=f"rate_scaling must be 'none' with the optimizer '{optimizer}', not 'block': its "
                                      "rules are of the steps of adam and adamw"):
        TrainingSettings(optimizer=optimizer, rate_scaling="block")
    assert TrainingSettings(optimizer="adamw", rate_scaling="block").rate_scaling == "block"


@pytest.mark.parametrize("rho", [0.0, float("nan"), {"gru": 0.0}, "much"])
def test_rho_wrong(rho):
    with pytest.raises(Refusal, match="rho must be a positive number, or one for each matrix, not "):
        TrainingSettings(rho=rho)


def test_phases():
    settings = TrainingSettings(dense_epochs=1, admm_epochs=2, retrain_epochs=3, direct_epochs=4, retrain_rate=0.5)
    assert [settings.epochs(phase) for phase in ("dense", "admm", "retrain", "direct")] == [1, 2, 3, 4]
    assert settings.rate("retrain") == 0.5
    assert {settings.rate(phase) for phase in ("dense", "admm", "direct")} == {settings.learning_rate}
    assert METHODS["direct"][-1] == "direct"
