"""Sensitivity of a network's outputs to wrong bits in the spectra of its weights, as a penalty of training."""
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from circulant.sim.refusal import Refusal
from circulant.training.blocks.matrices import constraint_of, matrices
from circulant.training.blocks.quantized_set import QuantizedSet

__all__ = ["Sensitivity", "refused"]


class Sensitivity:
    """The sum of squares that wrong bits of the weights add to a network's outputs, its mean to first order.

    p · Σₛ Δₛ² · (4ᵇ - 1) / 3 · Σᵢ (∂yᵢ/∂s)² over all stored numbers s of the spectra, of b bits and the step Δ, and all
    outputs y of a batch: where each bit is flipped with the probability p, a number is off by p · Δ² · (4ᵇ - 1) / 3 in
    the mean square. The sum over the outputs is estimated from one derivative, of their sum with random signs
    (Hutchinson 1990). AxTrain (He, Ke et al., ISLPED 2018) actively searches for weights to which a network is
    insensitive, beside its noise in the forward pass. Its formula could not be read: the squares, their weights and the
    estimate are ours.

    Parameters:
        model: of `constrain_to_quantized`.
        rate: p.
    """

    def __init__(self, model: nn.Module, rate: float) -> None:
        sets = [(matrix.first, known) for matrix in matrices(model).values()
                if isinstance(known := constraint_of(matrix), QuantizedSet)]
        self._rate, self._first = rate, [first for first, _ in sets]
        self._power = [_power(known, first) for first, known in sets]

    def __call__(self, outputs: Tensor) -> Tensor:
        """The estimate of a batch, which can be differentiated where all layers can be twice; see `refused`."""
        signs = 2.0 * torch.randint(0, 2, outputs.shape, device=outputs.device) - 1
        signs.requires_grad_()  # So that a layer that can be differentiated once alone raises an error behind it.
        slopes = torch.autograd.grad((signs * outputs).sum(), self._first, create_graph=True)
        bins = [torch.fft.rfft(slope) for slope in slopes]
        return self._rate * torch.stack([(power * (each.real.square() + each.imag.square())).sum()
                                         for power, each in zip(self._power, bins, strict=True)]).sum()


@contextmanager
def refused() -> Iterator[None]:
    """Training steps with the penalty.

    Raises:
        Refusal: when a layer cannot be differentiated twice.
    """
    try:
        with torch.backends.cudnn.flags(enabled=False):  # Its recurrent layers cannot.
            yield
    except RuntimeError as error:
        if "differentiate twice" not in str(error) and "derivative for" not in str(error):
            raise
        raise Refusal("A fine-tuning with a penalty on sensitivity needs layers that can be differentiated twice, but "
                      f"one cannot ({str(error).splitlines()[0]}); use layers of torch, or leave "
                      "quantization.finetune_sensitivity out") from None


def _power(known: QuantizedSet, first: Tensor) -> Tensor:
    """The square of a stored number's error by flips of all its bits, times that of its slope in parts of the slopes'.

    The slope of a real or imaginary part that is stored is 2/k times that part of the transform of the slopes of a
    first column; of the bins 0 and k/2, which are real, 1/k times.
    """
    k, form, shifts = first.shape[-1], known.grid.form, known.grid.row_shifts
    scale = torch.full((k // 2 + 1,), 2.0 / k)
    scale[0] = scale[-1] = 1.0 / k
    rows = torch.exp2(-torch.tensor(shifts).float()).view(-1, first.shape[1], 1, 1) if shifts else torch.ones(())
    return (scale * rows * form.step).square().to(first) * ((4 ** form.width - 1) / 3)
