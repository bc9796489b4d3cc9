"""Layers in float64, as they come out of training: fully connected ones, functions, reductions."""
from dataclasses import dataclass

import numpy as np

from circulant.sim.arith.activation import exact_function
from circulant.sim.arith.fixed import Reals
from circulant.sim.real.products import Tap, check, check_first_columns, ignore, product
from circulant.sim.shape.reduction import STEPS, check_mode
from circulant.sim.shape.sequences import Lengths, valid

__all__ = ["Activation", "Linear", "OverTime"]


@dataclass(frozen=True, eq=False)
class Linear:
    """y = W x + b, or max(0, W x + b).

    Parameters:
        weight: first columns (p, q, k), p·k ≥ outputs and q·k ≥ inputs.
        bias: (outputs,).
        relu: whether negative outputs become zero.
    """

    name: str
    inputs: int
    outputs: int
    weight: Reals
    bias: Reals
    relu: bool = False

    kind = "linear"

    def __post_init__(self) -> None:
        check_first_columns(self.name, weight=(self.weight, (self.outputs, self.inputs)))
        check(self.name, bias=(self.bias, (self.outputs,)))

    def __call__(self, x: Reals, tap: Tap = ignore) -> Reals:
        name = f"{self.name}.product"
        y = product(name, self.bias[None], tap, {name: (self.weight[None], x)})[..., 0, :]
        if self.relu:
            tap(f"{self.name}.y", y := np.maximum(y, 0.0))
        return y


@dataclass(frozen=True, eq=False)
class Activation:
    """y = f(x) for each value of vectors, sequences or images.

    Parameters:
        function, parameters: f, see `sim.arith.activation.exact_function`.
    """

    name: str
    inputs: int
    function: str
    parameters: tuple[float, ...] = ()

    kind = "activation"

    def __post_init__(self) -> None:
        exact_function(self.function, self.parameters)

    @property
    def outputs(self) -> int:
        return self.inputs

    def exact(self, x: Reals) -> Reals:
        """f of each value."""
        return exact_function(self.function, self.parameters)(x)

    def __call__(self, x: Reals, tap: Tap = ignore) -> Reals:
        tap(f"{self.name}.y", y := self.exact(x))
        return y


@dataclass(frozen=True, eq=False)
class OverTime:
    """The greatest value of all steps of a sequence, or their mean: see `sim.golden.reduce.over_time.OverTime`.

    Parameters:
        mode: "max" or "mean".
    """

    name: str
    inputs: int
    mode: str

    kind = "over_time"
    returns = "last"

    def __post_init__(self) -> None:
        check_mode(self.name, self.mode)

    @property
    def outputs(self) -> int:
        return self.inputs

    def __call__(self, x: Reals, tap: Tap = ignore, lengths: Lengths | None = None) -> Reals:
        seen = np.ones(x.shape[:2], bool) if lengths is None else valid(lengths, x.shape[1])
        if self.mode == "max":
            y = np.where(seen[..., None], x, -np.inf).max(1)
        else:
            seen = seen[:, :STEPS]
            y = np.where(seen[..., None], x[:, :STEPS], 0).sum(1) / seen.sum(1, keepdims=True)
        tap(f"{self.name}.y", y)
        return np.asarray(y)
