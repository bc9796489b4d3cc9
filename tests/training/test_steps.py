"""The derivatives by hand are those of the loops."""
import pytest
import torch

from circulant.training.steps import GruSteps, LstmSteps

T, N, HIDDEN = 4, 3, 5


def tensors(*shapes, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [None if shape is None else torch.randn(shape, generator=generator, dtype=torch.float64, requires_grad=True)
            for shape in shapes]


@pytest.mark.parametrize("projection", [None, 2])
@pytest.mark.parametrize("peephole", [False, True])
def test_lstm(projection, peephole):
    outputs = projection or HIDDEN
    operands = tensors((T, N, 4 * HIDDEN), (N, outputs), (N, HIDDEN), (4 * HIDDEN, outputs),
                       (projection, HIDDEN) if projection else None, (3, HIDDEN) if peephole else None)
    assert torch.autograd.gradcheck(LstmSteps.apply, operands), "of outputs and cell, in every operand"


def test_lstm_of_which_only_the_cell_is_used():
    operands = tensors((T, N, 4 * HIDDEN), (N, HIDDEN), (N, HIDDEN), (4 * HIDDEN, HIDDEN), None, (3, HIDDEN))
    assert torch.autograd.gradcheck(lambda *given: LstmSteps.apply(*given)[1], operands)


def test_gru():
    operands = tensors((T, N, 3 * HIDDEN), (N, HIDDEN), (3 * HIDDEN, HIDDEN))
    assert torch.autograd.gradcheck(GruSteps.apply, operands), "in every operand"


def test_operands_stay_as_they_are():
    for steps, operands in ((LstmSteps, tensors((T, N, 4 * HIDDEN), (N, HIDDEN), (N, HIDDEN), (4 * HIDDEN, HIDDEN),
                                                None, (3, HIDDEN))),
                            (GruSteps, tensors((T, N, 3 * HIDDEN), (N, HIDDEN), (3 * HIDDEN, HIDDEN)))):
        before = [None if t is None else t.detach().clone() for t in operands]
        outputs = steps.apply(*operands)
        sum(output.sum() for output in (outputs if isinstance(outputs, tuple) else (outputs,))).backward()
        for now, then in zip(operands, before, strict=True):
            assert now is None or torch.equal(now, then), f"{steps.__name__} must not write into its operands"
