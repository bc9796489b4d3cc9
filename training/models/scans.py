"""Layers over sequences whose gates know the input alone, so that all steps are computed at once, by a parallel scan.

A layer is made of ordinary modules around `Blend`, or is a `DiagonalRecurrence`: matrices are compressed, trained and
captured as those of any other.
"""
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn.functional import softplus

from circulant.sim.refusal import Refusal

__all__ = ["Blend", "ComplexRecurrence", "DiagonalRecurrence", "MinGru", "MinLstm", "scan"]


def scan(kept: Tensor, x: Tensor) -> Tensor:
    """The states h = kept · h + x (N, T, size) behind all steps, from 0 on.

    On a GPU, pairs of steps that lie 1, 2, 4, … apart are joined, ⌈log2 T⌉ times (Hillis and Steele 1986): unlike the
    sums of logarithms of arXiv 2410.01201, that takes values of both signs, and loses no digits in long sequences. A
    CPU goes step by step, with log2 T times fewer operations.

    Parameters:
        kept: (N, T, size) or what expands to it, of a magnitude up to 1; real, or complex as x is.
        x: (N, T, size).
    """
    found: Tensor = _Scan.apply(kept.expand_as(x), x)
    return found


class _Scan(Function):
    """See `scan`; its derivative is a scan from the last step to the first."""

    @staticmethod
    def forward(ctx: Any, kept: Tensor, x: Tensor) -> Tensor:
        states = _joined(kept, x)
        ctx.save_for_backward(kept, states)
        return states

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        kept, states = ctx.saved_tensors
        after = torch.cat((kept[:, 1:], torch.zeros_like(kept[:, :1])), 1).conj()
        dx = _joined(after.flip(1), grad.flip(1)).flip(1)
        before = torch.cat((torch.zeros_like(states[:, :1]), states[:, :-1]), 1)
        return dx * before.conj(), dx


def _joined(kept: Tensor, x: Tensor) -> Tensor:
    return (_pairs if x.is_cuda else _steps)(kept, x)


def _steps(kept: Tensor, x: Tensor) -> Tensor:
    states = [x[:, 0]]
    for factor, given in zip(kept.unbind(1)[1:], x.unbind(1)[1:], strict=True):
        states.append(torch.addcmul(given, factor, states[-1]))
    return torch.stack(states, 1)


def _pairs(kept: Tensor, x: Tensor) -> Tensor:
    reach = 1
    while reach < x.shape[1]:
        x = torch.cat((x[:, :reach], torch.addcmul(x[:, reach:], kept[:, reach:], x[:, :-reach])), 1)
        kept = torch.cat((kept[:, :reach], kept[:, reach:] * kept[:, :-reach]), 1)
        reach *= 2
    return x


class Blend(nn.Module):
    """h = h + z (x − h), value by value and from 0 on: z and x, (N, T, size), to h of the same shape."""

    def forward(self, z: Tensor, x: Tensor) -> Tensor:
        return scan(1 - z, z * x)


class MinGru(nn.Module):
    """minGRU (Feng et al. 2024, arXiv 2410.01201): h = h + z (n − h), z = σ(W_z x + b_z), n = W_n x + b_n.

    Called with (N, T, input_size), it gives the states (N, T, hidden_size).

    Members:
        linear: of z and n, stacked.
        scan: the `Blend`.
    """

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.linear, self.scan = nn.Linear(input_size, 2 * hidden_size), Blend()

    def forward(self, x: Tensor) -> Tensor:
        z, n = self.linear(x).chunk(2, -1)
        states: Tensor = self.scan(torch.sigmoid(z), n)
        return states


class MinLstm(nn.Module):
    """minLSTM (arXiv 2410.01201), whose gates are scaled to a sum of 1: h = f / (f + i) h + i / (f + i) n.

    With f = σ(−p) and i = σ(−q) the second factor is σ(softplus(p) − softplus(q)). Called as `MinGru`.

    Members:
        linear: of p, q and n, stacked.
        scan: the `Blend`.
    """

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.linear, self.scan = nn.Linear(input_size, 3 * hidden_size), Blend()

    def forward(self, x: Tensor) -> Tensor:
        p, q, n = self.linear(x).chunk(3, -1)
        states: Tensor = self.scan(torch.sigmoid(softplus(p) - softplus(q)), n)
        return states


class DiagonalRecurrence(nn.Module):
    """h = a h + g x, value by value and from 0 on: (N, T, size) to (N, T, size).

    The real part of an LRU (Orvieto et al. 2023, arXiv 2303.06349): a = exp(−exp(ν)) is below 1 whatever ν learns, and
    g begins as √(1 − a²), so that states have the variance of white inputs.

    Parameters:
        least, most: a is drawn from between these, its square evenly.

    Members:
        nu_log, gamma_log: (size,), the ν above and log g.

    Raises:
        Refusal: when they are not from 0 to below 1, in this order.
    """

    def __init__(self, size: int, *, least: float = 0.5, most: float = 0.99) -> None:
        if not 0 < least < most < 1:
            raise Refusal(f"The factors of a DiagonalRecurrence must lie between least and most, both between 0 and 1, "
                          f"not {least!r} and {most!r}; choose others")
        super().__init__()
        square = least ** 2 + (most ** 2 - least ** 2) * torch.rand(size)
        self.nu_log = nn.Parameter(torch.log(-0.5 * torch.log(square)))
        self.gamma_log = nn.Parameter(0.5 * torch.log1p(-square))

    @property
    def factors(self) -> Tensor:
        """a, (size,)."""
        return torch.exp(-torch.exp(self.nu_log))

    def forward(self, x: Tensor) -> Tensor:
        return scan(self.factors, torch.exp(self.gamma_log) * x)

    def extra_repr(self) -> str:
        return str(len(self.nu_log))


class ComplexRecurrence(DiagonalRecurrence):
    """h = λ h + g x of numbers whose real and imaginary parts come in turn: (N, T, size) to (N, T, size).

    An LRU with a Linear before it and one behind it: λ = exp(−exp(ν) + iθ), |λ| as a of a `DiagonalRecurrence`.

    Parameters:
        size: an even number.
        phase: θ is drawn from 0 to this, in radians.

    Members:
        nu_log, gamma_log: (size / 2,), as of a `DiagonalRecurrence`.
        theta: (size / 2,).

    Raises:
        Refusal: as `DiagonalRecurrence`, and when the size is odd.
    """

    def __init__(self, size: int, *, least: float = 0.5, most: float = 0.99, phase: float = 0.6) -> None:
        if size % 2:
            raise Refusal(f"A ComplexRecurrence must have an even size, real and imaginary parts, not {size!r}; "
                          "choose another")
        super().__init__(size // 2, least=least, most=most)
        self.theta = nn.Parameter(phase * torch.rand(size // 2))

    def forward(self, x: Tensor) -> Tensor:
        given = torch.view_as_complex((x.unflatten(-1, (-1, 2)) * torch.exp(self.gamma_log)[:, None]).contiguous())
        states: Tensor = torch.view_as_real(scan(torch.polar(self.factors, self.theta), given)).flatten(-2)
        return states
