"""Torch models in other words: the same layers, as strangers write them; `judge` says how each fares.

One list serves `python -m benchmarks door` and the tests. A program is right if it converts and its golden model stays
within the derived bound of torch.
"""
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from circulant.sim.error.error_bound import error_bound
from circulant.sim.refusal import Refusal
from circulant.training import export, reference

__all__ = ["PROGRAMS", "Program", "Verdict", "counted", "judge"]

SEQUENCE, VECTOR, SIGNAL, IMAGE = (7, 6), (12,), (4, 16), (2, 8, 8)

SAMPLES = 6


@dataclass(frozen=True)
class Program:
    """A model in other words.

    Parameters:
        forward: of the model, which it takes first; its layers are attributes.
        layers: by name, made anew for each model.
        shapes: of the inputs, without the batch.
    """

    forward: Callable[..., Any]
    layers: Callable[[], dict[str, nn.Module]]
    shapes: tuple[tuple[int, ...], ...]

    @property
    def name(self) -> str:
        return self.forward.__name__

    def model(self, seed: int = 0) -> nn.Module:
        """The model with random weights."""
        torch.manual_seed(seed)
        made = type(self.name, (nn.Module,), {"forward": self.forward})()
        for name, layer in self.layers().items():
            made.register_module(name, layer)
        for layer in made.modules():
            if isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d):
                layer.running_mean = torch.randn(layer.num_features) / 4
                layer.running_var = torch.rand(layer.num_features) + 0.5
        return made.eval()

    def sample(self, seed: int = 1) -> Tensor | tuple[Tensor, ...]:
        """Inputs of several samples."""
        made = torch.Generator().manual_seed(seed)
        found = tuple(torch.randn(SAMPLES, *shape, generator=made) for shape in self.shapes)
        return found[0] if len(found) == 1 else found


PROGRAMS: list[Program] = []
"""All of them, in the order of issue and section: states, moves, arithmetic, functions, shapes of programs."""


def program(*shapes: tuple[int, ...], **layers: Callable[[], nn.Module]) -> Callable[[Callable[..., Any]], Any]:
    """Add a program, whose layers are given as functions that make them."""
    def added(forward: Callable[..., Any]) -> Any:
        PROGRAMS.append(Program(forward, lambda: {name: make() for name, make in layers.items()}, shapes))
        return forward
    return added


def lstm(**more: Any) -> Callable[[], nn.Module]:
    return lambda: nn.LSTM(6, 8, **{"batch_first": True, **more})


def gru(**more: Any) -> Callable[[], nn.Module]:
    return lambda: nn.GRU(6, 8, **{"batch_first": True, **more})


def linear(columns: int = 8, rows: int = 3) -> Callable[[], nn.Module]:
    return lambda: nn.Linear(columns, rows)


# States.

@program(SEQUENCE, rnn=lstm(), head=linear())
def zeros_of_the_batch(self: Any, x: Tensor) -> Any:
    h = torch.zeros(1, x.size(0), 8)
    return self.head(self.rnn(x, (h, torch.zeros_like(h)))[0][:, -1])


@program(SEQUENCE, rnn=gru(), head=linear())
def new_zeros(self: Any, x: Tensor) -> Any:
    return self.head(self.rnn(x, x.new_zeros(1, len(x), 8))[0][:, -1, :])


@program(SEQUENCE, rnn=gru(), head=linear())
def last_state(self: Any, x: Tensor) -> Any:
    _, h = self.rnn(x)
    return self.head(h[-1])


@program(SEQUENCE, rnn=gru(), head=linear())
def last_state_sliced(self: Any, x: Tensor) -> Any:
    return self.head(self.rnn(x)[1][-1, :, :])


@program(SEQUENCE, rnn=lstm(), head=linear())
def last_state_squeezed(self: Any, x: Tensor) -> Any:
    _, (h, _) = self.rnn(x)
    return self.head(h.squeeze(0))


@program(SEQUENCE, rnn=gru(bidirectional=True), head=linear(16))
def both_ends(self: Any, x: Tensor) -> Any:
    _, h = self.rnn(x)
    return self.head(torch.cat((h[-2], h[-1]), dim=1))


@program(SEQUENCE, rnn=lstm(num_layers=2, bidirectional=True), head=linear(16))
def both_ends_reshaped(self: Any, x: Tensor) -> Any:
    _, (h, _) = self.rnn(x)
    h = h.view(2, 2, x.shape[0], 8)[-1]
    return self.head(h.permute(1, 0, 2).reshape(x.shape[0], -1))


@program(SEQUENCE, cell=lambda: nn.LSTMCell(6, 8), head=linear())
def lstm_cell_in_a_loop(self: Any, x: Tensor) -> Any:
    h = c = torch.zeros(x.shape[0], 8)
    for t in range(x.shape[1]):
        h, c = self.cell(x[:, t], (h, c))
    return self.head(h)


@program(SEQUENCE, cell=lambda: nn.GRUCell(6, 8), head=linear())
def gru_cell_in_a_loop(self: Any, x: Tensor) -> Any:
    h, outputs = x.new_zeros(x.size(0), 8), []
    for step in x.unbind(1):
        h = self.cell(step, h)
        outputs.append(h)
    return self.head(torch.stack(outputs, dim=1))


@program(SEQUENCE, cell=lambda: nn.RNNCell(6, 8), head=linear())
def rnn_cell_in_a_loop(self: Any, x: Tensor) -> Any:
    h = None
    for t in range(x.shape[1]):
        h = self.cell(x[:, t], h)
    return self.head(h)


@program(SEQUENCE, cell=lambda: nn.GRUCell(6, 8), head=linear())
def head_within_a_loop(self: Any, x: Tensor) -> Any:
    h, outputs = x.new_zeros(x.size(0), 8), []
    for t in range(x.size(1)):
        h = self.cell(x[:, t, :], h)
        outputs.append(self.head(h))
    return torch.stack(outputs, 1)


@program(SEQUENCE, rnn=lstm(), head=linear())
def packed(self: Any, x: Tensor) -> Any:
    packed = pack_padded_sequence(x, torch.full((len(x),), x.shape[1]), batch_first=True, enforce_sorted=False)
    out, _ = pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
    return self.head(out)


@program(SEQUENCE, rnn=gru(), head=linear())
def packed_last(self: Any, x: Tensor) -> Any:
    lengths = torch.tensor([x.shape[1]] * x.shape[0])
    _, h = self.rnn(pack_padded_sequence(x, lengths, batch_first=True))
    return self.head(h[-1])


@program(SEQUENCE, (8,), rnn=gru(), head=linear())
def state_as_input(self: Any, x: Tensor, h: Tensor) -> Any:
    return self.head(self.rnn(x, h.unsqueeze(0))[0])


@program(SEQUENCE, rnn=gru(), head=linear())
def kept_state(self: Any, x: Tensor) -> Any:
    out, h = self.rnn(x)
    return self.head(out), h


@program(SEQUENCE, rnn=lstm(), head=linear())
def kept_cell(self: Any, x: Tensor) -> Any:
    out, (h, c) = self.rnn(x)
    return self.head(out), h, c


@program(SEQUENCE, rnn=lstm(), head=linear())
def cell_state(self: Any, x: Tensor) -> Any:
    return self.head(self.rnn(x)[1][1][-1])


# Moves.

@program((6, 7), rnn=gru(), head=linear())
def channels_first(self: Any, x: Tensor) -> Any:
    return self.head(self.rnn(x.transpose(1, 2))[0])


@program((6, 7), rnn=gru(), head=linear())
def channels_first_permuted(self: Any, x: Tensor) -> Any:
    return self.head(self.rnn(x.permute(0, 2, 1))[0][:, -1])


@program(SEQUENCE, rnn=lstm(batch_first=False), head=linear())
def time_first(self: Any, x: Tensor) -> Any:
    out, _ = self.rnn(x.permute(1, 0, 2))
    return self.head(out[-1])


@program(SIGNAL, conv=lambda: nn.Conv1d(4, 6, 3, padding=1), rnn=gru(), head=linear())
def convolution_then_steps(self: Any, x: Tensor) -> Any:
    x = F.relu(self.conv(x)).permute(0, 2, 1)
    return self.head(self.rnn(x)[0][:, -1])


@program(SEQUENCE, rnn=gru(), head=linear(56))
def all_steps_flattened(self: Any, x: Tensor) -> Any:
    return self.head(self.rnn(x)[0].flatten(1))


@program(SEQUENCE, rnn=gru(), conv=lambda: nn.Conv1d(8, 4, 3), head=linear(4))
def steps_then_convolution(self: Any, x: Tensor) -> Any:
    x = self.rnn(x)[0].transpose(1, 2)
    return self.head(F.relu(self.conv(x)).mean(-1))


@program((16, 1), conv=lambda: nn.Conv1d(1, 4, 5), head=linear(4))
def one_channel_last(self: Any, x: Tensor) -> Any:
    return self.head(torch.relu(self.conv(x.transpose(1, 2))).amax(2))


@program((16,), conv=lambda: nn.Conv1d(1, 4, 5), head=linear(4))
def signal_without_channels(self: Any, x: Tensor) -> Any:
    return self.head(torch.relu(self.conv(x.unsqueeze(1))).mean(dim=2))


@program((1, 9, 6), conv=lambda: nn.Conv2d(1, 4, 3, padding=1), rnn=lambda: nn.GRU(24, 8, batch_first=True),
         head=linear())
def columns_as_steps(self: Any, x: Tensor) -> Any:
    x = torch.relu(self.conv(x))
    n, c, t, f = x.shape
    x = x.permute(0, 2, 1, 3).contiguous().view(n, t, c * f)
    return self.head(self.rnn(x)[0])


@program((1, 6, 9), conv=lambda: nn.Conv2d(1, 4, 3, padding=1), rnn=lambda: nn.LSTM(24, 8, batch_first=True),
         head=linear())
def width_as_steps(self: Any, x: Tensor) -> Any:
    x = torch.relu(self.conv(x)).permute(0, 3, 1, 2).flatten(2)
    return self.head(self.rnn(x)[0])


@program(IMAGE, conv=lambda: nn.Conv2d(2, 4, 3), head=linear(144))
def flattened_by_size(self: Any, x: Tensor) -> Any:
    x = torch.relu(self.conv(x))
    return self.head(x.view(x.size(0), -1))


@program((8, 8, 2), conv=lambda: nn.Conv2d(2, 4, 3), head=linear(144))
def channels_last(self: Any, x: Tensor) -> Any:
    return self.head(torch.relu(self.conv(x.permute(0, 3, 1, 2))).reshape(len(x), -1))


# Arithmetic.

@program(VECTOR, a=linear(12, 8), b=linear())
def normalised(self: Any, x: Tensor) -> Any:
    return self.b(torch.relu(self.a((x - 0.3) / 1.7)))


@program(IMAGE, conv=lambda: nn.Conv2d(2, 4, 3), head=linear(4))
def divided_by_255(self: Any, x: Tensor) -> Any:
    return self.head(torch.relu(self.conv(x / 255)).mean((2, 3)))


@program(SEQUENCE, rnn=gru(), head=linear())
def doubled_and_shifted(self: Any, x: Tensor) -> Any:
    return self.head(self.rnn(2 * x - 1)[0])


@program(SEQUENCE, rnn=gru(), head=linear())
def scaled_output(self: Any, x: Tensor) -> Any:
    return self.head(self.rnn(x)[0][:, -1]) * 10 + 5


@program(SEQUENCE, norm=lambda: nn.BatchNorm1d(6), rnn=gru(), head=linear())
def normalised_per_feature(self: Any, x: Tensor) -> Any:
    mean, deviation = self.norm.running_mean, self.norm.running_var.sqrt()
    return self.head(self.rnn((x - mean) / deviation)[0])


@program(VECTOR, a=linear(12, 8), b=linear())
def negated(self: Any, x: Tensor) -> Any:
    return self.b(torch.tanh(-self.a(x)))


@program(VECTOR, a=linear(12, 8), b=linear())
def one_minus(self: Any, x: Tensor) -> Any:
    return self.b(1 - torch.sigmoid(self.a(x)))


@program(VECTOR, a=linear(12, 12), b=linear(12))
def difference_of_branches(self: Any, x: Tensor) -> Any:
    return self.b(x - torch.tanh(self.a(x)))


@program(VECTOR, a=linear(12, 8), g=linear(12, 8), b=linear())
def gated(self: Any, x: Tensor) -> Any:
    return self.b(torch.sigmoid(self.g(x)) * torch.tanh(self.a(x)))


@program(VECTOR, a=linear(12, 16), b=linear())
def glu(self: Any, x: Tensor) -> Any:
    return self.b(F.glu(self.a(x), dim=-1))


@program(VECTOR, a=linear(12, 16), b=linear())
def glu_in_chunks(self: Any, x: Tensor) -> Any:
    a, gate = self.a(x).chunk(2, dim=-1)
    return self.b(a * gate.sigmoid())


@program(SIGNAL, conv=lambda: nn.Conv1d(4, 8, 3, padding=1), a=linear(8, 4), b=linear(4, 8), head=linear())
def squeeze_excite(self: Any, x: Tensor) -> Any:
    x = torch.relu(self.conv(x))
    gate = torch.sigmoid(self.b(torch.relu(self.a(x.mean(2)))))
    return self.head((x * gate.unsqueeze(-1)).mean(2))


@program(SEQUENCE, a=gru(), b=gru(), head=linear(16))
def concatenated(self: Any, x: Tensor) -> Any:
    return self.head(torch.cat([self.a(x)[0], self.b(x)[0]], dim=-1))


@program(VECTOR, a=linear(6, 8), b=linear(6, 8), head=linear(16))
def split_features(self: Any, x: Tensor) -> Any:
    one, two = torch.split(x, 6, dim=1)
    return self.head(torch.cat((torch.relu(self.a(one)), torch.relu(self.b(two))), 1))


@program(SEQUENCE, a=lambda: nn.GRU(4, 8, batch_first=True), head=linear())
def sliced_features(self: Any, x: Tensor) -> Any:
    return self.head(self.a(x[..., :4])[0])


@program(SEQUENCE, a=linear(6, 8), b=linear(6, 8), head=linear())
def stacked(self: Any, x: Tensor) -> Any:
    return self.head(torch.stack((self.a(x), torch.tanh(self.b(x)))).sum(0))


@program(SEQUENCE, encoder=gru(), decoder=lambda: nn.GRU(8, 6, batch_first=True), head=linear(6))
def autoencoder_repeat(self: Any, x: Tensor) -> Any:
    h = self.encoder(x)[1][-1]
    return self.head(self.decoder(h.unsqueeze(1).repeat(1, x.size(1), 1))[0])


@program(SEQUENCE, encoder=lstm(), decoder=lambda: nn.LSTM(8, 6, batch_first=True), head=linear(6))
def autoencoder_expand(self: Any, x: Tensor) -> Any:
    h = self.encoder(x)[0][:, -1:]
    return self.head(self.decoder(h.expand(-1, x.shape[1], -1))[0])


@program(SEQUENCE, rnn=gru(), head=linear())
def mean_over_time(self: Any, x: Tensor) -> Any:
    return self.head(self.rnn(x)[0].mean(dim=1))


@program(SEQUENCE, rnn=gru(), head=linear())
def max_over_time(self: Any, x: Tensor) -> Any:
    return self.head(torch.max(self.rnn(x)[0], dim=1).values)


@program(SEQUENCE, rnn=gru(), head=linear())
def sum_over_time(self: Any, x: Tensor) -> Any:
    return self.head(self.rnn(x)[0].sum(1))


@program(IMAGE, conv=lambda: nn.Conv2d(2, 4, 3), head=linear(4))
def means_one_by_one(self: Any, x: Tensor) -> Any:
    return self.head(torch.relu(self.conv(x)).mean(3).mean(2))


@program(IMAGE, conv=lambda: nn.Conv2d(2, 4, 3), head=linear(4))
def sum_of_pixels(self: Any, x: Tensor) -> Any:
    return self.head(torch.relu(self.conv(x)).sum(dim=(-2, -1)))


# Functions.

def _function(make: Callable[[], nn.Module], name: str) -> None:
    def forward(self: Any, x: Tensor) -> Tensor:
        return self.b(self.f(self.a(x)))
    forward.__name__ = name
    program(VECTOR, a=linear(12, 8), f=make, b=linear())(forward)


for _class in (nn.SiLU, nn.GELU, nn.ELU, nn.SELU, nn.CELU, nn.PReLU, nn.Softplus, nn.Softsign, nn.Hardswish, nn.Mish):
    _function(_class, _class.__name__.lower())


@program(SIGNAL, conv=lambda: nn.Conv1d(4, 8, 3), f=lambda: nn.PReLU(8), head=linear())
def prelu_for_each_channel(self: Any, x: Tensor) -> Any:
    self.f.weight.data = torch.arange(8) / 10.
    return self.head(self.f(self.conv(x)).mean(-1))


@program(VECTOR, a=linear(12, 8), b=linear())
def silu_in_words(self: Any, x: Tensor) -> Any:
    x = self.a(x)
    return self.b(x * torch.sigmoid(x))


@program(SIGNAL, conv=lambda: nn.Conv1d(4, 8, 3), head=linear())
def hardswish_in_words(self: Any, x: Tensor) -> Any:
    x = self.conv(x)
    return self.head((x * F.relu6(x + 3) / 6).mean(-1))


# Shapes of programs.

@program(VECTOR, a=linear(12, 8), b=linear(), c=linear(8, 2))
def two_heads(self: Any, x: Tensor) -> Any:
    x = torch.relu(self.a(x))
    return {"class": self.b(x), "value": self.c(x)}


@program(VECTOR, (4,), a=linear(12, 8), b=linear(4, 8), head=linear())
def two_inputs(self: Any, x: Tensor, y: Tensor) -> Any:
    return self.head(torch.relu(self.a(x)) + torch.relu(self.b(y)))


@program(SEQUENCE, rnn=gru(), head=linear())
def dict_of_one(self: Any, x: Tensor) -> Any:
    return {"logits": self.head(self.rnn(x)[0][:, -1])}


@program(SEQUENCE, rnn=gru(), head=linear())
def tuple_of_one(self: Any, x: Tensor) -> Any:
    assert x.dim() == 3 and x.size(2) == 6, "features"
    return (self.head(self.rnn(x)[0]),)


@program(SIGNAL, conv=lambda: nn.Conv1d(4, 8, 3), head=linear())
def pooled_by_shape(self: Any, x: Tensor) -> Any:
    x = torch.relu(self.conv(x))
    return self.head(F.avg_pool1d(x, x.shape[-1]).permute(0, 2, 1)).squeeze(1)


@program(VECTOR, a=linear(12, 12), b=linear(12))
def called_twice(self: Any, x: Tensor) -> Any:
    return self.b(torch.tanh(self.a(torch.tanh(self.a(x)))))


@program(SEQUENCE, rnn=gru(), head=linear())
def reversed_in_time(self: Any, x: Tensor) -> Any:
    return self.head(torch.flip(self.rnn(torch.flip(x, [1]))[0], [1]))


@program(SEQUENCE, rnn=gru(), head=linear())
def reversed_last(self: Any, x: Tensor) -> Any:
    return self.head(self.rnn(x.flip(1))[0][:, -1])


@program(SEQUENCE, a=gru(), b=gru(), head=linear(16))
def both_directions_in_words(self: Any, x: Tensor) -> Any:
    back = self.b(x.flip(dims=(1,)))[0].flip(dims=(1,))
    return self.head(torch.cat((self.a(x)[0], back), -1))


@program(VECTOR, a=linear(12, 8), b=linear(8, 1))
def one_number(self: Any, x: Tensor) -> Any:
    return self.b(torch.relu(self.a(x))).squeeze(-1)


@program(IMAGE, conv=lambda: nn.Conv2d(2, 4, 3), head=linear(4))
def kept_axes(self: Any, x: Tensor) -> Any:
    return self.head(self.conv(x).relu().mean((2, 3), keepdim=True).flatten(1))


@program(IMAGE, norm=lambda: nn.BatchNorm2d(2), conv=lambda: nn.Conv2d(2, 4, 3), head=linear(4))
def batch_norm_first(self: Any, x: Tensor) -> Any:
    return self.head(self.conv(self.norm(x)).relu().amax((2, 3)))


@dataclass(frozen=True)
class Verdict:
    """Fate of a program.

    Parameters:
        status: "right", "refused", "wrong" or "traceback".
        note: of a refusal or an error, in words.
    """

    program: str
    status: str
    note: str = ""


def judge(program: Program) -> Verdict:
    """Convert a program and compare its golden model with torch."""
    try:
        model, x = program.model(), program.sample()
        exact, network = reference(model, x), export(model, x)
        given: Any = {each.name: part.numpy() for each, part in zip(exact.inputs, x, strict=True)} if isinstance(
            x, tuple) else x.numpy()
        bound: Any = error_bound(network, exact, given)
        wanted: Any = exact.run(given)  # `reference` has compared it with torch.
        found: Any = network.run(given)
        for name in exact.outputs:
            several = len(exact.outputs) > 1
            error, most = ((each[name] if several else each) for each in (_error(found, wanted, several), bound))
            if not (np.isfinite(error).all() and (error <= most + 1e-9).all()):
                return Verdict(program.name, "wrong", f"{error.max():.2g} off, bound {np.max(most):.2g}")
    except Refusal as refusal:
        return Verdict(program.name, "refused", str(refusal))
    except AssertionError as error:
        return Verdict(program.name, "wrong", str(error))
    except Exception as error:  # whatever a conversion raises
        return Verdict(program.name, "traceback", f"{type(error).__name__}: {error}")
    return Verdict(program.name, "right")


def _error(found: Any, wanted: Any, several: bool) -> Any:
    if several:
        return {name: np.abs(found[name].real - wanted[name]) for name in wanted}
    return np.abs(found.real - wanted)


def counted(note: Callable[[str], None] = lambda text: None) -> dict[str, int]:
    """How many programs there are, and how many fare in each way; each is noted."""
    found = []
    for each in PROGRAMS:
        verdict = judge(each)
        found.append(verdict.status)
        note(f"{each.name}: {verdict.status}{f' ({verdict.note})' if verdict.note else ''}")
    return {"programs": len(found), "right": found.count("right"), "refused": found.count("refused"),
            "wrong": found.count("wrong"), "tracebacks": found.count("traceback")}
