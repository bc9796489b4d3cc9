"""A sample of mutants of a small GRU: the checker finds most, and says of the others what is known."""
import pytest

from benchmarks.designs import Shape
from benchmarks.mutation.measure import of_design
from circulant.sim.quantize.quantize import quantize
from tests.sim import samples


@pytest.mark.soak
def test_a_sample_of_mutants_is_caught():
    model = samples.model()
    found = of_design(quantize(model, samples.data(model)), Shape((5, 5), {}, 4, {"multipliers": 12}), count=20, seed=1,
                      prove=False)
    assert found["planted"] == 20 == found["caught"] + len(found["survivors"])
    assert found["caught"] >= 10, found["survivors"]
