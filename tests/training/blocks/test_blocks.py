"""The set of block-circulant matrices: its members and its projection by definition."""
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from circulant.sim.arith import circulant
from circulant.sim.refusal import Refusal
from circulant.training.blocks.blocks import BlockCirculant

shapes = st.tuples(st.integers(1, 20), st.integers(1, 20), st.sampled_from((1, 2, 4, 8, 16)), st.sampled_from((1, 3))
                   ).filter(lambda s: s[2] <= max(s[0], s[1]))


def definition(first: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """The dense matrix, entry by entry."""
    k = first.shape[-1]
    return np.array([[first[i // k, j // k, (i - j) % k] for j in range(columns)] for i in range(rows)])


@given(shapes, st.integers(0, 2**31))
@settings(max_examples=50, deadline=None)
def test_forward_is_the_definition(shape, seed):
    m, n, k, groups = shape
    constraint = BlockCirculant(groups * m, n, k, groups)
    first = np.random.default_rng(seed).normal(size=constraint.shape)
    wanted = np.concatenate([definition(gate, m, n) for gate in first])
    np.testing.assert_array_equal(constraint(torch.from_numpy(first)).numpy(), wanted)


@given(shapes, st.integers(0, 2**31))
@settings(max_examples=50, deadline=None)
def test_right_inverse_is_the_least_squares_solution(shape, seed):
    m, n, k, groups = shape
    constraint = BlockCirculant(groups * m, n, k, groups)
    dense = np.random.default_rng(seed).normal(size=(groups, m, n))
    _, p, q, _ = constraint.shape
    basis = np.stack([definition(unit.reshape(p, q, k), m, n).ravel() for unit in np.eye(p * q * k)], axis=1)
    wanted = [np.linalg.lstsq(basis, gate.ravel(), rcond=None)[0] for gate in dense]
    got = constraint.right_inverse(torch.from_numpy(dense.reshape(groups * m, n)))
    np.testing.assert_allclose(got.numpy().reshape(groups, -1), wanted, atol=1e-12)


def test_right_inverse_is_the_mean_of_wrapped_diagonals_not_their_last_entry():
    dense = torch.arange(16.0).reshape(4, 4)
    wanted = [np.mean([dense[(r + b) % 4, b] for b in range(4)]) for r in range(4)]
    got = BlockCirculant(4, 4, 4).right_inverse(dense)[0, 0, 0]
    np.testing.assert_allclose(got, wanted)
    last = torch.stack([dense[(r + 3) % 4, 3] for r in range(4)]) / 4
    assert not torch.allclose(got, last), "overwriting along a diagonal would give its last entry divided by k"


@given(shapes, st.integers(0, 2**31))
@settings(max_examples=50, deadline=None)
def test_projection_is_orthogonal_and_idempotent(shape, seed):
    m, n, k, groups = shape
    constraint = BlockCirculant(groups * m, n, k, groups)
    rng = np.random.default_rng(seed)
    dense = torch.from_numpy(rng.normal(size=(groups * m, n)).astype(np.float32))
    member = constraint(torch.from_numpy(rng.normal(size=constraint.shape)))
    nearest = constraint.project(dense)
    residual = (dense - nearest).double()
    assert abs(float((residual * member).sum())) < 1e-5, "the residual must be orthogonal to every member of the set"
    assert torch.equal(constraint.project(nearest), nearest), "a member must be its own projection, bit for bit"


@pytest.mark.parametrize(("m", "n", "k"), [(16, 16, 8), (10, 64, 8), (10, 6, 8), (5, 3, 4)])
def test_right_inverse_equals_the_projection_of_sim(m, n, k):
    dense = np.random.default_rng(0).normal(size=(m, n))
    got = BlockCirculant(m, n, k).right_inverse(torch.from_numpy(dense))[0]
    np.testing.assert_allclose(got, circulant.project(dense, k), atol=1e-15)


def test_groups_must_divide_the_rows():
    with pytest.raises(Refusal, match=r"^The rows must be a multiple of the 3 groups, not 16"):
        BlockCirculant(16, 8, 8, groups=3)


@pytest.mark.parametrize("kernel", [(3,), (3, 2)])
@pytest.mark.parametrize(("m", "n", "k"), [(8, 8, 4), (10, 3, 4), (5, 6, 1)])
def test_each_position_of_a_kernel_is_a_matrix(m, n, k, kernel):
    constraint = BlockCirculant(m, n, k, kernel=kernel)
    dense = torch.from_numpy(np.random.default_rng(0).normal(size=(m, n, *kernel)))
    first = constraint.right_inverse(dense)
    assert first.shape == constraint.shape == (math.prod(kernel), -(-m // k), -(-n // k), k)
    member = constraint(first)
    alone = BlockCirculant(m, n, k)
    for number, position in enumerate(np.ndindex(*kernel)):
        here = (slice(None), slice(None), *position)
        assert torch.equal(member[here], alone.project(dense[here])), f"position {position} must be projected alone"
        assert torch.equal(alone(first[number:number + 1]), member[here]), f"group {number} must be {position}"
    assert torch.equal(constraint.project(member), member), "a member must be its own projection"


def test_counts_are_the_entries_of_each_diagonal():
    assert torch.equal(BlockCirculant(8, 8, 4).counts, torch.full((1, 2, 2, 4), 4))
    ragged = BlockCirculant(5, 4, 4).counts
    assert ragged[0, 1, 0].tolist() == [1, 1, 1, 1], "one row of a block holds each entry once"
