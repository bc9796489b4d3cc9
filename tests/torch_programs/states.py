"""Programs with states: zeros, kept and given ones, cells called once a step, packed sequences."""
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from tests.torch_programs.program import SEQUENCE, gru, linear, lstm, program


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
