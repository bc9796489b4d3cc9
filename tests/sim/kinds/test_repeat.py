"""Repeated vectors: as many steps as a sequence has, of any length; file, bound, and refusals."""
import numpy as np
import pytest

from circulant.sim.arith.fixed import Format
from circulant.sim.kinds.repeat import FloatRepeat, Repeat
from circulant.sim.real.float_model import Model
from circulant.sim.refusal import Refusal
from circulant.sim.shape.graph import Input, Node
from circulant.sim.shape.window import Flow
from tests.random_networks import Random
from tests.sim import samples


def autoencoder():
    r = Random(1)
    nodes = (Node(r.lstm("encoder", 5, 6, 2, returns="last"), ("x",)),
             Node(FloatRepeat("repeat", 6, 5), ("x", "encoder")),
             Node(r.lstm("decoder", 6, 7, 2, returns="sequence"), ("repeat",)),
             Node(r.linear("out", 7, 5, 1), ("decoder",)))
    return Model("autoencoder", (Input("x", Flow(5, sequence=True)),), nodes, ("out",))


def test_each_vector_stands_at_each_step_of_its_sequence():
    layer = Repeat("repeat", 2, 3, Format(8, 4), Format(9, 5))
    vectors = np.array([[1, -2], [3, 4], [5, 6]])
    for lengths in (None, np.array([4, 2, 1])):
        found = layer([np.full((3, 4, 3), 99), vectors], None, lengths)
        for n, t in np.ndindex(3, 4):
            wanted = vectors[n] if lengths is None or t < lengths[n] else [0, 0]
            assert found[n, t].tolist() == list(wanted)


def test_an_autoencoder_is_within_the_bound_and_comes_back_from_its_file(tmp_path):
    samples.comes_back_within_the_bound(autoencoder(), np.random.default_rng(2).normal(0, 0.6, (20, 9, 5)), tmp_path)


def test_sequences_of_different_lengths_are_those_by_themselves():
    samples.each_is_as_by_itself(autoencoder(), np.random.default_rng(3).normal(0, 0.6, (6, 9, 5)),
                                 np.array([3, 9, 1, 5, 9, 2]))


def test_images_and_vectors_have_no_steps_to_count():
    with pytest.raises(Refusal, match=r"^Layer 'repeat' must take a sequence, and then one vector, not images of 6 x 5 "
                                      r"with 4 channels and vectors of 3 values; correct its sources$"):
        FloatRepeat("repeat", 3, 4).following((Flow(4, (6, 5)), Flow(3)))
