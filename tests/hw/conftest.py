"""One generated design for all tests that only look at it."""
import pytest

from circulant.hw import Design, generate
from tests.hw.golden import network

SMALL = {"activation_bits": 9, "weight_bits": 7, "twiddle_bits": 8, "segments": 16}


@pytest.fixture(scope="session")
def design() -> Design:
    return generate(network(4, 6, 3, outputs=5, k_out=2, **SMALL), multipliers=40, objective="throughput")
