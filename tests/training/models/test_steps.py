"""The derivatives by hand are those of the loops."""
import pytest
import torch

from circulant.training.models.steps import GruSteps, LstmSteps

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


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("capability", ["AVX512", "AVX2"])
def test_products_in_bfloat16_where_the_training_asks_for_it(monkeypatch, dtype, capability):
    """The state stays in the operands' type; a product is off by a rounding of both factors and of itself."""
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    rounds = dtype == torch.float32 and capability == "AVX512"
    before = torch.get_float32_matmul_precision()
    for steps, shapes in ((LstmSteps, ((T, N, 4 * HIDDEN), (N, 2), (N, HIDDEN), (4 * HIDDEN, 2), (2, HIDDEN),
                                       (3, HIDDEN))),
                          (GruSteps, ((T, N, 3 * HIDDEN), (N, HIDDEN), (3 * HIDDEN, HIDDEN)))):
        found = {}
        for precision in ("highest", "medium"):
            operands = [t.detach().to(dtype).requires_grad_() for t in tensors(*shapes)]
            try:
                torch.set_float32_matmul_precision(precision)
                outputs = steps.apply(*operands)
                outputs = outputs[0] if isinstance(outputs, tuple) else outputs
                outputs.square().sum().backward()
            finally:
                torch.set_float32_matmul_precision(before)
            found[precision] = [outputs.detach(), *(operand.grad for operand in operands)]
        for exact, rounded in zip(*found.values(), strict=True):
            assert rounded.dtype == dtype
            error = float((rounded - exact).norm() / exact.norm())
            assert (1e-4 < error < 0.05) if rounds else error < 1e-6, (steps.__name__, error)
