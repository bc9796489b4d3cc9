"""Block sizes that are learned: each matrix has a path for every size, of which one is sampled at a time.

After ProxylessNAS (Cai, Zhu and Han, ICLR 2019): a gate g chooses the path j with the probability p_j = softmax(α)_j,
and ∂L/∂α_i = Σ_j ∂L/∂g_j · p_j (δ_ij - p_i). Here a path is a projection of the weight, Σ_j g_j Π_j(W), so that
∂L/∂g_j = ⟨∂L/∂(Σ g Π(W)), Π_j(W)⟩: one backward pass through the sampled path gives it for all, and the activations in
memory are those of one path. The paths share W, which learns to be good under all of them.
"""
import itertools
import math
from collections.abc import Mapping
from copy import deepcopy
from typing import Any, TypedDict

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from circulant.sim.refusal import Refusal
from circulant.training.blocks.blocks import BLOCK_SIZES, BlockCirculant, too_large
from circulant.training.blocks.clone import settle
from circulant.training.blocks.matrices import Matrix, matrices, owner, resolve

__all__ = ["Costs", "Paths", "cheapest", "numbers"]

Costs = Mapping[str, Mapping[int, float]]
"""The cost of each module's matrices by block size; a size that is missing is none of its paths."""

RATE = 0.02
"""Step of Adam on α: a path goes from even odds to near certainty within some 200 batches that agree on it."""

GROWTH = 0.02
"""Step of the multiplier of the bound at each batch."""

WARMUP = 0.25
"""Part of the batches in which every path is as likely as any other, and W alone learns."""


class _Path(nn.Module):
    """A weight as its sampled path has it, in evaluation as the likeliest one."""

    def __init__(self, sets: list[BlockCirculant]) -> None:
        super().__init__()
        self.sets = nn.ModuleList(sets)
        self.sampled = self.likeliest = 0
        self.gradient: Tensor | None = None

    def forward(self, weight: Tensor) -> Tensor:
        effective = self.project(weight, self.sampled if self.training else self.likeliest)
        if self.training and effective.requires_grad:
            effective.register_hook(self._keep)
        return effective

    def right_inverse(self, weight: Tensor) -> Tensor:
        return weight

    def project(self, weight: Tensor, at: int) -> Tensor:
        """A path of the weight."""
        chosen: Any = self.sets[at]
        found: Tensor = chosen.project(weight) if chosen.block_size > 1 else weight * 1
        return found

    def _keep(self, gradient: Tensor) -> None:
        self.gradient = gradient if self.gradient is None else self.gradient + gradient


class PathsState(TypedDict):
    """The state of a search besides the weights, as a checkpoint has it."""

    alpha: dict[str, Tensor]
    adam: dict[str, Any]
    multiplier: float
    done: int
    random: Tensor
    sampled: dict[str, int]


class Paths:
    """The paths of a model's matrices. The matrices of a module share an array, and therefore a block size.

    The expected cost Σ_m Σ_k p_mk · cost_mk is held to a bound by a multiplier that grows while it is above.

    Parameters:
        model: dense; its matrices are parametrized until `remove`.
        block_size: of the network whose cost is the bound; modules that it leaves dense have no paths.
        costs: see `Costs`; by default the numbers that the first columns hold, to which weight bits are proportional.
        share: of that cost, which is the bound.
        batches: in all.
        seed: of the sampling.

    Raises:
        Refusal: as `compress`; where no choice keeps the bound; where a module lacks the cost of its block size.
    """

    def __init__(self, model: nn.Module, block_size: int | Mapping[str, int], *, costs: Costs | None = None,
                 share: float = 1.0, batches: int = 1000, seed: int = 0) -> None:
        sizes = {name: k for name, k in resolve(model, block_size).items() if k > 1}
        found = matrices(model)
        for name in sizes:
            if parametrize.is_parametrized(found[name].module, found[name].tensor):
                raise Refusal(f"{name}: a search must start from a dense weight, but this one is parametrized; "
                              "decompress it")
        self._modules: dict[str, dict[str, Matrix]] = {}
        for name in sizes:
            self._modules.setdefault(owner(name), {})[name] = found[name]
        uniform = {module: max(sizes[name] for name in its) for module, its in self._modules.items()}
        table = numbers(model) if costs is None else costs
        self.costs = {module: _legal(its, table.get(module, {})) for module, its in self._modules.items()}
        if lacking := [module for module, k in uniform.items() if k not in self.costs[module]]:
            raise Refusal(f"A search must know the cost of the block size that sets its bound, but there is none for "
                          f"{', '.join(f'{module} with k = {uniform[module]}' for module in lacking)}")
        self.bound = share * sum(self.costs[module][k] for module, k in uniform.items())
        cheapest(self.costs, {}, self.bound)
        self._alpha = {module: torch.zeros(len(costs), dtype=torch.float64, requires_grad=True)
                       for module, costs in self.costs.items()}
        self._adam = torch.optim.Adam(self._alpha.values(), RATE, betas=(0.0, 0.999))
        self._multiplier, self._done, self._warmup = 0.0, 0, int(WARMUP * batches)
        self._random = torch.Generator().manual_seed(seed)
        self._paths: dict[str, list[_Path]] = {module: [] for module in self._modules}
        for module, its in self._modules.items():
            for matrix in its.values():
                path = _Path([matrix.constraint(k) for k in self.costs[module]])
                parametrize.register_parametrization(matrix.module, matrix.tensor, path)
                settle(matrix.module)
                self._paths[module].append(path)
        self._choose()

    def probabilities(self) -> dict[str, dict[int, float]]:
        """The probability of each path, by module."""
        return {module: dict(zip(self.costs[module], torch.softmax(alpha.detach(), 0).tolist(), strict=True))
                for module, alpha in self._alpha.items()}

    def expected(self) -> Tensor:
        """The expected cost, differentiable in α."""
        return sum((torch.softmax(alpha, 0) @ torch.tensor(list(self.costs[module].values()), dtype=torch.float64)
                    for module, alpha in self._alpha.items()), torch.zeros((), dtype=torch.float64))

    @property
    def table(self) -> dict[str, int]:
        """The block size of each module: the likeliest choice of all those within the bound."""
        return cheapest(self.costs, {module: {k: math.log(max(p, 1e-300)) for k, p in found.items()}
                                     for module, found in self.probabilities().items()}, self.bound)

    def update(self) -> None:
        """A step of α by the gradients that the last backward pass has left, and the next sample."""
        self._done += 1
        if self._done > self._warmup:
            over = self.expected() / self.bound - 1
            self._multiplier = max(0.0, self._multiplier + GROWTH * float(over.detach()))
            self._adam.zero_grad()
            (self._multiplier * over + self._gates()).backward()
            self._adam.step()
        self._choose()

    def remove(self) -> None:
        """Give the modules their dense weights back."""
        for its in self._modules.values():
            for matrix in its.values():
                parametrize.remove_parametrizations(matrix.module, matrix.tensor, leave_parametrized=False)

    def state_dict(self) -> PathsState:
        """All that the next batch depends on besides the weights."""
        return {"alpha": {module: alpha.detach().clone() for module, alpha in self._alpha.items()},
                "adam": deepcopy(self._adam.state_dict()), "multiplier": self._multiplier, "done": self._done,
                "random": self._random.get_state(),
                "sampled": {module: paths[0].sampled for module, paths in self._paths.items()}}

    def load_state_dict(self, state: PathsState) -> None:
        """Go on from a state."""
        with torch.no_grad():
            for module, alpha in self._alpha.items():
                alpha.copy_(state["alpha"][module])
        self._adam.load_state_dict(state["adam"])
        self._multiplier, self._done = state["multiplier"], state["done"]
        self._random.set_state(state["random"])
        self._settle(state["sampled"])

    def _gates(self) -> Tensor:
        """Σ_j ∂L/∂g_j · p_j, whose gradient in α is that of the loss."""
        total = torch.zeros((), dtype=torch.float64)
        for module, alpha in self._alpha.items():
            slopes = torch.zeros(len(alpha), dtype=torch.float64)
            for path, matrix in zip(self._paths[module], self._modules[module].values(), strict=True):
                if path.gradient is None:
                    continue
                with torch.no_grad():
                    weight = matrix.first.detach()  # Of the parametrization: W itself.
                    for at in range(len(alpha)):
                        slopes[at] += float((path.gradient * path.project(weight, at)).sum())
                path.gradient = None
            total = total + torch.softmax(alpha, 0) @ slopes
        return total

    def _choose(self) -> None:
        self._settle({module: int(torch.multinomial(torch.softmax(alpha.detach(), 0), 1, generator=self._random))
                      for module, alpha in self._alpha.items()})

    def _settle(self, sampled: Mapping[str, int]) -> None:
        for module, paths in self._paths.items():
            likeliest = int(self._alpha[module].argmax())
            for path in paths:
                path.sampled, path.likeliest, path.gradient = sampled[module], likeliest, None


def numbers(model: nn.Module) -> dict[str, dict[int, float]]:
    """For each module and block size the numbers that its first columns hold; larger sizes than fit are left out."""
    found: dict[str, dict[int, float]] = {}
    for name, matrix in matrices(model).items():
        for k in BLOCK_SIZES:
            if not too_large(k, matrix.rows, matrix.columns):
                its = found.setdefault(owner(name), {})
                its[k] = its.get(k, 0) + math.prod(matrix.constraint(k).shape)
    return found


def cheapest(costs: Costs, worth: Costs, bound: float) -> dict[str, int]:
    """The choice of the greatest total worth whose cost is within a bound; of equals the cheapest.

    Raises:
        Refusal: when there is none, with the least cost that can be had.
    """
    front: list[tuple[float, float, tuple[int, ...]]] = [(0.0, 0.0, ())]
    for module, sizes in costs.items():
        every = sorted((cost + sizes[k], loss - worth.get(module, {}).get(k, 0.0), (*chosen, k))
                       for (cost, loss, chosen), k in itertools.product(front, sizes))
        front, least = [], math.inf
        for entry in every:  # A choice that costs more has to be worth more.
            if entry[1] < least:
                front.append(entry)
                least = entry[1]
    legal = [entry for entry in front if entry[0] <= bound * (1 + 1e-9)]
    if not legal:
        least = sum(min(sizes.values()) for sizes in costs.values())
        raise Refusal(f"A search must have a limit that some block sizes keep, but all cost at least {least:,.0f}, "
                      f"and the limit is {bound:,.0f}; raise training.search_share or lower compression.block_size")
    return dict(zip(costs, min(legal, key=lambda entry: (entry[1], entry[0]))[2], strict=True))


def _legal(its: Mapping[str, Matrix], costs: Mapping[int, float]) -> dict[int, float]:
    """The costs of block sizes that all matrices of a module can have, smallest size first."""
    return {k: costs[k] for k in BLOCK_SIZES
            if k in costs and not any(too_large(k, each.rows, each.columns) for each in its.values())}
