import numpy as np
import pytest

from circulant.hw import generate
from circulant.hw.kinds.argmax import ArgmaxLayer
from circulant.sim.arith.fixed import Format
from circulant.sim.cosim import verify
from circulant.sim.kinds.argmax import Argmax
from tests.hw.golden import blocks, network
from tests.hw.simulate import stream

GIVEN = Format(6, 2)


@pytest.mark.parametrize(("inputs", "k", "stalls"), [
    (10, 1, (0.0, 0.0)), (10, 4, (0.0, 0.6)), (16, 8, (0.4, 0.3)), (5, 8, (0.5, 0.0)), (2, 2, (0.3, 0.7)),
    (11, 3, (0.0, 0.0))])
def test_equals_golden(inputs, k, stalls):
    """Few values, so that many are equal, the least of them often the largest."""
    rng = np.random.default_rng(inputs)
    layer = Argmax("choice", inputs, GIVEN)
    x = np.where(rng.random((40, 1)) < 0.2, GIVEN.lo, rng.integers(-3, 3, (40, inputs)))
    x[::7] = rng.integers(GIVEN.lo, GIVEN.hi + 1, (6, inputs))
    given, wanted = ([block for row in rows for block in blocks([row], size)]
                     for rows, size in ((x, k), (layer(x), 1)))
    assert stream(ArgmaxLayer(layer, k=k), given, stall_i=stalls[0], stall_o=stalls[1]) == wanted
    assert len(np.unique(layer(x))) > inputs // 2


def test_at_the_end_of_a_design(tmp_path):
    net = network(4, 6, 3, outputs=5, k_out=2)
    design = generate(net, multipliers=40, argmax=True, reloadable=True, objective="throughput")
    x = np.random.default_rng(1).normal(size=(30, 5, net.flow.size))
    vectors = design.network.vectors(x)
    assert vectors.outputs.shape == (30, 1)
    assert len(np.unique(vectors.outputs)) > 2
    result = verify(design.write(tmp_path / "design"), vectors)
    assert (result.words, result.mismatches) == (30, 0), str(result.first)
