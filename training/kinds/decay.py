"""States that decay and turn: recurrences whose matrix is diagonal, of real numbers or of complex ones."""
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from circulant.sim.kinds.decay import FloatDecay
from circulant.sim.kinds.spiral import FloatSpiral
from circulant.training.kinds.blend import check_steps
from circulant.training.kinds.scale import Scale
from circulant.training.models.scans import ComplexRecurrence, DiagonalRecurrence
from circulant.training.neutral import Builder, Call, Node, Stream, Value, lowered, of_torch
from circulant.training.neutral.streams import as_numpy

__all__ = ["Decay"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Decay(Node):
    """The states a h + x behind each step: see `circulant.sim.kinds.decay.FloatDecay`, with turns
    `circulant.sim.kinds.spiral.FloatSpiral`."""

    factors: Tensor
    turns: Tensor | None = None
    stepwise: ClassVar[bool] = True


@of_torch(DiagonalRecurrence, ComplexRecurrence)
def _captured(call: Call) -> Value:
    source, module = call.tensor, call.module
    gain, factors, turns = module.gamma_log.detach().double().exp(), module.factors.detach(), None
    if isinstance(module, ComplexRecurrence):
        number = torch.polar(factors.double(), module.theta.detach().double())
        gain, factors, turns = gain.repeat_interleave(2), number.real, number.imag
    check_steps(source)
    given = call.emit(Scale, (source,), 0, part="input", scale=gain, shift=torch.zeros_like(gain), axis=2)
    return call.emit(Decay, (given,), 0, factors=factors, turns=turns)


@lowered.register
def _(node: Decay, to: Builder) -> Stream:
    source, factors = to.taken(node, sequence=True), as_numpy(node.factors)
    turns = None if node.turns is None else as_numpy(node.turns)
    return to.give(node.name, "decay", source, lambda name, flow: FloatDecay(name, flow.size, factors) if turns is None
                   else FloatSpiral(name, flow.size, factors, turns), source.form)
