import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

from circulant.sim.arith.activation import FUNCTIONS, METHODS
from circulant.sim.arith.fixed import Format
from circulant.sim.arith.segments import fit_pwl
from circulant.sim.refusal import Refusal
from circulant.training.blocks.fixed import activated, integers, quantized
from tests.sim.definitions import repeatable

SHAPES = st.lists(st.integers(0, 5), max_size=3).map(tuple)


def numbers(form, shape, seed, dtype):
    """All over the format and beyond it, halves of a step among them."""
    rng = np.random.default_rng(seed)
    wide = rng.normal(0, 1, shape) * form.hi * form.step * rng.choice([0.01, 0.5, 3])
    halves = (rng.integers(2 * form.lo, 2 * form.hi + 2, shape) / 2) * form.step
    return torch.from_numpy(np.where(rng.random(shape) < 0.3, halves, wide)).to(dtype)


@repeatable(300)
@given(st.integers(1, 25), st.integers(-8, 40), SHAPES, st.integers(0, 2 ** 32),
       st.sampled_from(["float32", "float64"]))
def test_torch_quantizes_as_numpy(width, frac, shape, seed, dtype):
    form = Format(width, frac)
    x = numbers(form, shape, seed, getattr(torch, dtype))
    wanted = form.quantize(x.double().numpy())
    assert np.array_equal(integers(x, form).numpy(), wanted)
    assert np.array_equal(quantized(x, form).double().numpy(), form.real(wanted))
    assert quantized(x, form).dtype == x.dtype


@repeatable(200)
@given(st.sampled_from(list(FUNCTIONS)), st.sampled_from(METHODS), st.integers(3, 24), st.integers(-2, 20),
       st.integers(3, 24), st.integers(0, 2), st.sampled_from([0.1, 0.01, 0.0005]), SHAPES, st.integers(0, 2 ** 32))
def test_torch_activates_as_numpy(function, method, in_width, in_frac, out_width, whole, error, shape, seed):
    input, output = Format(in_width, in_frac), Format(out_width, out_width - 1 - whole)
    table = fit_pwl(function, input, output, error=error, method=method)
    x = numbers(input, shape, seed, torch.float64)
    assert np.array_equal(activated(x, table).numpy(), output.real(table(input.quantize(x.numpy()))))


@pytest.mark.parametrize("width", [8, 16])
def test_hard_functions_are_those_of_torch(width):
    """hardtanh exactly; hardsigmoid's sixth within the rounding."""
    input, output = Format(width, width - 4), Format(width, width - 2)
    x = torch.from_numpy(input.real(np.arange(input.lo, input.hi + 1)))
    hard = {name: activated(x, fit_pwl(name, input, output)) for name in ("hard_tanh", "hard_sigmoid")}
    assert torch.equal(hard["hard_tanh"], quantized(functional.hardtanh(x), output))
    assert (hard["hard_sigmoid"] - functional.hardsigmoid(x)).abs().max() <= 0.625 * output.step


def test_gradients_pass_where_nothing_saturates():
    form = Format(4, 2)
    x = torch.tensor([-5.0, -2.0, -1.9, 0.1, 1.6, 1.75, 9.0], requires_grad=True)
    quantized(x, form).sum().backward()
    assert x.grad.tolist() == [0, 1, 1, 1, 1, 1, 0]


@pytest.mark.parametrize("function", ["sigmoid", "tanh"])
def test_the_gradient_of_a_table_is_its_lines(function):
    table = fit_pwl(function, Format(16, 12), Format(16, 14), error=0.0005)
    x = torch.linspace(-3, 3, 401, dtype=torch.float64, requires_grad=True)
    activated(x, table).sum().backward()
    mine = x.grad.clone()
    x.grad = None
    getattr(torch, function)(x).sum().backward()
    assert (mine - x.grad).abs().max() < 0.05
    assert (mine - x.grad).abs().mean() < 0.02


def test_refusals():
    with pytest.raises(Refusal, match=r"^Only finite values can be quantized, but the tensor holds NaN or infinity; "
                                      r"train again with a lower learning rate$"):
        integers(torch.tensor([1.0, float("nan")]), Format(8, 4))
    with pytest.raises(Refusal, match=r"^Values of Format\(width=26, frac=20\) must be exact in the tensor's type, but "
                                      r"torch\.float32 holds 24 bits of them; compute in float32 or float64, or choose "
                                      r"fewer bits$"):
        quantized(torch.zeros(2), Format(26, 20))
