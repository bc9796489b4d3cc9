"""Muon for block-circulant matrices: the update of a matrix made orthonormal, by its spectra."""
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn, optim

from circulant.training.matrices import constraint_of, matrices, owner

__all__ = ["Muon", "orthonormal"]

MOMENTUM = 0.95

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""Of the odd polynomial a·x + b·x³ + c·x⁵ that five times brings every singular value near 1 (Jordan 2024)."""

STEPS = 5


class _Inner(NamedTuple):
    """A parameter that is a matrix, or holds the first columns of one.

    Members:
        kernel: whether it is of a convolution, whose positions are side by side in one matrix then.
        circulant: whether it holds first columns (groups, p, q, k).
    """

    parameter: Tensor
    groups: int
    kernel: bool
    circulant: bool


class Muon(optim.Adam):
    """Muon (Jordan et al. 2024) for the matrices inside a network, and Adam for all else.

    A step goes into the direction of the orthonormal matrix nearest to the momentum of the gradients, its polar factor,
    so that it is no greater along the few directions that gradients agree on than along all others. The products of
    block-circulant matrices are block-circulant, and so is the polar factor of one: its spectra are the polar factors
    (p, q) of the spectra, at each frequency: k³ / (4 + 2k) times fewer multiplications than for the dense matrix.

    The matrices are those with a constraint, and dense ones of all modules but the first and the last. The entries of
    an orthonormal matrix have a root mean square of 1 / √max(rows, columns); √max times 0.2 of it is a step about as
    large as one of Adam at the same rate (Liu et al. 2025, "Muon is scalable for LLM training", eq. 4).

    Parameters:
        weight_decay: apart from the gradient, as that of AdamW.
    """

    def __init__(self, model: nn.Module, lr: float, weight_decay: float = 0.0) -> None:
        self._inner = list(_inner(model))
        super().__init__(model.parameters(), lr, weight_decay=weight_decay, decoupled_weight_decay=True)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change the parameters; the gradients of matrices are used up."""
        with torch.enable_grad():
            loss = None if closure is None else closure()
        group = self.param_groups[0]
        for matrix in self._inner:
            if matrix.parameter.grad is not None:
                self._turn(matrix, matrix.parameter.grad, group["lr"], group["weight_decay"])
                matrix.parameter.grad = None  # What is left is Adam's.
        super().step()
        return loss

    def _turn(self, matrix: _Inner, gradient: Tensor, lr: float, weight_decay: float) -> None:
        weight, state = matrix.parameter, self.state[matrix.parameter]
        if not state:
            state["step"], state["momentum"] = torch.tensor(0.0), torch.zeros_like(weight)
        state["step"] += 1
        momentum = state["momentum"].lerp_(gradient, 1 - MOMENTUM)
        blocks = _blocks(matrix, gradient.lerp(momentum, MOMENTUM))
        _, p, q, k = blocks.shape
        turned = _unblocked(matrix, orthonormal(blocks))
        weight.mul_(1 - lr * weight_decay).sub_(turned, alpha=lr * 0.2 * math.sqrt(max(p, q) * k))


def orthonormal(first: Tensor) -> Tensor:
    """About the first columns of the nearest block-circulant matrices with orthonormal rows, or columns if fewer.

    By Newton and Schulz's iteration on the spectra, after which singular values are between 0.67 and 1.21, but for
    those that were below 0.0015 of all of their frequency together, whose share is smaller.

    Parameters:
        first: (groups, p, q, k); k = 1 for dense matrices.
    """
    k = first.shape[-1]
    spectra = torch.fft.rfft(first.float()).permute(0, 3, 1, 2) if k > 1 else first.float().permute(0, 3, 1, 2)
    x = spectra if spectra.shape[-2] <= spectra.shape[-1] else spectra.mH
    x = (x / torch.linalg.matrix_norm(x, keepdim=True).clamp(min=1e-30)).contiguous()
    a, b, c = COEFFICIENTS
    for _ in range(STEPS):
        square = x @ x.mH
        x = a * x + (b * square + c * (square @ square)) @ x
    turned = (x if spectra.shape[-2] <= spectra.shape[-1] else x.mH).permute(0, 2, 3, 1)
    return (torch.fft.irfft(turned, n=k) if k > 1 else turned).to(first.dtype)


def _inner(model: nn.Module) -> Iterator[_Inner]:
    """The matrices that have a constraint, or stand in no module at an end of the model."""
    found = matrices(model)
    modules = list(dict.fromkeys(owner(name) for name in found))
    for name, matrix in found.items():
        if constraint_of(matrix) is not None:
            yield _Inner(matrix.first, matrix.groups, bool(matrix.kernel), True)
        elif isinstance(matrix.weight, nn.Parameter) and owner(name) not in (modules[0], modules[-1]):
            yield _Inner(matrix.weight, matrix.groups, bool(matrix.kernel), False)


def _blocks(matrix: _Inner, x: Tensor) -> Tensor:
    """A tensor of the shape of a parameter as first columns (groups, p, q, k) of matrices."""
    if matrix.circulant:
        return x.transpose(0, 1).flatten(1, 2).unsqueeze(0) if matrix.kernel else x
    if matrix.kernel:
        return x.flatten(1)[None, :, :, None]
    return x.reshape(matrix.groups, -1, x.shape[1], 1)


def _unblocked(matrix: _Inner, blocks: Tensor) -> Tensor:
    """The way back from `_blocks`."""
    shape = matrix.parameter.shape
    if matrix.circulant and matrix.kernel:
        return blocks.view(shape[1], shape[0], *shape[2:]).transpose(0, 1)
    return blocks.reshape(shape)
