"""Programs that move axes: channels first, columns as steps, all steps flattened."""
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.torch_programs.program import IMAGE, SEQUENCE, SIGNAL, gru, linear, lstm, program


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
