"""Programs with arithmetic: constants, gates, features side by side, repeated vectors, means."""
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.torch_programs.program import IMAGE, SEQUENCE, SIGNAL, VECTOR, gru, linear, lstm, program


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


@program(IMAGE, conv=lambda: nn.Conv2d(2, 4, 3), a=linear(4, 2), b=linear(2, 4), head=linear(4))
def squeeze_excite_of_images(self: Any, x: Tensor) -> Any:
    x = F.silu(self.conv(x))
    gates = torch.sigmoid(self.b(F.silu(self.a(F.adaptive_avg_pool2d(x, 1).flatten(1)))))
    return self.head((x * gates.view(x.size(0), -1, 1, 1)).amax((2, 3)))


@program(SEQUENCE, (4,), a=linear(4, 3), rnn=lambda: nn.GRU(9, 8, batch_first=True), head=linear())
def vector_beside_each_step(self: Any, x: Tensor, y: Tensor) -> Any:
    return self.head(self.rnn(torch.cat((x, self.a(y).unsqueeze(1).expand(-1, x.size(1), -1)), 2))[0])


@program(SEQUENCE, gates=linear(6, 6), rnn=gru(), head=linear())
def gate_of_all_steps(self: Any, x: Tensor) -> Any:
    return self.head(self.rnn(x * torch.sigmoid(self.gates(x.mean(1, keepdim=True))))[0])
