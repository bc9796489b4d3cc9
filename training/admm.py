"""ADMM: training of dense weights towards the block-circulant set (E-RNN, section 4; Boyd et al. 2011, section 3.1.1).

Minimise f(W) subject to W_l in S_l, in turns: (1) train f + Σ ρ_l/2 ‖W_l - Z_l + U_l‖²; (2) Z_l = Π(W_l + U_l);
(3) U_l += W_l - Z_l. It works on the dense weights of ordinary modules, so an epoch costs what a dense epoch costs.
"""
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from circulant.sim.refusal import Refusal
from circulant.training.constraint import matrices, resolve

__all__ = ["Admm", "Residuals"]


class Residuals(NamedTuple):
    """How far one matrix is from convergence: primal ‖W - Z‖ / ‖W‖ and dual ‖Z - Z_before‖ / ‖Z‖."""

    primal: float
    dual: float


class Admm:
    """The state of ADMM over the matrices of a model: Z = Π(W) and U = 0 at first.

    Parameters:
        model: a model with dense weights; it is trained elsewhere, with `penalty` added to its loss.
        block_size: as for `compress`; matrices of block size 1 are not constrained.
        rho: ρ of all matrices.
        growth: factor of ρ at each update; U is divided by it, so that the multipliers ρU stay as they are.
        rho_max: ρ grows no further.
        tolerance: `converged` when both residuals of every matrix are below it.

    Members:
        z, u: by parameter name, of the shape of the weight.
        residuals: of the last update, by parameter name; empty before the first.

    Raises:
        Refusal: as `compress` does, when a matrix is parametrized already, or a parameter is out of its range.
    """

    def __init__(self, model: nn.Module, block_size: int | Mapping[str, int], *, rho: float = 1e-3, growth: float = 1.0,
                 rho_max: float = float("inf"), tolerance: float = 1e-3) -> None:
        for name, value, least in (("rho", rho, 0.0), ("growth", growth, 1.0), ("tolerance", tolerance, 0.0)):
            if not value >= least or value == 0 or value == float("inf"):
                rule = f"at least {least:g}" if least else "above 0"
                raise Refusal(f"{name} must be finite and {rule}, not {value!r}; choose another value")
        found = matrices(model)
        sizes = {name: k for name, k in resolve(model, block_size).items() if k > 1}
        for name in sizes:
            if parametrize.is_parametrized(found[name].module, found[name].tensor):
                raise Refusal(f"{name}: ADMM must work on a dense weight, but this one is parametrized; decompress it")
        self._matrices = {name: found[name] for name in sizes}
        self._sets = {name: found[name].constraint(k) for name, k in sizes.items()}
        self.rho, self.growth, self.rho_max, self.tolerance = rho, growth, rho_max, tolerance
        self.residuals: dict[str, Residuals] = {}
        with torch.no_grad():
            self.z = {name: self._sets[name].project(matrix.weight) for name, matrix in self._matrices.items()}
            self.u = {name: torch.zeros_like(z) for name, z in self.z.items()}

    def penalty(self) -> Tensor:
        """Σ ρ/2 ‖W - Z + U‖², differentiable in W."""
        distances = [matrix.weight - self.z[name] + self.u[name] for name, matrix in self._matrices.items()]
        return self.rho / 2 * sum((distance.square().sum() for distance in distances), torch.zeros(()))

    @torch.no_grad()
    def update(self) -> dict[str, Residuals]:
        """Steps (2) and (3), then ρ grows; the residuals of each matrix."""
        rho = min(self.rho * self.growth, max(self.rho_max, self.rho))
        for name, matrix in self._matrices.items():
            w, before = matrix.weight, self.z[name]
            z = self._sets[name].project(w + self.u[name])
            self.residuals[name] = Residuals(_ratio(w - z, w), _ratio(z - before, z))
            self.u[name] = (self.u[name] + w - z) * (self.rho / rho)
            self.z[name] = z
        self.rho = rho
        return dict(self.residuals)

    @property
    def worst(self) -> Residuals:
        """The greatest primal and the greatest dual residual of the last update, zero where nothing is constrained."""
        return Residuals(*(max((r[i] for r in self.residuals.values()), default=0.0) for i in (0, 1)))

    @property
    def converged(self) -> bool:
        """Whether the last update left both residuals of every matrix below the tolerance."""
        return bool(self.residuals) and max(self.worst) < self.tolerance

    def state_dict(self) -> dict[str, Any]:
        """Z, U and ρ, to continue with from the same weights."""
        return {"rho": self.rho, "z": {name: z.clone() for name, z in self.z.items()},
                "u": {name: u.clone() for name, u in self.u.items()}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state.

        Raises:
            Refusal: when it is of other matrices.
        """
        for part, mine in (("z", self.z), ("u", self.u)):
            given, wanted = ({name: tuple(t.shape) for name, t in side.items()} for side in (state[part], mine))
            if given != wanted:
                raise Refusal(f"The state of ADMM must hold the matrices {wanted}, not {given}; "
                              "give that of this model")
        self.rho = float(state["rho"])
        self.z = {name: state["z"][name].to(z) for name, z in self.z.items()}
        self.u = {name: state["u"][name].to(u) for name, u in self.u.items()}
        self.residuals = {}


def _ratio(part: Tensor, whole: Tensor) -> float:
    return float(part.norm() / whole.norm().clamp(min=torch.finfo(whole.dtype).tiny))
