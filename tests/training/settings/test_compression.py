"""The block size: a power of two, one for all matrices or one for each."""
import pytest

from circulant.sim.refusal import Refusal
from circulant.training.settings.compression import CompressionSettings


@pytest.mark.parametrize("block_size", [1, 64, {"gru": 8, "linear": 2}])
def test_legal(block_size):
    assert CompressionSettings(block_size).block_size == block_size


@pytest.mark.parametrize("block_size", [0, 12, 128, {"gru": 3}, "8"])
def test_illegal(block_size):
    with pytest.raises(Refusal, match=r"^compression\.block_size must be a power of two from 1 to 64, or a table from"):
        CompressionSettings(block_size)
