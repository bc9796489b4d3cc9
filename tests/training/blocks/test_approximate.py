"""Training through approximate products has golden's integers in its forward pass, and exact gradients."""
import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from circulant.sim.quantize.quantize import grids, quantize
from circulant.sim.refusal import Refusal
from circulant.training import reference
from circulant.training.blocks.approximate import multiplying
from circulant.training.blocks.constraint import compress
from circulant.training.blocks.quantized_set import constrain_to_quantized, settled, weight_formats
from circulant.training.loop.finetune import finetune
from circulant.training.settings.training import TrainingSettings
from tests.modules import Net

BITS = {"weight_bits": 8, "activation_bits": 10}
X = np.random.default_rng(0).normal(0, 1, (40, 6))

Y = np.random.default_rng(2).integers(0, 4, 40)


def recurrent(cell):
    return Net(lambda m, x: m.out(m.cell(x)[0][:, -1]), cell=cell(6, 8, batch_first=True), out=nn.Linear(8, 4))


def prepared(model, x, name, k=4):
    """A model on its grids, and its golden networks with exact products and with those of a multiplier."""
    model = compress(model, k)
    networks = [quantize(reference(model, x), x, multiplier=each, **BITS) for each in ("exact", name)]
    tuned = constrain_to_quantized(model, weight_formats(model, networks[0]))
    return tuned, *networks


@pytest.mark.parametrize("name", ["truncated:5", "mitchell"])
def test_a_perceptron_gives_the_integers_of_golden(name):
    torch.manual_seed(0)
    tuned, exact, network = prepared(nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4)), X, name)
    x = torch.tensor(X, dtype=torch.float32, requires_grad=True)
    with multiplying(tuned, network):
        y = tuned(x)
    assert (network.output_format.quantize(y.detach().double().numpy()) == network.run(X).integers).all()
    assert (network.run(X).integers != exact.run(X).integers).any()
    assert "forward" not in vars(tuned[0]), "exact again"


def test_the_gradient_of_a_layer_is_that_of_exact_products():
    torch.manual_seed(0)
    tuned, _, network = prepared(nn.Sequential(nn.Linear(6, 8)), X, "mitchell")
    x = torch.tensor(X, dtype=torch.float32)

    def gradients():
        tuned.zero_grad()
        given = x.clone().requires_grad_()
        (tuned(given) * torch.arange(8)).sum().backward()
        return [given.grad.clone(), *(each.grad.clone() for each in tuned.parameters())]

    wanted = gradients()
    with multiplying(tuned, network):
        found = gradients()
    for mine, its in zip(found, wanted, strict=True):
        torch.testing.assert_close(mine, its)


@pytest.mark.parametrize("cell", [nn.GRU, nn.LSTM])
def test_a_cell_is_as_far_from_golden_as_its_functions_are_from_tables(cell):
    torch.manual_seed(0)
    x = np.random.default_rng(1).normal(0, 1, (30, 5, 6))
    tuned, exact, network = prepared(recurrent(cell), x, "mitchell")
    given = torch.tensor(x, dtype=torch.float32)
    with multiplying(tuned, network):
        y = tuned(given)
        y.sum().backward()
    assert all(each.grad is not None and each.grad.abs().max() > 0 for each in tuned.parameters())
    golden = network.run(x).real
    away = np.abs(y.detach().numpy() - golden).max()
    assert 5 * away < np.abs(exact.run(x).real - golden).max(), away
    torch.testing.assert_close(settled(tuned)(given), tuned(given))


@pytest.mark.parametrize("cell", [nn.GRU, nn.LSTM])
def test_packed_sequences_are_each_what_they_are_alone(cell):
    """As a labeller passes them; outputs and last states are in the order in which the sequences came."""
    torch.manual_seed(0)
    tuned, _, network = prepared(recurrent(cell), np.random.default_rng(1).normal(0, 1, (30, 5, 6)), "mitchell")
    x, lengths = torch.randn(3, 5, 6), [2, 5, 3]
    with multiplying(tuned, network):
        packed, last = tuned.cell(pack_padded_sequence(x, torch.tensor(lengths), True, enforce_sorted=False))
        alone = [tuned.cell(x[n:n + 1, :length]) for n, length in enumerate(lengths)]
    y, _ = pad_packed_sequence(packed, batch_first=True)
    for n, (length, (wanted, end)) in enumerate(zip(lengths, alone, strict=True)):
        assert torch.equal(y[n, :length], wanted[0]) and not y[n, length:].any()
        for mine, its in zip(*((each,) if cell is nn.GRU else each for each in (last, end)), strict=True):
            assert mine.shape == (1, 3, 8) and torch.equal(mine[:, n], its[:, 0])


@pytest.mark.parametrize(("cell", "what"), [
    (lambda *args, **more: nn.GRU(*args, **more, bidirectional=False, num_layers=2), "GRU"), (nn.RNN, "RNN")])
def test_other_layers_are_refused(cell, what):
    tuned, _, network = prepared(recurrent(cell), X[:, None], "mitchell")
    rule = ("^A training through approximate products must be that of Linear layers, and of torch's GRU and LSTM with "
            f"one level, one direction and no projection, but 'cell' is another Parametrized{what}; "
            r"set quantization\.finetune_epochs to 0$")
    with pytest.raises(Refusal, match=rule), multiplying(tuned, network):
        pass


def test_finetuning_brings_approximate_outputs_nearer():
    """The loss, the distance from the model's outputs, is less behind it than that of the model as it was."""
    torch.manual_seed(0)
    model = compress(nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 4)), 4)
    network = quantize(reference(model, X), X, multiplier="truncated:7", **BITS)
    forms, wanted = weight_formats(model, network), model(torch.tensor(X, dtype=torch.float32)).detach().numpy()
    tuned = finetune(model, (X.astype(np.float32), Y), forms, epochs=30, through=network,
                     settings=TrainingSettings(batch_size=8))
    after = quantize(reference(tuned, X), X, multiplier="truncated:7", grids=grids(network), **BITS)
    before, now = (np.square(each.run(X).real - wanted).mean() for each in (network, after))
    assert now < before / 2, (before, now)
