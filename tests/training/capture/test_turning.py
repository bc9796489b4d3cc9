"""Images that are read in another order than the data says, so that nothing has to be moved."""
import re

import numpy as np
import pytest
import torch
from torch import nn

from circulant.sim.golden.network import Network
from circulant.sim.refusal import Refusal
from circulant.training import compress, export, inspect, reference
from tests.modules import Net


def kinds(model, x):
    """The kinds of the reference's layers, which has been compared with torch, and of its input the axes."""
    exact = reference(model, x)
    return exact.entry.axes, [node.layer.kind for node in exact.nodes]


def conv(*sizes, **more):
    return nn.Conv2d(*sizes, **more)


COLUMNS = {
    "channels first": (lambda m, x: m.rnn(torch.relu(m.conv(x)).permute(0, 3, 1, 2).flatten(2))[0], (1, 6, 9)),
    "pixels first": (lambda m, x: m.rnn(torch.relu(m.conv(x)).permute(0, 3, 2, 1).flatten(2))[0], (1, 6, 9)),
    "pooled and scaled": (lambda m, x: m.rnn((torch.tanh(m.norm(m.conv(x))) * 2).permute(0, 3, 1, 2).flatten(2))[0],
                          (1, 6, 9)),
}


@pytest.mark.parametrize("block_size", [1, 4])
@pytest.mark.parametrize("name", COLUMNS)
def test_columns_become_steps_where_rows_and_columns_are_exchanged(name, block_size):
    torch.manual_seed(0)
    run, shape = COLUMNS[name]
    model = Net(run, conv=conv(1, 4, (3, 5), padding=(1, 2)), norm=nn.BatchNorm2d(4),
                rnn=nn.GRU(24, 8, batch_first=True)).eval()
    model.norm.running_var = torch.rand(4) + 0.5
    model = compress(model, {"conv": block_size, "rnn": block_size})
    x = torch.randn(3, *shape)
    axes, found = kinds(model, x)
    assert (axes, found[0], found[-2:]) == ((0, 2, 1), "conv", ["flatten", "gru"])
    assert any("rows and columns exchanged" in entry.note for entry in inspect(model, x))


WINDOWS = {"gaps": ({"dilation": (1, 2)}, 8), "depthwise": ({"groups": 4}, 8),
           "depthwise with gaps": ({"groups": 4, "dilation": (2, 1)}, 6)}
"""Settings of a window, and the height of its images."""


@pytest.mark.parametrize("name", WINDOWS)
def test_gaps_and_depthwise_windows_are_exchanged(name):
    torch.manual_seed(0)
    settings, height = WINDOWS[name]
    model = Net(lambda m, x: m.rnn(torch.relu(m.second(m.conv(x))).permute(0, 3, 1, 2).flatten(2))[0],
                conv=conv(1, 4, 3, padding=1), second=conv(4, 4, (3, 2), padding=(2, 1), **settings),
                rnn=nn.GRU(4 * height, 8, batch_first=True)).eval()
    axes, found = kinds(model, torch.randn(3, 1, 6, 9))
    assert (axes, found) == ((0, 2, 1), ["conv", "depthwise" if "groups" in settings else "conv", "flatten", "gru"])


def test_a_single_row_gives_a_step_for_each_pixel():
    model = Net(lambda m, x: m.rnn(m.conv(x).squeeze(2).permute(0, 2, 1))[0], conv=conv(2, 3, (4, 3), stride=(1, 2)),
                rnn=nn.GRU(3, 4, batch_first=True)).eval()
    assert kinds(model, torch.randn(3, 2, 4, 9)) == ((0, 2, 1), ["conv", "flatten", "gru"])


def test_images_whose_rows_are_steps_and_sums_over_pixels_stay():
    rows = Net(lambda m, x: m.rnn(m.conv(x).permute(0, 2, 1, 3).flatten(2))[0], conv=conv(1, 2, 3),
               rnn=nn.GRU(8, 4, batch_first=True)).eval()
    assert kinds(rows, torch.randn(3, 1, 7, 6))[0] == ()
    both = Net(lambda m, x: (m.rnn((y := m.conv(x)).permute(0, 3, 1, 2).flatten(2))[0], m.fc(y.mean((2, 3)))),
               conv=conv(1, 2, 3), rnn=nn.GRU(10, 4, batch_first=True), fc=nn.Linear(2, 3)).eval()
    assert reference(both, torch.randn(3, 1, 7, 6)).inputs[0].axes == (0, 2, 1)


LAST = {
    "images": (lambda m, x: m.conv2(x.permute(0, 3, 1, 2)).mean((2, 3)), (5, 6, 2), (2, 0, 1)),
    "each channel": (lambda m, x: m.own(x.permute(0, 3, 1, 2)).mean((2, 3)), (5, 6, 2), (2, 0, 1)),
    "signals": (lambda m, x: m.conv1(x.transpose(1, 2)).mean(2), (9, 2), (1, 0)),
    "signals of one column": (lambda m, x: m.tall(x.permute(0, 2, 1).unsqueeze(-1)).mean((2, 3)), (9, 2), (1, 0)),
}


@pytest.mark.parametrize("name", LAST)
def test_channels_that_come_last_are_read_so(name, tmp_path):
    run, shape, axes = LAST[name]
    model = Net(run, conv2=conv(2, 3, 3), conv1=nn.Conv1d(2, 3, 3), tall=conv(2, 3, (3, 1)),
                own=conv(2, 2, 3, groups=2)).eval()
    x = torch.randn(5, *shape)
    assert kinds(model, x)[0] == axes
    network = export(model, x)
    network.save(tmp_path)
    again = Network.load(tmp_path)
    assert (again.entry, again.hash) == (network.entry, network.hash)
    np.testing.assert_array_equal(again.vectors(x.numpy()).inputs, network.vectors(x.numpy()).inputs)
    assert network.vectors(x.numpy()).inputs.shape == (5, 30 if len(shape) > 2 else 9, 2)


def test_an_input_that_others_take_in_its_own_order_stays():
    model = Net(lambda m, x: m.conv(x.transpose(1, 2)).mean(2) + m.rnn(x)[0][:, -1], conv=nn.Conv1d(2, 3, 3),
                rnn=nn.GRU(2, 3, batch_first=True)).eval()
    assert all(each.status != "refused" for each in inspect(model, torch.randn(3, 9, 2)))


def causal(m, x, *functions):
    """The last step of two causal convolutions over (N, channels, steps), with a shortcut around the second one."""
    x = torch.tanh(m.first(x))
    y = m.two(nn.functional.pad(torch.relu(m.one(nn.functional.pad(x, (1, 0)))), (2, 0)))
    for function in functions:
        y = function(m, y)
    return m.out((y + x)[:, :, -1])


def channels_first(run, **modules):
    torch.manual_seed(0)
    return Net(run, first=nn.Conv1d(3, 8, 1), one=nn.Conv1d(8, 8, 2), two=nn.Conv1d(8, 8, 2, dilation=2),
               out=nn.Linear(8, 4), **modules).eval()


def test_channels_first_come_step_by_step_where_causal_convolutions_take_them(tmp_path):
    """Sequences of any length then, also of several in one array."""
    model, x = channels_first(causal), torch.randn(6, 3, 9)
    network = export(model, x)
    assert (network.sequence, network.flow.size, network.shape, network.entry.axes) == (True, 3, (3, 9), (1, 0))
    network.save(tmp_path / "net")
    again, longer = Network.load(tmp_path / "net"), torch.randn(4, 3, 14)
    for given in (x, longer, longer[:, :, :5]):
        with torch.no_grad():
            assert np.abs(again.run(given.numpy()).real - model(given).numpy()).max() < 2e-3
    lengths = np.array([14, 3, 8, 14])
    cut = export(model, longer, lengths=lengths).run(longer.numpy(), lengths=lengths).real
    with torch.no_grad():
        wanted = np.concatenate([model(each[None, :, :length]).numpy() for each, length in zip(
            longer, lengths, strict=True)])
    assert np.abs(cut - wanted).max() < 2e-3


def test_a_model_may_move_the_channels_to_the_front_itself():
    model, x = channels_first(lambda m, x: causal(m, x.transpose(1, 2))), torch.randn(6, 9, 3)
    network = export(model, x)
    assert (network.sequence, network.shape, network.entry.axes) == (True, (), ())
    with torch.no_grad():
        assert np.abs(network.run(x[:, :5].numpy()).real - model(x[:, :5]).numpy()).max() < 2e-3


@pytest.mark.parametrize("shape", [(4, 9, 3), (4, 2, 9), (4, 3, 0), (4, 3)])
def test_other_shapes_than_channels_first_are_refused(shape):
    network = export(channels_first(causal), torch.randn(6, 3, 9))
    with pytest.raises(Refusal, match=r"must have the shape \(N, 3, T\) and be not empty, not "
                                      rf"{re.escape(str(shape))}; rearrange the axes"):
        network.run(np.zeros(shape))


def test_a_number_that_is_that_of_the_sample_is_refused_with_channels_first():
    model = channels_first(lambda m, x: causal(m, x, lambda m, y: y * (9 / x.shape[-1])))
    with pytest.raises(Refusal, match="but 9 steps and 10 are not alike to it"):
        export(model, torch.randn(6, 3, 9))


OTHERS = {
    "a pool before it": lambda m, x: m.out(m.one(nn.functional.pad(nn.functional.max_pool1d(m.first(x), 3), (1, 0)))
                                     [:, :, -1]),
    "no causal convolution": lambda m, x: m.out(torch.relu(m.first(x)).mean(-1)),
}


@pytest.mark.parametrize("name", OTHERS)
def test_channels_first_stay_images_where_something_else_takes_them(name):
    model = channels_first(OTHERS[name])
    entry = reference(model, torch.randn(6, 3, 9)).entry
    assert (entry.flow.grid, entry.axes) == ((9, 1), ())


FIRST = {
    "a scale": lambda m, x: causal(m, m.norm(x)),
    "shortcuts within shortcuts": lambda m, x: causal(m, x + torch.relu(m.square(torch.relu(m.square(x)) + x))),
    "no causal convolution": lambda m, x: m.out(torch.relu(m.first(x + torch.tanh(m.square(x)))).mean(-1)),
}


@pytest.mark.parametrize("name", FIRST)
def test_what_works_on_each_step_may_come_first(name):
    model = channels_first(lambda m, x: FIRST[name](m, x.transpose(1, 2)), norm=nn.BatchNorm1d(3),
                           square=nn.Conv1d(3, 3, 1))
    model.norm.running_var = torch.rand(3) + 0.5
    exact, x = reference(model, torch.randn(6, 9, 3)), torch.randn(4, 5, 3)
    assert exact.entry.flow.sequence
    with torch.no_grad():
        assert np.abs(exact.run(x.numpy()) - model(x).numpy()).max() < 1e-5
