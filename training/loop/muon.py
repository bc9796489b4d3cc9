"""Muon for block-circulant matrices: the step of a matrix made orthonormal, by its spectra."""
import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn, optim
from torch.optim.adam import adam

from circulant.training.blocks.blocks import BlockCirculant
from circulant.training.blocks.matrices import constraint_of, matrices, owner

__all__ = ["Muon", "orthonormal"]

MOMENTUM = 0.95

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""Coefficients of the odd polynomial a·x + b·x³ + c·x⁵ that, taken five times, brings singular values near 1 (Jordan
2024)."""

TURNS = 5

Layout = tuple[int, bool, bool]
"""Gates that are stacked, whether it is of a convolution's kernel, whether it holds first columns (groups, p, q, k)."""


class Muon(optim.Optimizer):
    """Muon (Jordan et al. 2024) for the matrices inside a network, and AdamW for all else.

    A step goes into the direction of about the orthonormal matrix nearest to the momentum of the gradients, its polar
    factor, so that it is no greater along the few directions that gradients agree on than along all others. Products
    of block-circulant matrices are block-circulant, and so is what Newton and Schulz's iteration makes of one, which
    is found at each frequency of the spectra (p, q): with k³ / (4 + 2k) times fewer multiplications than for the dense
    matrix, padded where its edges are ragged.

    The matrices are those with a block size above 1, and dense ones; but the weights of Linear layers and convolutions
    that are the first or the last module are AdamW's while they are dense. The entries of an orthonormal matrix have a
    root mean square of 1 / √max(rows, columns); √max times 0.2 of it is a step about as large as one of Adam at the
    same rate (Liu et al. 2025, "Muon is scalable for LLM training", eq. 4).

    Parameters:
        model: all of its parameters are trained.
        weight_decay: apart from the gradient.
    """

    def __init__(self, model: nn.Module, lr: float, weight_decay: float = 0.0) -> None:
        inner = list(_inner(model))
        known = {id(parameter) for parameter, _, _ in inner}
        rest = [parameter for parameter in model.parameters() if id(parameter) not in known]
        groups: list[dict[str, Any]] = [
            {"params": [parameter for parameter, _, _ in inner], "layouts": [layout for _, layout, _ in inner]},
            {"params": rest, "layouts": []}]
        super().__init__(groups, {"lr": lr, "weight_decay": weight_decay})
        for parameter, _, counts in inner:
            if counts is not None:
                self.state[parameter]["counts"] = counts

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change the parameters by their gradients; the loss where a closure gives it."""
        with torch.enable_grad():
            loss = None if closure is None else closure()
        turned, rest = self.param_groups
        for parameter, layout in zip(turned["params"], turned["layouts"], strict=True):
            if parameter.grad is not None:
                self._turn(parameter, layout, turned["lr"], turned["weight_decay"])
        self._adam([parameter for parameter in rest["params"] if parameter.grad is not None],
                   rest["lr"], rest["weight_decay"])
        return loss

    def _turn(self, weight: Tensor, layout: Layout, lr: float, weight_decay: float) -> None:
        state, gradient = self.state[weight], weight.grad
        assert gradient is not None
        if "momentum" not in state:
            state["momentum"] = torch.zeros_like(weight)
        momentum = state["momentum"].lerp_(gradient, 1 - MOMENTUM)
        blocks = _blocks(layout, gradient.lerp(momentum, MOMENTUM))
        _, p, q, k = blocks.shape
        turned = _unblocked(layout, orthonormal(blocks), weight)
        if "counts" in state:
            turned = turned * state["counts"]
        weight.mul_(1 - lr * weight_decay).sub_(turned, alpha=lr * 0.2 * math.sqrt(max(p, q) * k))

    def _adam(self, parameters: list[Tensor], lr: float, weight_decay: float) -> None:
        for parameter in parameters:
            if not (state := self.state[parameter]):
                state.update(step=torch.tensor(0.0), exp_avg=torch.zeros_like(parameter),
                             exp_avg_sq=torch.zeros_like(parameter))
        states = [self.state[parameter] for parameter in parameters]
        averages, squares, steps = ([state[name] for state in states] for name in ("exp_avg", "exp_avg_sq", "step"))
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        if parameters:
            adam(parameters, gradients, averages, exp_avg_sqs=squares, max_exp_avg_sqs=[], state_steps=steps,
                 decoupled_weight_decay=True, amsgrad=False,
                 beta1=0.9, beta2=0.999, lr=lr, weight_decay=weight_decay, eps=1e-8, maximize=False)


def orthonormal(first: Tensor) -> Tensor:
    """The result of Newton and Schulz's iteration on block-circulant matrices, by first columns (groups, p, q, k).

    That is about the nearest matrices with orthonormal rows, or columns where there are fewer of these: singular values
    become 0.67 to 1.21, but for those that were below 0.0015 of all together, and shrink with a matrix below 1e-7.
    With k = 1 the matrices are dense.
    """
    k = first.shape[-1]
    # The norm of the dense matrix, which has each entry of a first column k times.
    norm = first.float().square().sum((1, 2, 3), keepdim=True).mul(k).sqrt()
    whole = first.float() / norm.clamp(min=1e-7)
    spectra = (torch.fft.rfft(whole) if k > 1 else whole).permute(0, 3, 1, 2)
    tall = spectra.shape[-2] > spectra.shape[-1]
    x = (spectra.mH if tall else spectra).contiguous()
    a, b, c = COEFFICIENTS
    for _ in range(TURNS):
        square = x @ x.mH
        x = a * x + (b * square + c * (square @ square)) @ x
    turned = (x.mH if tall else x).permute(0, 2, 3, 1)
    return (torch.fft.irfft(turned, n=k) if k > 1 else turned).to(first.dtype)


def _inner(model: nn.Module) -> Iterator[tuple[nn.Parameter, Layout, Tensor | None]]:
    """The matrices that Muon changes, and where their edges are ragged, 1 for each entry that stands for any."""
    found = matrices(model)
    modules = list(dict.fromkeys(owner(name) for name in found))
    for name, matrix in found.items():
        constraint = constraint_of(matrix)
        outer = owner(name) in (modules[0], modules[-1]) and isinstance(
            matrix.module, nn.Linear | nn.Conv1d | nn.Conv2d)
        if outer and (constraint is None or constraint.block_size == 1):
            continue
        parameter = matrix.weight if constraint is None else matrix.first
        if isinstance(parameter, nn.Parameter):
            layout = (matrix.groups, bool(matrix.kernel), constraint is not None)
            yield parameter, layout, None if constraint is None else _standing(constraint, matrix.weight)


def _standing(constraint: BlockCirculant, weight: Tensor) -> Tensor | None:
    """1 for each entry of first columns that stands for entries of the matrix, 0 for padding; None without padding."""
    stands = BlockCirculant.right_inverse(constraint, torch.ones_like(weight))
    return None if stands.all() else stands


def _blocks(layout: Layout, x: Tensor) -> Tensor:
    """A tensor shaped as a parameter, as first columns (groups, p, q, k); a kernel's positions are side by side."""
    gates, kernel, circulant = layout
    if circulant:
        return x.transpose(0, 1).flatten(1, 2).unsqueeze(0) if kernel else x
    return x.flatten(1).view(gates, -1, x[0].numel(), 1)


def _unblocked(layout: Layout, blocks: Tensor, weight: Tensor) -> Tensor:
    """The way back from `_blocks`."""
    _, kernel, circulant = layout
    if circulant and kernel:
        positions, p, q, k = weight.shape
        return blocks.reshape(p, positions, q, k).transpose(0, 1)
    return blocks.reshape(weight.shape)
