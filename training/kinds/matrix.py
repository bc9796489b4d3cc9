"""Layers with a matrix: what linear layers and convolutions share."""
from dataclasses import dataclass
from typing import Any, ClassVar, TypedDict

from torch import Tensor

from circulant.sim.arith.fixed import Format
from circulant.training.blocks import matrices
from circulant.training.blocks.blocks import BlockCirculant
from circulant.training.models.quantizer import grids_of
from circulant.training.neutral import Node

__all__ = ["Matrix", "bias_of", "grid_of", "weights_of"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Matrix(Node):
    """A matrix of first columns, and a bias. A scale behind it can be part of its rows.

    Parameters:
        first: first columns (positions, p, q, k).
        grid: the format on which the weights lie, where a quantizer says one.

    Members:
        features: the axis of its rows.
    """

    first: Tensor
    constraint: BlockCirculant
    bias: Tensor
    grid: Format | None = None
    relu: bool = False
    features: ClassVar[int] = 1


class Weights(TypedDict):
    """First columns of a Linear or a convolution, their constraint, the bias and the grid of the integers."""

    first: Tensor
    constraint: BlockCirculant
    bias: Tensor
    grid: Format | None


def weights_of(module: Any) -> Weights:
    """The weights of a module, with zeros between its groups."""
    weight, groups = module.weight.detach(), getattr(module, "groups", 1)
    if groups > 1:
        whole = weight.new_zeros(len(weight), module.in_channels, *weight.shape[2:])
        for n, (part, own) in enumerate(zip(whole.chunk(groups), weight.chunk(groups), strict=True)):
            part[:, n * own.shape[1]:(n + 1) * own.shape[1]] = own
        weight = whole
    rows, columns, *kernel = weight.shape
    matrix = matrices.Matrix(module, "weight", groups=1, rows=rows, columns=columns, kernel=tuple(kernel))
    if constraint := matrices.constraint_of(matrix):
        first = module.parametrizations.weight.original.detach()
    else:
        constraint = matrix.constraint(1)
        first = constraint.right_inverse(weight)
    return {"first": first, "constraint": constraint, "bias": bias_of(module, first), "grid": grid_of(module)}


def bias_of(module: Any, like: Tensor) -> Tensor:
    """The bias of a module, zeros where it has none."""
    bias: Tensor = like.new_zeros(len(module.weight)) if module.bias is None else module.bias.detach()
    return bias


def grid_of(module: Any) -> Format | None:
    """The format on whose grid a module's weights lie, where a quantizer says one."""
    return grids_of(module).get("weight")
