"""Our recurrent layers against their equations, step by step, and against torch's where they must agree."""
import pytest
import torch
from torch import nn

from circulant.sim.refusal import Refusal
from circulant.training.models.cells import PeepholeLstm, ResetBeforeGru

NO_ONEDNN = "ignore:LSTM with projections is not supported with oneDNN:UserWarning"


def lstm_equations(m, x, suffix="_l0"):
    """y of every step of one sequence (T, inputs), by the equations of Sak et al. 2014."""
    w, r, b = (getattr(m, f"{name}{suffix}") for name in ("weight_ih", "weight_hh", "bias"))
    p = getattr(m, f"peephole{suffix}")
    w, r, b = w.view(4, m.hidden_size, -1), r.view(4, m.hidden_size, -1), b.view(4, -1)
    y, c, ys = torch.zeros(m.output_size, dtype=x.dtype), torch.zeros(m.hidden_size, dtype=x.dtype), []
    for xt in x:
        i = torch.sigmoid(w[0] @ xt + r[0] @ y + p[0] * c + b[0])
        f = torch.sigmoid(w[1] @ xt + r[1] @ y + p[1] * c + b[1])
        g = torch.tanh(w[2] @ xt + r[2] @ y + b[2])
        c = f * c + i * g
        o = torch.sigmoid(w[3] @ xt + r[3] @ y + p[2] * c + b[3])
        y = o * torch.tanh(c)
        if m.proj_size:
            y = getattr(m, f"weight_hr{suffix}") @ y
        ys.append(y)
    return torch.stack(ys), c


def gru_equations(m, x, suffix="_l0"):
    """h of every step of one sequence (T, inputs); the reset gate stands before the matrix."""
    w, u, b = (getattr(m, f"{name}{suffix}") for name in ("weight_ih", "weight_hh", "bias"))
    w, u, b = w.view(3, m.hidden_size, -1), u.view(3, m.hidden_size, -1), b.view(3, -1)
    h, hs = torch.zeros(m.hidden_size, dtype=x.dtype), []
    for xt in x:
        r = torch.sigmoid(w[0] @ xt + u[0] @ h + b[0])
        z = torch.sigmoid(w[1] @ xt + u[1] @ h + b[1])
        n = torch.tanh(w[2] @ xt + u[2] @ (r * h) + b[2])
        h = (1 - z) * n + z * h
        hs.append(h)
    return torch.stack(hs)


def sequences(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def double(kind, *sizes, **options):
    torch.manual_seed(0)
    return kind(*sizes, batch_first=True, **options).double()


@pytest.mark.parametrize("proj_size", [0, 3])
def test_lstm_is_its_equations(proj_size):
    model, x = double(PeepholeLstm, 4, 6, proj_size=proj_size), sequences(3, 5, 4)
    got, (h, c) = model(x)
    for n in range(3):
        ys, cell = lstm_equations(model, x[n])
        torch.testing.assert_close(got[n], ys)
        torch.testing.assert_close(h[0, n], ys[-1])
        torch.testing.assert_close(c[0, n], cell)


def test_gru_is_its_equations():
    model, x = double(ResetBeforeGru, 4, 6), sequences(3, 5, 4)
    got, h = model(x)
    for n in range(3):
        torch.testing.assert_close(got[n], gru_equations(model, x[n]))
    torch.testing.assert_close(h[0], got[:, -1])


@pytest.mark.filterwarnings(NO_ONEDNN)
@pytest.mark.parametrize("options", [{}, {"proj_size": 3}, {"num_layers": 3, "bidirectional": True},
                                     {"num_layers": 2, "bidirectional": True, "proj_size": 3}])
def test_without_peepholes_it_is_torchs_lstm(options):
    ours, x = double(PeepholeLstm, 4, 6, **options), sequences(3, 5, 4)
    torchs = double(nn.LSTM, 4, 6, **options)
    with torch.no_grad():
        for name, parameter in ours.named_parameters():
            if name.startswith("peephole"):
                parameter.zero_()
            elif name.startswith("bias"):
                torchs.get_parameter(name.replace("bias", "bias_ih")).copy_(parameter)
                torchs.get_parameter(name.replace("bias", "bias_hh")).zero_()
            else:
                torchs.get_parameter(name).copy_(parameter)
    wanted = torchs(x)
    state = tuple(torch.rand_like(t) for t in wanted[1])
    for given in ((x,), (x, state)):
        got, wanted = ours(*given), torchs(*given)
        torch.testing.assert_close(got[0], wanted[0])
        torch.testing.assert_close(got[1][0], wanted[1][0])
        torch.testing.assert_close(got[1][1], wanted[1][1])


def test_the_reset_gate_does_not_stand_where_torch_has_it():
    ours, torchs, x = double(ResetBeforeGru, 4, 6), double(nn.GRU, 4, 6), sequences(3, 5, 4)
    with torch.no_grad():
        torchs.weight_ih_l0.copy_(ours.weight_ih_l0)
        torchs.weight_hh_l0.copy_(ours.weight_hh_l0)
        torchs.bias_ih_l0.copy_(ours.bias_l0)
        torchs.bias_hh_l0.zero_()
    torch.testing.assert_close(ours(x[:, :1])[0], torchs(x[:, :1])[0], msg="from h = 0 both are alike")
    assert (ours(x)[0] - torchs(x)[0]).abs().max() > 1e-3, "after that they are not"


@pytest.mark.parametrize("kind", [PeepholeLstm, ResetBeforeGru])
def test_directions_and_layers(kind):
    model, x = double(kind, 4, 6, num_layers=2, bidirectional=True), sequences(3, 5, 4)
    equations = gru_equations if kind is ResetBeforeGru else lambda m, s, suffix: lstm_equations(m, s, suffix)[0]
    got = model(x)[0]
    for n in range(3):
        steps = x[n]
        for layer in range(2):
            forward = equations(model, steps, f"_l{layer}")
            backward = equations(model, steps.flip(0), f"_l{layer}_reverse").flip(0)
            steps = torch.cat([forward, backward], -1)
        torch.testing.assert_close(got[n], steps)


@pytest.mark.parametrize("kind", [PeepholeLstm, ResetBeforeGru])
def test_a_sequence_in_two_parts(kind):
    model, x = double(kind, 4, 6, num_layers=2), sequences(3, 5, 4)
    whole, _ = model(x)
    start, state = model(x[:, :2])
    rest, _ = model(x[:, 2:], state)
    torch.testing.assert_close(torch.cat([start, rest], 1), whole)


@pytest.mark.parametrize("kind", [PeepholeLstm, ResetBeforeGru])
def test_batch_first_moves_axes_only(kind):
    model, x = double(kind, 4, 6, bidirectional=True), sequences(3, 5, 4)
    wanted = model(x)[0]
    model.batch_first = False
    assert torch.equal(model(x.transpose(0, 1))[0].transpose(0, 1), wanted)


def test_without_bias_and_with_dropout():
    model, x = double(ResetBeforeGru, 4, 6, num_layers=2, bias=False, dropout=0.5), sequences(3, 5, 4)
    assert not [name for name, _ in model.named_parameters() if "bias" in name]
    assert not torch.equal(model(x)[0], model(x)[0]), "dropout must act between layers while training"
    assert torch.equal(model.eval()(x)[0], model(x)[0])


def test_a_delay_is_learned():
    torch.manual_seed(0)
    model, head = PeepholeLstm(1, 16, proj_size=8, batch_first=True), nn.Linear(8, 1)
    optimizer = torch.optim.Adam([*model.parameters(), *head.parameters()], 0.02)
    losses = []
    for _ in range(150):
        x = torch.randn(32, 12, 1)
        loss = (head(model(x)[0])[:, 2:] - x[:, :-2]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.1 * losses[0], f"from {losses[0]:.3f} to {losses[-1]:.3f}"


@pytest.mark.parametrize(("kind", "options", "message"), [
    (PeepholeLstm, {"proj_size": 6}, r"^proj_size must be below the 6 hidden units, not 6; choose 0 for none$"),
    (PeepholeLstm, {"num_layers": 0}, r"^num_layers must be an integer of at least 1, not 0"),
    (ResetBeforeGru, {"dropout": 1.0}, r"^dropout must be from 0 to below 1, not 1\.0"),
])
def test_wrong_options(kind, options, message):
    with pytest.raises(Refusal, match=message):
        kind(4, 6, **options)


def test_wrong_inputs():
    with pytest.raises(Refusal, match=r"^Inputs must have the shape \(N, T, 4\), not \(3, 5, 3\); rearrange the axes$"):
        ResetBeforeGru(4, 6, batch_first=True)(torch.zeros(3, 5, 3))


@pytest.mark.parametrize(("kind", "options"), [(PeepholeLstm, {"proj_size": 3}), (ResetBeforeGru, {}),
                                               (ResetBeforeGru, {"hard": True})])
def test_padding_reaches_no_valid_step_of_either_direction(kind, options):
    model, x, lengths = double(kind, 4, 6, 2, bidirectional=True, **options), sequences(3, 7, 4), [7, 4, 1]
    found = model(x, lengths=torch.tensor(lengths))[0]
    for n, length in enumerate(lengths):
        torch.testing.assert_close(found[n, :length], model(x[n:n + 1, :length])[0][0])
    assert not torch.allclose(found[1, :4], model(x)[0][1, :4]), "without lengths it does"


def test_steps_keep_their_state_in_float32_under_autocast():
    torch.manual_seed(0)
    for model in (PeepholeLstm(4, 6, proj_size=3), ResetBeforeGru(4, 6)):
        x = torch.randn(5, 2, 4)
        with torch.autocast("cpu", torch.bfloat16):
            y = model(x)[0]
        assert y.dtype == torch.float32
        # The products with the input alone are rounded, to 8 bits: sums of four products below 4.
        torch.testing.assert_close(y, model(x)[0], atol=5 * 4 * 4 * 2.0**-8, rtol=0)
        y.sum().backward()
        assert all(parameter.grad.dtype == torch.float32 for parameter in model.parameters())


def test_initial_weights_let_states_last():
    torch.manual_seed(0)
    model = PeepholeLstm(24, 16, proj_size=8)
    for gate in model.weight_hh_l0.detach().split(16):
        torch.testing.assert_close(gate.t() @ gate, torch.eye(8))
    for gate in ResetBeforeGru(24, 16).weight_hh_l0.detach().split(16):
        torch.testing.assert_close(gate @ gate.t(), torch.eye(16))
    assert model.weight_ih_l0.abs().max() <= (6 / (24 + 16)) ** 0.5
    assert not model.bias_l0.any() and not model.peephole_l0.any()
