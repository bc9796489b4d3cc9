"""Recurrent layers that torch does not have: an LSTM with peepholes and projection, a GRU with another reset gate.

They are called like torch.nn.LSTM and torch.nn.GRU. The products of all steps with the input are one matrix product;
the loop over the steps, and its derivative, stand in `training.models.steps`.
"""
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, linear

from circulant.sim.refusal import Refusal
from circulant.sim.shape.recurrent import check_nonlinearity
from circulant.training.models.hard import gru_steps, lstm_steps
from circulant.training.models.steps import GruSteps, LstmSteps

__all__ = ["LinearRnn", "PeepholeLstm", "Recurrent", "ResetBeforeGru", "StateSpace"]


class Recurrent(nn.Module):
    """Layers and directions around a cell; the base of `PeepholeLstm`, `ResetBeforeGru` and `LinearRnn`.

    Called with ``lengths`` (N,), the direction back begins at the last valid step of each sequence, so that what stands
    behind it reaches no output of a valid step. States are then those of the longest sequence's last step.

    Parameters:
        those of torch.nn.LSTM and torch.nn.GRU; ``hard``: gates of torch.nn.Hardsigmoid and Hardtanh.

    Members:
        weight_ih_l0, weight_hh_l0: (gates · hidden_size, inputs) and (gates · hidden_size, outputs), the gates stacked
            in torch's order; ``_l1`` of the second layer, ``_l0_reverse`` of the other direction.
        weight_hr_l0: (proj_size, hidden_size), where there is a projection.
        bias_l0: (gates · hidden_size,), one and not torch's two, as their sum is all that counts.

        tap: called with the outputs (T, N, …) of each layer in turn; None for nobody.

    Raises:
        Refusal: when a size is not positive, or the projection is not smaller than the hidden state.
    """

    gates = 0

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, *, bias: bool = True,
                 batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False,
                 proj_size: int = 0, hard: bool = False) -> None:
        super().__init__()
        for name, value, least in (("input_size", input_size, 1), ("hidden_size", hidden_size, 1),
                                   ("num_layers", num_layers, 1), ("proj_size", proj_size, 0)):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise Refusal(f"{name} must be an integer of at least {least}, not {value!r}; choose another")
        if proj_size >= hidden_size:
            raise Refusal(f"proj_size must be below the {hidden_size} hidden units, not {proj_size}; choose 0 for none")
        if not 0 <= dropout < 1:
            raise Refusal(f"dropout must be from 0 to below 1, not {dropout!r}; choose 0 for none")
        self.input_size, self.hidden_size, self.num_layers, self.proj_size = (input_size, hidden_size, num_layers,
                                                                              proj_size)
        self.bias, self.batch_first, self.dropout, self.bidirectional = bias, batch_first, dropout, bidirectional
        self.hard = hard
        self.tap: Callable[[Tensor], None] | None = None
        for layer in range(num_layers):
            for suffix in self.suffixes(layer):
                for name, shape in self._shapes(self.output_size * (1 + bidirectional) if layer else input_size):
                    self.register_parameter(f"{name}{suffix}", nn.Parameter(torch.empty(shape)))
        self.reset_parameters()

    @property
    def output_size(self) -> int:
        """Length of what one direction gives at each step."""
        return self.proj_size or self.hidden_size

    def suffixes(self, layer: int) -> tuple[str, ...]:
        """Endings of the names of a layer's tensors, one for each direction."""
        return (f"_l{layer}", f"_l{layer}_reverse") if self.bidirectional else (f"_l{layer}",)

    def _shapes(self, inputs: int) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Names and shapes of the tensors of one direction of a layer."""
        rows = self.gates * self.hidden_size
        yield "weight_ih", (rows, inputs)
        yield "weight_hh", (rows, self.output_size)
        if self.bias:
            yield "bias", (rows,)
        if self.proj_size:
            yield "weight_hr", (self.proj_size, self.hidden_size)

    def matrices(self) -> Iterator[tuple[str, int]]:
        """Names of the weight matrices, with the number of gates stacked in each."""
        for layer in range(self.num_layers):
            for suffix in self.suffixes(layer):
                yield f"weight_ih{suffix}", self.gates
                yield f"weight_hh{suffix}", self.gates
                if self.proj_size:
                    yield f"weight_hr{suffix}", 1

    def reset_parameters(self) -> None:
        """Each gate's matrix over its inputs by Glorot and Bengio 2010, that over its state orthogonal, the rest zero.

        From within torch's 1/√hidden_size, CTC over a hundred steps of speech was at 96 % errors after 12 epochs.
        """
        for name, parameter in self.named_parameters():
            start = nn.init.orthogonal_ if "weight_hh" in name else nn.init.xavier_uniform_
            for gate in parameter.detach().split(self.hidden_size) if name.startswith("weight") else ():
                start(gate)
            if not name.startswith("weight"):
                nn.init.zeros_(parameter)

    def _layers(self, x: Tensor, states: tuple[Tensor, ...] | None,
                lengths: Tensor | None) -> tuple[Tensor, list[tuple[Tensor, ...]]]:
        """Outputs (N, T, …) or (T, N, …), and the final states of every layer and direction."""
        if x.ndim != 3 or x.shape[-1] != self.input_size:
            raise Refusal(f"Inputs must have the shape {'(N, T' if self.batch_first else '(T, N'}, {self.input_size}), "
                          f"not {tuple(x.shape)}; rearrange the axes")
        x = x.transpose(0, 1) if self.batch_first else x
        turned = None if lengths is None or not self.bidirectional else _turn(lengths.to(x.device), len(x))
        ends: list[tuple[Tensor, ...]] = []
        for layer in range(self.num_layers):
            if layer and self.dropout:
                x = dropout(x, self.dropout, self.training)
            ways = []
            for back, suffix in enumerate(self.suffixes(layer)):
                weight, bias = self._tensors(suffix, "weight_ih", "bias")
                driven = linear(_reversed(x, turned) if back else x, weight, bias).to(weight.dtype)
                with torch.autocast(x.device.type, enabled=False):  # Roundings of a state add up over the steps.
                    steps, *end = self._steps(driven, self._start(driven, states, len(ends)), suffix)
                ways.append(_reversed(steps, turned) if back else steps)
                ends.append(tuple(end))
            x = torch.cat(ways, -1) if len(ways) > 1 else ways[0]
            if self.tap is not None:
                self.tap(x)
        return (x.transpose(0, 1) if self.batch_first else x), ends

    def _tensors(self, suffix: str, *names: str) -> list[Any]:
        return [getattr(self, f"{name}{suffix}", None) for name in names]

    def _start(self, x: Tensor, states: tuple[Tensor, ...] | None, number: int) -> tuple[Tensor, ...]:
        """The state before the first step, of the layer and direction of a number."""
        if states is not None:
            return tuple(state[number] for state in states)
        return tuple(x.new_zeros(x.shape[1], size) for size in self._state_sizes())

    def _state_sizes(self) -> tuple[int, ...]:
        raise NotImplementedError

    def _steps(self, driven: Tensor, start: tuple[Tensor, ...], suffix: str) -> tuple[Tensor, ...]:
        """Outputs (T, N, outputs) from the input's part of the gates (T, N, gates · hidden), and the final states."""
        raise NotImplementedError

    def extra_repr(self) -> str:
        options = [f"{name}={getattr(self, name)}" for name, default in (
            ("num_layers", 1), ("bias", True), ("batch_first", False), ("dropout", 0.0), ("bidirectional", False),
            ("proj_size", 0), ("hard", False), ("nonlinearity", "tanh")) if getattr(self, name, default) != default]
        return ", ".join([str(self.input_size), str(self.hidden_size), *options])


def _turn(lengths: Tensor, steps: int) -> Tensor:
    """Where each step (T, N) stands when the valid steps of each sequence are reversed, and the rest stay."""
    at = torch.arange(steps, device=lengths.device)[:, None]
    return torch.where(at < lengths, lengths - 1 - at, at)


def _reversed(x: Tensor, turned: Tensor | None) -> Tensor:
    """Sequences (T, N, …) from back to front, of all steps or as `_turn` says."""
    return x.flip(0) if turned is None else x.gather(0, turned[..., None].expand_as(x))


class PeepholeLstm(Recurrent):
    """An LSTM with peepholes, and with a projection where ``proj_size`` is not 0 (Sak et al. 2014, eq. 1-6).

    The equations stand in `sim.kinds.lstm`; g is a tanh. Gates are stacked as i, f, g, o. Called as torch.nn.LSTM:
    ``output, (h_n, c_n) = lstm(x)`` or ``lstm(x, (h_0, c_0))``, without packed sequences.

    Members:
        peephole_l0: (3, hidden_size), what i, f and o see of the cell; diagonal, so never compressed.
    """

    gates = 4

    def _shapes(self, inputs: int) -> Iterator[tuple[str, tuple[int, ...]]]:
        yield from super()._shapes(inputs)
        yield "peephole", (3, self.hidden_size)

    def forward(self, x: Tensor, state: tuple[Tensor, Tensor] | None = None,
                lengths: Tensor | None = None) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Output (N, T, outputs · directions), (T, N, …) without ``batch_first``; h_n and c_n (layers · directions, …).

        Parameters:
            lengths: as of `Recurrent`.

        Raises:
            Refusal: when x has another shape.
        """
        steps, ends = self._layers(x, state, lengths)
        return steps, (torch.stack([end[0] for end in ends]), torch.stack([end[1] for end in ends]))

    def _state_sizes(self) -> tuple[int, ...]:
        return self.output_size, self.hidden_size

    def _steps(self, driven: Tensor, start: tuple[Tensor, ...], suffix: str) -> tuple[Tensor, ...]:
        tensors = *start, *self._tensors(suffix, "weight_hh", "weight_hr", "peephole")
        y, c = lstm_steps(driven, *tensors) if self.hard else LstmSteps.apply(driven, *tensors)
        return y, y[-1], c


class _OneState(Recurrent):
    """A layer whose only state is its output."""

    def forward(self, x: Tensor, state: Tensor | None = None,
                lengths: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Output (N, T, hidden · directions), (T, N, …) without ``batch_first``; h_n (layers · directions, N, hidden).

        Parameters:
            lengths: as of `Recurrent`.

        Raises:
            Refusal: when x has another shape.
        """
        steps, ends = self._layers(x, None if state is None else (state,), lengths)
        return steps, torch.stack([end[0] for end in ends])

    def _state_sizes(self) -> tuple[int, ...]:
        return (self.hidden_size,)


class ResetBeforeGru(_OneState):
    """A GRU with the reset gate before the matrix (Cho et al. 2014; E-RNN eq. 2).

        n = tanh(W_in x + W_hn (r * h) + b_n),  h = n + z * (h - n)

    torch.nn.GRU, where r comes after the matrix, cannot take its weights. Gates are stacked as r, z, n. Called as
    torch.nn.GRU: ``output, h_n = gru(x)`` or ``gru(x, h_0)``, without packed sequences.

    Parameters:
        nonlinearity: "tanh", or "relu" in its place, as in a layer of RNNoise, or "identity".

    Raises:
        Refusal: when the nonlinearity is another one; as `Recurrent`.
    """

    gates = 3

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, *, bias: bool = True,
                 batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False,
                 hard: bool = False, nonlinearity: str = "tanh") -> None:
        check_nonlinearity("ResetBeforeGru", nonlinearity)
        super().__init__(input_size, hidden_size, num_layers, bias=bias, batch_first=batch_first, dropout=dropout,
                         bidirectional=bidirectional, hard=hard)
        self.nonlinearity = nonlinearity

    def _steps(self, driven: Tensor, start: tuple[Tensor, ...], suffix: str) -> tuple[Tensor, ...]:
        tensors = *start, *self._tensors(suffix, "weight_hh")
        if self.hard or self.nonlinearity != "tanh":
            h = gru_steps(driven, *tensors, hard=self.hard, nonlinearity=self.nonlinearity)
        else:
            h = GruSteps.apply(driven, *tensors)
        return h, h[-1]


class LinearRnn(_OneState):
    """torch.nn.RNN without its function: h = A h + B x + b, from 0 on; called as that one.

    A begins as a rotation times 0.95, so that states fade.
    """

    gates, nonlinearity = 1, "identity"

    def reset_parameters(self) -> None:
        super().reset_parameters()
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                parameter.mul_(0.95 if name.startswith("weight_hh") else 1)

    def _steps(self, driven: Tensor, start: tuple[Tensor, ...], suffix: str) -> tuple[Tensor, ...]:
        (h,), (weight,), states = start, self._tensors(suffix, "weight_hh"), list[Tensor]()
        for each in driven:
            h = each + linear(h, weight)
            states.append(h)
        return torch.stack(states), h


class StateSpace(nn.Module):
    """A linear state space: h = A h + B x, y = C h + D x, all full matrices; (N, T, input_size) to (N, T, output_size).

    Members:
        state: the `LinearRnn` of A and B.
        output: the Linear of D and C side by side, over x and h.
    """

    def __init__(self, input_size: int, state_size: int, output_size: int) -> None:
        super().__init__()
        self.state = LinearRnn(input_size, state_size, batch_first=True)
        self.output = nn.Linear(input_size + state_size, output_size)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.output(torch.cat((x, self.state(x)[0]), -1))
        return y
