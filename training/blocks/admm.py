"""ADMM: training of dense weights towards the block-circulant set (E-RNN, section 4; Boyd et al. 2011, section 3.1.1).

Minimise f(W) subject to W_l in S_l, in turns: (1) train f + Σ ρ_l/2 ‖W_l - Z_l + U_l‖²; (2) Z_l = Π(W_l + U_l);
(3) U_l += W_l - Z_l. It works on the dense weights of ordinary modules, so an epoch costs what a dense epoch costs.
"""
import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypedDict

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from circulant.sim.arith.weight_grid import WeightGrid
from circulant.sim.refusal import Refusal, nearest
from circulant.sim.settings import choices
from circulant.training.blocks.constraint import matrices, resolve
from circulant.training.blocks.quantized_set import quantized_set_of
from circulant.training.settings.training import TrainingSettings

__all__ = ["SCHEDULES", "Admm", "Residuals", "penalties"]

SCHEDULES = choices(TrainingSettings, "rho_schedule")

APART = 10.0
"""The residuals of a matrix are out of balance when they differ by this factor (Boyd et al. 2011, eq. 3.13)."""


BALANCING = 1.1
"""Factor of ρ at an update where it balances the residuals, and no other is given."""


class Residuals(NamedTuple):
    """How far one matrix is from convergence: primal ‖W - Z‖ / ‖W‖ and dual ‖Z - Z_before‖ / ‖Z‖."""

    primal: float
    dual: float


class AdmmState(TypedDict):
    """Z, U, ρ and the last residuals of each matrix, as a checkpoint has them."""

    rho: dict[str, float]
    residuals: dict[str, tuple[float, float]]
    z: dict[str, Tensor]
    u: dict[str, Tensor]


class Admm:
    """The state of ADMM over the matrices of a model: Z = Π(W) and U = 0 at first.

    Parameters:
        model: a model with dense weights; it is trained elsewhere,
        with `add_penalty_gradient` between its gradients and the step.
        block_size: as for `compress`; matrices of block size 1 are not constrained.
        rho: ρ of all matrices, or by module or parameter name (the longer name wins) for each that is constrained.
        schedule: what happens to ρ at each update: "geometric" (it grows), "constant", or "balance" (it grows where the
            primal residual is ten times the dual one and falls in the opposite case, each relative to its own variable:
            Boyd et al. 2011, section 3.4.1, as Wohlberg 2017 normalises it). U is rescaled, so that the multipliers ρU
            stay as they are.
        growth: the factor; 0 takes ρ to ``rho_max`` with the last of ``updates``, each matrix by a factor of its own,
            or is 1.1 where ρ balances.
        updates: that there will be at most.
        rho_max: ρ grows no further.
        tolerance: `converged` when both residuals of every matrix are below it.
        forms: by parameter name the grid of whose integers a matrix shall be besides, see `QuantizedSet`; it is then
            constrained also with block size 1.

    Members:
        rho: by parameter name.
        z, u: by parameter name, of the shape of the weight.
        residuals: of the last update, by parameter name; empty before the first.

    Raises:
        Refusal: as `compress` does, when a matrix is parametrized already, or a parameter is out of its range.
    """

    def __init__(self, model: nn.Module, block_size: int | Mapping[str, int], *,
                 rho: float | Mapping[str, float] = 1e-3, schedule: str = "geometric", growth: float = 1.0,
                 rho_max: float = math.inf, tolerance: float = 1e-3, updates: int = 0,
                 forms: Mapping[str, WeightGrid] | None = None) -> None:
        for name, value, least in (("growth", growth or 1.0, 1.0), ("tolerance", tolerance, 0.0)):
            _require(name, value, least)
        if schedule not in SCHEDULES:
            raise Refusal(f"schedule must be one of {', '.join(map(repr, SCHEDULES))}, not {schedule!r}"
                          f"{nearest(str(schedule), SCHEDULES)}")
        found, forms = matrices(model), forms or {}
        sizes = {name: k for name, k in resolve(model, block_size).items() if k > 1 or name in forms}
        for name in sizes:
            if parametrize.is_parametrized(found[name].module, found[name].tensor):
                raise Refusal(f"{name}: ADMM must work on a dense weight, but this one is parametrized; decompress it")
        self._matrices = {name: found[name] for name in sizes}
        self._sets = {name: quantized_set_of(found[name], k,
                                             forms[name]) if name in forms else found[name].constraint(k)
                      for name, k in sizes.items()}
        self.rho = penalties(rho, sizes)
        self.schedule, self.rho_max, self.tolerance = schedule, rho_max, tolerance
        self.growth = {name: growth or self._towards_end(each, updates) for name, each in self.rho.items()}
        self.residuals: dict[str, Residuals] = {}
        with torch.no_grad():
            self.z = {name: self._sets[name].project(matrix.weight) for name, matrix in self._matrices.items()}
            self.u = {name: torch.zeros_like(z) for name, z in self.z.items()}
        self._shift()

    def penalty(self) -> Tensor:
        """Σ ρ/2 ‖W - Z + U‖², differentiable in W."""
        distances = {name: matrix.weight - self.z[name] + self.u[name] for name, matrix in self._matrices.items()}
        return sum((self.rho[name] / 2 * distance.square().sum() for name, distance in distances.items()),
                   torch.zeros(()))

    @torch.no_grad()
    def add_penalty_gradient(self) -> None:
        """Add the gradient of the penalty, ρ(W - Z + U), to that of each weight.

        Two passes over the weights, where autograd would keep and traverse a graph of the whole distance.
        """
        for name, matrix in self._matrices.items():
            weight, rho = matrix.weight, self.rho[name]
            if weight.grad is None:
                weight.grad = torch.zeros_like(weight)
            weight.grad.add_(weight, alpha=rho).add_(self._offset[name], alpha=rho)

    @torch.no_grad()
    def update(self) -> dict[str, Residuals]:
        """Steps (2) and (3), then ρ follows its schedule; the residuals of each matrix."""
        for name, matrix in self._matrices.items():
            w, before = matrix.weight, self.z[name]
            z = self._sets[name].project(w + self.u[name])
            self.residuals[name] = Residuals(_ratio(w - z, w), _ratio(z - before, z))
            u = self.u[name] + w - z
            rho = self._next(name, self.residuals[name].primal, _ratio(z - before, u))
            self.u[name], self.z[name], self.rho[name] = u * (self.rho[name] / rho), z, rho
        self._shift()
        return dict(self.residuals)

    @property
    def worst(self) -> Residuals:
        """The greatest primal and the greatest dual residual of the last update, zero where nothing is constrained."""
        return Residuals(*(max((r[i] for r in self.residuals.values()), default=0.0) for i in (0, 1)))

    @property
    def converged(self) -> bool:
        """Whether the last update left both residuals of every matrix below the tolerance."""
        return bool(self.residuals) and max(self.worst) < self.tolerance

    def state_dict(self) -> AdmmState:
        """Z, U, ρ and the last residuals, to continue with from the same weights."""
        return {"rho": dict(self.rho),
                "residuals": {name: (each.primal, each.dual) for name, each in self.residuals.items()},
                "z": {name: z.clone() for name, z in self.z.items()},
                "u": {name: u.clone() for name, u in self.u.items()}}

    def load_state_dict(self, state: AdmmState) -> None:
        """Continue from a state.

        Raises:
            Refusal: when it is of other matrices.
        """
        for its, mine in ((state["z"], self.z), (state["u"], self.u)):
            given, wanted = ({name: tuple(t.shape) for name, t in side.items()} for side in (its, mine))
            if given != wanted:
                raise Refusal(f"The state of ADMM must hold the matrices {wanted}, not {given}; "
                              "give that of this model")
        self.rho = {name: float(state["rho"][name]) for name in self.z}
        self.z = {name: state["z"][name].to(z, copy=True) for name, z in self.z.items()}
        self.u = {name: state["u"][name].to(u, copy=True) for name, u in self.u.items()}
        self.residuals = {name: Residuals(*pair) for name, pair in state["residuals"].items()}
        self._shift()

    def _shift(self) -> None:
        self._offset = {name: self.u[name] - z for name, z in self.z.items()}

    def _towards_end(self, rho: float, updates: int) -> float:
        """The factor that takes ρ to its greatest value in the last epoch, before which there is one update less."""
        if self.schedule == "balance" or updates < 2 or not rho < self.rho_max < math.inf:
            return BALANCING if self.schedule == "balance" else 1.0
        return float((self.rho_max / rho) ** (1 / (updates - 1)))

    def _next(self, name: str, primal: float, dual: float) -> float:
        rho = self.rho[name]
        higher = min(rho * self.growth[name], max(self.rho_max, rho))
        if self.schedule == "balance":
            return higher if primal > APART * dual else rho / self.growth[name] if dual > APART * primal else rho
        return higher if self.schedule == "geometric" else rho


def _require(name: str, value: float, least: float) -> None:
    if not value >= least or value == 0 or value == math.inf:
        rule = f"at least {least:g}" if least else "above 0"
        raise Refusal(f"{name} must be finite and {rule}, not {value!r}; choose another value")


def penalties(rho: float | Mapping[str, float], names: Iterable[str]) -> dict[str, float]:
    """ρ of each constrained matrix; a name that is given may be that of a module around it.

    Raises:
        Refusal: when a value is out of range, a matrix has none, or a name is none of them.
    """
    names = list(names)
    if not isinstance(rho, Mapping):
        _require("rho", rho, 0.0)
        return dict.fromkeys(names, float(rho))
    chosen, used = {}, set()
    for name in names:
        if matching := [given for given in rho if given == name or name.startswith(f"{given}.")]:
            used.update(matching)
            _require(f"rho of {name}", rho[max(matching, key=len)], 0.0)
            chosen[name] = float(rho[max(matching, key=len)])
    if missing := [name for name in names if name not in chosen]:
        raise Refusal(f"rho must be given for every constrained matrix, but not for {', '.join(missing)}; add it")
    if unused := [given for given in rho if given not in used]:
        raise Refusal(f"rho must be given to constrained matrices, not to {unused[0]!r}{nearest(unused[0], names)}; "
                      f"there are {', '.join(names) or 'none'}")
    return chosen


def _ratio(part: Tensor, whole: Tensor) -> float:
    return float(part.norm() / whole.norm().clamp(min=torch.finfo(whole.dtype).tiny))
