"""The loops over the steps of our recurrent layers, with derivatives by hand (backpropagation through time).

Autograd would record ten operations for each step and add up a gradient of every matrix at each. Here a step saves its
gates alone, and the gradient of a matrix is one product over all steps together.
"""
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import Function, once_differentiable

__all__ = ["GruSteps", "LstmSteps"]


class LstmSteps(Function):
    """The steps of an LSTM with optional peepholes and projection; the equations stand in `sim.kinds.lstm`."""

    @staticmethod
    def forward(ctx: Any, driven: Tensor, y0: Tensor, c0: Tensor, weight: Tensor, projection: Tensor | None,
                peephole: Tensor | None) -> tuple[Tensor, Tensor]:
        """Outputs (T, N, outputs) and the last cell (N, hidden).

        Parameters:
            driven: the input's part of the gates i, f, g, o with the bias, (T, N, 4 · hidden).
            y0, c0: (N, outputs) and (N, hidden).
            weight: (4 · hidden, outputs).
            projection: (outputs, hidden).
            peephole: (3, hidden), of i, f, o.
        """
        steps, n, hidden = driven.shape[0], driven.shape[1], c0.shape[1]
        gates = torch.empty_like(driven, memory_format=torch.contiguous_format)
        cells = driven.new_empty(steps + 1, n, hidden)
        squashed, ms = driven.new_empty(2, steps, n, hidden)
        ys = driven.new_empty(steps + 1, n, y0.shape[1]) if projection is not None else None
        before, after = _held(weight.t()), None if projection is None else _held(projection.t())
        cells[0] = c0
        y = y0
        if ys is not None:
            ys[0] = y0
        for t in range(steps):
            a = _added(driven[t], y, before, gates[t])
            i, f, g, o = a.view(n, 4, hidden).unbind(1)
            c = cells[t]
            if peephole is not None:
                a.view(n, 4, hidden)[:, :2].addcmul_(c[:, None], peephole[:2])
            a[:, :2 * hidden].sigmoid_()
            g.tanh_()
            new = torch.mul(f, c, out=cells[t + 1]).addcmul_(i, g)
            if peephole is not None:
                o.addcmul_(new, peephole[2])
            o.sigmoid_()
            y = torch.mul(o, torch.tanh(new, out=squashed[t]), out=ms[t])
            if after is not None and ys is not None:
                y = ys[t + 1].copy_(_times(y, after))
        ctx.save_for_backward(y0, weight, projection, peephole, gates, cells, squashed, ms, ys)
        ctx.set_materialize_grads(False)
        return (ms if ys is None else ys[1:]), cells[steps].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor | None, dc: Tensor | None) -> tuple[Tensor | None, ...]:
        y0, weight, projection, peephole, gates, cells, squashed, ms, ys = ctx.saved_tensors
        steps, n, hidden = ms.shape
        i, f, g, o = gates.view(steps, n, 4, hidden).unbind(2)
        one = torch.ones((), dtype=gates.dtype, device=gates.device)
        # What multiplies dc or dm to give the gradient of each pre-activation, for all steps at once.
        slope = torch.stack([g * i * (one - i), cells[:-1] * f * (one - f), i * (one - g * g),
                             squashed * o * (one - o)], 2)
        through = o * (one - squashed * squashed)
        da = torch.empty_like(gates)
        projected = None if projection is None else gates.new_empty(steps, n, y0.shape[1])
        dy = torch.zeros_like(y0)
        dc = torch.zeros_like(cells[0]) if dc is None else dc.clone()
        held, after = _held(weight), None if projection is None else _held(projection)
        for t in reversed(range(steps)):
            dy = dy if grad is None else dy + grad[t]
            if projected is not None:
                projected[t] = dy
            dm = dy if after is None else _times(dy, after)
            step = da[t].view(n, 4, hidden)
            torch.mul(dm, slope[t, :, 3], out=step[:, 3])
            dc.addcmul_(dm, through[t])
            if peephole is not None:
                dc.addcmul_(step[:, 3], peephole[2])
            torch.mul(dc[:, None], slope[t, :, :3], out=step[:, :3])
            dc.mul_(f[t])
            if peephole is not None:
                dc.addcmul_(step[:, 0], peephole[0]).addcmul_(step[:, 1], peephole[1])
            dy = _times(da[t], held)
        outputs = ms if ys is None else ys[1:]
        dweight = torch.cat([y0[None], outputs[:-1]]).flatten(0, 1)
        dweight = _times(da.flatten(0, 1).t(), _held(dweight))
        dprojection = None if projected is None else _times(projected.flatten(0, 1).t(), _held(ms.flatten(0, 1)))
        dpeephole = None
        if peephole is not None:
            parts = da.view(steps, n, 4, hidden)
            dpeephole = torch.stack([(parts[:, :, gate] * seen).sum((0, 1)) for gate, seen in (
                (0, cells[:-1]), (1, cells[:-1]), (3, cells[1:]))])
        return da, dy, dc, dweight, dprojection, dpeephole


class GruSteps(Function):
    """The steps of a GRU with the reset gate before the matrix."""

    @staticmethod
    def forward(ctx: Any, driven: Tensor, h0: Tensor, weight: Tensor) -> Tensor:
        """States (T, N, hidden).

        Parameters:
            driven: the input's part of the gates r, z, n with the bias, (T, N, 3 · hidden).
            h0: (N, hidden).
            weight: (3 · hidden, hidden).
        """
        steps, n, hidden = driven.shape[0], *h0.shape
        gates = torch.empty_like(driven, memory_format=torch.contiguous_format)
        states = driven.new_empty(steps + 1, n, hidden)
        kept = driven.new_empty(steps, n, hidden)
        two, last = _held(weight[:2 * hidden].t()), _held(weight[2 * hidden:].t())
        states[0] = h0
        for t in range(steps):
            h = states[t]
            rz = _added(driven[t, :, :2 * hidden], h, two, gates[t, :, :2 * hidden]).sigmoid_()
            torch.mul(rz[:, :hidden], h, out=kept[t])
            n_ = _added(driven[t, :, 2 * hidden:], kept[t], last, gates[t, :, 2 * hidden:]).tanh_()
            torch.lerp(n_, h, rz[:, hidden:], out=states[t + 1])
        ctx.save_for_backward(weight, gates, states, kept)
        return states[1:]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        weight, gates, states, kept = ctx.saved_tensors
        steps, n, hidden = kept.shape
        r, z, new = gates.view(steps, n, 3, hidden).unbind(2)
        before = states[:-1]
        slope_r, slope_z = before * r * (1 - r), (before - new) * z * (1 - z)
        slope_n = (1 - z) * (1 - new * new)
        two, last = _held(weight[:2 * hidden]), _held(weight[2 * hidden:])
        da = torch.empty_like(gates)
        dh = torch.zeros_like(states[0])
        for t in reversed(range(steps)):
            dh = dh + grad[t]
            step = da[t]
            dkept = _times(torch.mul(dh, slope_n[t], out=step[:, 2 * hidden:]), last)
            torch.mul(dkept, slope_r[t], out=step[:, :hidden])
            torch.mul(dh, slope_z[t], out=step[:, hidden:2 * hidden])
            dh = _added(dh.mul_(z[t]).addcmul_(dkept, r[t]), step[:, :2 * hidden], two)
        flat = da.flatten(0, 1)
        dweight = torch.cat([_times(flat[:, :2 * hidden].t(), _held(before.flatten(0, 1))),
                             _times(flat[:, 2 * hidden:].t(), _held(kept.flatten(0, 1)))])
        return da, dh, dweight


def _held(factor: Tensor) -> Tensor:
    """The right factor of products over the steps, in the type that these have: see `place.Precision.products`.

    In bfloat16 both factors and the product are rounded to it, the state and what is added to the product are not. A
    processor without AVX-512 would take twenty times as long for that as for float32.
    """
    rounds = (torch.get_float32_matmul_precision() == "medium" and factor.device.type == "cpu"
              and factor.dtype == torch.float32 and torch.backends.cpu.get_cpu_capability().startswith("AVX512"))
    return factor.to(torch.bfloat16 if rounds else factor.dtype).contiguous()


def _times(x: Tensor, factor: Tensor) -> Tensor:
    return (x.to(factor.dtype) @ factor).to(x.dtype)


def _added(to: Tensor, x: Tensor, factor: Tensor, out: Tensor | None = None) -> Tensor:
    """``to`` + x · factor."""
    if x.dtype == factor.dtype:
        return torch.addmm(to, x, factor, out=out)
    return torch.add(to, x.to(factor.dtype) @ factor, out=out)
