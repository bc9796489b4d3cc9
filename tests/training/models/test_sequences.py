"""Models over sequences: what their layers are called and see."""
import pytest
import torch

from circulant.sim.refusal import Refusal
from circulant.training.models.sequences import KeywordCrnn, SequenceLabeller, recurrent


def test_a_labeller_of_one_direction_sees_no_future():
    torch.manual_seed(0)
    x = torch.rand(2, 6, 4)
    changed = x.clone()
    changed[:, 3] += 1
    forward = SequenceLabeller(4, 8, 3, cell="lstm", peephole=True)
    assert torch.equal(forward(x)[:, :3], forward(changed)[:, :3])
    both = SequenceLabeller(4, 8, 3, cell="lstm", peephole=True, bidirectional=True)
    assert not torch.equal(both(x)[:, :3], both(changed)[:, :3])


def test_a_front_comes_first():
    torch.manual_seed(0)
    model, x = SequenceLabeller(4, 8, 3, front=6), torch.rand(2, 5, 4)
    assert model.gru.input_size == model.front.out_features == 6
    torch.testing.assert_close(model(x), model.linear(model.gru(model.front(x))[0]))
    assert next(name for name, _ in model.named_children()) == "front", "it is the first layer, which may stay dense"


@pytest.mark.parametrize("cell", ["gru", "lstm", "reset_gru"])
def test_a_labeller_of_both_directions_can_leave_padding_out(cell):
    torch.manual_seed(0)
    model = SequenceLabeller(4, 8, 3, cell=cell, layers=2, bidirectional=True)
    x, lengths = torch.rand(3, 6, 4), [2, 6, 5]
    found = model(x, torch.tensor(lengths))
    assert found.shape == (3, 6, 3)
    for n, length in enumerate(lengths):
        torch.testing.assert_close(found[n, :length], model(x[n:n + 1, :length])[0])


def test_a_crnn_keeps_steps_apart():
    torch.manual_seed(0)
    model = KeywordCrnn(10, 8, 3, width=4).eval()
    assert model.classifier.gru.input_size == 4 * 5
    seen = []
    model.classifier.gru.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    x = torch.rand(2, 16, 10)
    changed = x.clone()
    changed[:, 12:] += 1
    model(x)
    model(changed)
    assert seen[0].shape == (2, 8, 20)
    assert torch.equal(seen[0][:, :5], seen[1][:, :5]), "a step must see windows of five steps around it alone"
    assert not torch.equal(seen[0][:, 6:], seen[1][:, 6:])


@pytest.mark.parametrize(("cell", "options", "message"), [
    ("elman", {}, r"^A cell must be one of 'gru', 'lstm', 'reset_gru', not 'elman'$"),
    ("gru", {"peephole": True}, r"^Peepholes and a projection must be asked of an 'lstm', not of a 'gru'"),
    ("lstm", {"projection": 8}, r"^A projection must be below the 8 hidden units, not 8"),
])
def test_wrong_cells(cell, options, message):
    with pytest.raises(Refusal, match=message):
        recurrent(cell, 4, 8, **options)
