"""ADMM: the three steps by their equations, residuals, growth of ρ, state, refusals."""
import pytest
import torch
from torch import nn

from circulant.sim.refusal import Refusal
from circulant.training.blocks.admm import Admm
from circulant.training.blocks.constraint import BlockCirculant, block_sizes, compress


def linear(seed: int = 0) -> nn.Linear:
    torch.manual_seed(seed)
    return nn.Linear(16, 8, bias=False)


def test_init():
    model = linear()
    admm = Admm(model, 8, rho=0.5)
    assert torch.equal(admm.z["weight"], BlockCirculant(8, 16, 8).project(model.weight.detach()))
    assert not admm.u["weight"].any()
    assert admm.residuals == {}
    assert not admm.converged, "nothing has converged before the first update"


def test_steps_are_the_equations():
    model = linear()
    admm = Admm(model, 8, rho=0.5)
    project = BlockCirculant(8, 16, 8).project
    z, u = project(model.weight.detach()), torch.zeros(8, 16)
    for seed in range(3):
        torch.manual_seed(seed)
        with torch.no_grad():
            model.weight.add_(torch.randn(8, 16) / 10)
        w, before = model.weight.detach(), z
        assert float(admm.penalty().detach()) == pytest.approx(0.25 * float((w - z + u).square().sum()), rel=1e-6)
        z = project(w + u)
        u = u + w - z
        residuals = admm.update()["weight"]
        assert torch.equal(admm.z["weight"], z)
        assert torch.equal(admm.u["weight"], u)
        assert residuals.primal == pytest.approx(float((w - z).norm() / w.norm()), rel=1e-6)
        assert residuals.dual == pytest.approx(float((z - before).norm() / z.norm()), rel=1e-6)


def test_penalty_pulls_the_weights():
    model = linear()
    admm = Admm(model, 8, rho=0.5)
    admm.penalty().backward()
    wanted = 0.5 * (model.weight.detach() - admm.z["weight"])
    torch.testing.assert_close(model.weight.grad, wanted)


def test_pull_is_the_gradient_of_the_penalty():
    model = nn.Sequential(linear(), linear(1), nn.Linear(8, 8))
    admm = Admm(model, {"0": 8, "1": 4}, rho={"0": 0.5, "1.weight": 0.25})
    for seed in range(2):
        torch.manual_seed(seed)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter))
        admm.penalty().backward()
        wanted = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
        model.zero_grad()
        admm.add_penalty_gradient()
        assert {name for name, p in model.named_parameters() if p.grad is not None} == set(wanted) == set(admm.z)
        for name, gradient in wanted.items():
            torch.testing.assert_close(model.get_parameter(name).grad, gradient, msg=name)
        model.zero_grad()
        admm.update()


def test_pull_adds_to_a_gradient():
    model = linear()
    admm = Admm(model, 8, rho=0.5)
    model.weight.grad = torch.ones_like(model.weight)
    admm.add_penalty_gradient()
    torch.testing.assert_close(model.weight.grad, 1 + 0.5 * (model.weight.detach() - admm.z["weight"]))


def test_converges_to_the_constrained_optimum():
    model = linear()
    target = torch.randn(8, 16, generator=torch.Generator().manual_seed(1))
    scale = torch.rand(8, 16, generator=torch.Generator().manual_seed(2)) + 0.5
    admm = Admm(model, 8, rho=1.0, tolerance=1e-4)
    first = None
    for _ in range(200):
        with torch.no_grad():  # the exact minimum of Σ scale/2 (W - target)² + ρ/2 (W - Z + U)²
            rho = admm.rho["weight"]
            goal = admm.z["weight"] - admm.u["weight"]
            model.weight.copy_((scale * target + rho * goal) / (scale + rho))
        admm.update()
        first = first or admm.worst.primal
        if admm.converged:
            break
    assert admm.converged, f"the residuals {admm.residuals} must fall below the tolerance"
    assert admm.worst.primal < first / 100
    constraint = BlockCirculant(8, 16, 8)
    optimum = constraint(constraint.right_inverse(scale * target) / constraint.right_inverse(scale))
    torch.testing.assert_close(admm.z["weight"], optimum, atol=1e-3, rtol=0)
    assert not torch.allclose(constraint.project(target), optimum, atol=0.05), "a mere projection must not do as well"


def test_rho_grows_and_keeps_the_multipliers():
    model = linear()
    admm = Admm(model, 8, rho=0.5, growth=4.0, rho_max=3.0)
    fixed = Admm(model, 8, rho=0.5)
    admm.update()
    fixed.update()
    assert admm.rho == {"weight": 2.0}
    torch.testing.assert_close(admm.rho["weight"] * admm.u["weight"], fixed.rho["weight"] * fixed.u["weight"])
    admm.update()
    admm.update()
    assert admm.rho == {"weight": 3.0}, "ρ must stop at rho_max"


def test_rho_comes_to_its_end_in_the_epochs_that_there_are():
    admm = Admm(linear(), 8, rho=0.01, growth=0, rho_max=1.0, updates=5)
    seen = [admm.rho["weight"]]
    for _ in range(4):
        admm.update()
        seen.append(admm.rho["weight"])
    assert seen == pytest.approx([0.01, 10**-1.5, 0.1, 10**-0.5, 1.0]), "the last epoch trains with the greatest ρ"
    for options in ({"updates": 1}, {"updates": 5, "rho_max": 0.005}, {"updates": 5, "schedule": "constant"}):
        fixed = Admm(linear(), 8, rho=0.01, growth=0, **{"rho_max": 1.0, **options})
        fixed.update()
        assert fixed.rho == {"weight": 0.01}, options


def test_balance_follows_the_residuals():
    def after(w_step: float, seed: int = 0) -> float:
        model = linear(seed)
        admm = Admm(model, 8, rho=1.0, schedule="balance", growth=2.0)
        with torch.no_grad():
            model.weight.add_(w_step)
        admm.update()
        return admm.rho["weight"]

    assert after(0.0) == 2.0, "Z stood still and W is far from it, so the pull must become stronger"
    assert after(100.0) == 0.5, "Z moved far and W is almost inside the set, so the pull must become weaker"


def test_rho_stays_when_constant():
    admm = Admm(linear(), 8, rho=0.5, schedule="constant", growth=4.0)
    admm.update()
    assert admm.rho == {"weight": 0.5}


def test_rho_by_name():
    model = nn.Sequential(linear(), linear(1), nn.Linear(8, 8))
    assert Admm(model, 8, rho={"0": 0.1, "1": 0.2, "2.weight": 0.3}).rho == {"0.weight": 0.1, "1.weight": 0.2,
                                                                           "2.weight": 0.3}
    with pytest.raises(Refusal, match=r"^rho must be given for every constrained matrix, but not for 1\.weight, 2"):
        Admm(model, 8, rho={"0": 0.1})
    with pytest.raises(Refusal, match=r"^rho must be given to constrained matrices, not to '1'"):
        Admm(model, {"0": 8}, rho={"0": 0.1, "1": 0.2})
    with pytest.raises(Refusal, match=r"^rho of 0\.weight must be finite and above 0, not 0"):
        Admm(model, {"0": 8}, rho={"0": 0})


def test_state_dict_continues():
    model = linear()
    admm = Admm(model, 8, rho=0.5, growth=2.0)
    admm.update()
    other = Admm(model, 8, rho=0.5, growth=2.0)
    other.load_state_dict(admm.state_dict())
    assert other.rho == admm.rho
    assert other.residuals == admm.residuals, "a phase that had converged must not be trained on"
    assert torch.equal(other.penalty(), admm.penalty())
    assert other.update() == admm.update()
    assert torch.equal(other.u["weight"], admm.u["weight"])


def test_state_of_another_model_is_refused():
    with pytest.raises(Refusal, match=r"^The state of ADMM must hold the matrices {'weight': \(8, 16\)}"):
        Admm(linear(), 8).load_state_dict(Admm(nn.Linear(8, 8), 8).state_dict())


def test_dense_matrices_are_free():
    model = nn.Sequential(linear(), nn.Linear(8, 8))
    admm = Admm(model, {"0": 8, "1": 1})
    assert set(admm.z) == {"0.weight"}
    free = Admm(model, 1)
    assert float(free.penalty()) == 0.0
    assert free.update() == {}
    assert free.worst == (0.0, 0.0)


def test_constrained_weights_are_refused():
    small = compress(linear(), 8)
    assert block_sizes(small) == {"weight": 8}
    with pytest.raises(Refusal, match=r"^weight: ADMM must work on a dense weight"):
        Admm(small, 8)


@pytest.mark.parametrize(("setting", "message"), [
    ({"rho": 0.0}, r"^rho must be finite and above 0, not 0\.0"),
    ({"rho": float("nan")}, r"^rho must be finite and above 0, not nan"),
    ({"schedule": "balanced"}, r"^schedule must be one of 'geometric', 'balance', 'constant', not 'balanced'; did you"),
    ({"growth": 0.5}, r"^growth must be finite and at least 1, not 0\.5"),
    ({"tolerance": -1.0}, r"^tolerance must be finite and above 0, not -1\.0"),
])
def test_init_wrong_parameter(setting, message):
    with pytest.raises(Refusal, match=message):
        Admm(linear(), 8, **setting)
