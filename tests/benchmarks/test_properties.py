"""What hypothesis draws, networks, experiment files and damaged artifacts, is exact or refused, never a traceback."""
import tempfile
from contextlib import suppress
from dataclasses import fields, is_dataclass
from pathlib import Path

import hypothesis
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.draw import KINDS, draw
from circulant.experiment import Experiment, parse
from circulant.sim.golden.network import Network
from circulant.sim.quantize.quantize import quantize
from circulant.sim.refusal import Refusal
from tests import independent
from tests.choices import Choices

NETWORKS = 60
"""Networks in `make test`."""

SOAKED = settings().max_examples >= 1000
"""Whether the profile of a soak is loaded, with 1,000 networks."""

MANY = settings(deadline=None, derandomize=True, max_examples=1000 if SOAKED else NETWORKS,
                suppress_health_check=[hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.data_too_large])


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A network and the folder in which it is saved."""
    drawn = draw(1)
    network = quantize(drawn.model, drawn.data)
    folder = tmp_path_factory.mktemp("small")
    network.save(folder)
    return network, folder


@MANY
@given(st.data(), st.integers(0, len(KINDS) - 1), st.integers(0, 99))
def test_a_network_equals_the_independent_model_or_is_refused(data, kind, seed):
    drawn = draw(kind, samples=1, chooser=Choices(data, seed).generator())
    try:
        network = quantize(drawn.model, drawn.data, **drawn.widths)
    except Refusal:
        return
    vectors = network.vectors(drawn.data[:1])
    with tempfile.TemporaryDirectory() as folder:
        network.save(folder)
        found = independent.load(Path(folder))(vectors.inputs[0].tolist())
    np.testing.assert_array_equal(np.array(found).reshape(-1), vectors.outputs[0].reshape(-1))


TABLES = {table.name: [key.name for key in fields(table.default_factory)] for table in fields(Experiment)
          if is_dataclass(table.default_factory)}
VALUES = st.one_of([st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20),
                   st.lists(st.integers(), max_size=3),
                    st.dictionaries(st.text(max_size=5), st.integers(), max_size=2)])


@settings(deadline=None, derandomize=True, max_examples=200)
@given(st.dictionaries(
    st.sampled_from([*TABLES, "unknown"]),
    st.one_of(VALUES, st.dictionaries(st.sampled_from(sorted({key for keys in TABLES.values() for key in keys})),
                                      VALUES, max_size=4)), max_size=4))
def test_an_experiment_is_read_or_refused(tables):
    with suppress(Refusal):
        parse(tables)


@settings(deadline=None, derandomize=True, max_examples=100,
          suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture])
@given(st.sampled_from(["network.json", "weights.npz"]), st.floats(0, 1), st.binary(max_size=8), st.integers(0, 8))
def test_a_damaged_network_is_refused_or_the_same(small, file, place, bytes_now, bytes_gone):
    network, folder = small
    whole = (folder / file).read_bytes()
    at = int(place * len(whole))
    try:
        (folder / file).write_bytes(whole[:at] + bytes_now + whole[at + bytes_gone:])
        with suppress(Refusal):
            assert Network.load(folder).hash == network.hash
    finally:
        (folder / file).write_bytes(whole)
