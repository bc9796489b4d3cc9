from dataclasses import replace

import numpy as np
import pytest

from circulant.sim import artifact
from circulant.sim.refusal import Refusal
from circulant.sim.vectors import Vectors
from tests.refused import refused


def vectors(seed=0):
    rng = np.random.default_rng(seed)
    return Vectors(rng.integers(-2 ** 15, 2 ** 15, (4, 3, 5)), rng.integers(-2 ** 40, 2 ** 40, (4, 2)), "abc")


def test_round_trip(tmp_path):
    path = tmp_path / "new" / "vectors.npz"
    sha = vectors().save(path)
    read = Vectors.load(path)
    np.testing.assert_array_equal(read.inputs, vectors().inputs)
    np.testing.assert_array_equal(read.outputs, vectors().outputs)
    assert (read.network, read.inputs.dtype, read.outputs.dtype) == ("abc", np.int64, np.int64)
    assert artifact.read_npz(path, "circulant-vectors", 2)[1] == {"network": "abc", "hash": sha}


def test_hash_covers_everything(tmp_path):
    a = vectors()
    other = [a, Vectors(a.inputs + 1, a.outputs, "abc"), Vectors(a.inputs, a.outputs + 1, "abc"),
             Vectors(a.inputs, a.outputs, "abd")]
    assert len({each.save(tmp_path / "x.npz") for each in other}) == 4


def test_length():
    assert len(vectors()) == 4


@pytest.mark.parametrize("outputs", [0, 3, 5])
def test_init_wrong_counts(outputs):
    message = (f"^Vectors must have as many outputs as inputs, not {outputs} and 4; make them again with "
               r"Network\.vectors$")
    with pytest.raises(Refusal, match=message):
        Vectors(np.zeros((4, 5), np.int64), np.zeros((outputs, 2), np.int64), "abc")


def test_the_first_samples():
    vectors = Vectors(np.arange(20).reshape(10, 2), np.arange(10)[:, None], "abc")
    some = vectors.first(4)
    assert (some.inputs.tolist(), some.outputs.tolist(), some.network) == (
        [[0, 1], [2, 3], [4, 5], [6, 7]], [[0], [1], [2], [3]], "abc")
    assert vectors.first(0) is vectors
    assert len(vectors.first(100)) == 10
    assert vectors.steps.tolist() == [1] * 10


def test_lengths_go_along(tmp_path):
    whole = vectors()
    assert whole.steps.tolist() == [3, 3, 3, 3]
    some = replace(whole, lengths=np.array([3, 1, 2, 3]))
    path = tmp_path / "vectors.npz"
    assert some.save(path) != whole.save(path), "they belong to the contents"
    some.save(path)
    read = Vectors.load(path)
    assert read.steps.tolist() == [3, 1, 2, 3]
    assert read.first(2).lengths.tolist() == [3, 1]
    with pytest.raises(Refusal, match=r"^Vectors must have lengths from 1 to their 3 steps, not from 1 to 4; "):
        replace(whole, lengths=np.array([3, 1, 2, 4]))


@pytest.mark.parametrize(("write", "sentence"), [
    (lambda path: None, " must exist, but it is missing; run the step that writes it first"),
    (lambda path: path.write_bytes(b""),
     " must be a circulant-vectors archive, but it is not (File is not a zip file); write it again"),
    (lambda path: artifact.write_npz(path, "circulant-weights", 1, {}),
     ": field 'format' must be 'circulant-vectors', not 'circulant-weights'; give the right file"),
    (lambda path: artifact.write_npz(path, "circulant-vectors", 1, {}),
     ": field 'version' must be 2, not 1; write the file again with this version of circulant"),
], ids=["missing", "empty", "format", "version"])
def test_load_wrong_file(tmp_path, write, sentence):
    path = tmp_path / "vectors.npz"
    write(path)
    assert refused(Vectors.load, path) == f"{path}{sentence}"


@pytest.mark.parametrize(("values", "given"), [
    (np.zeros((4, 3)), "float64 of shape (4, 3)"), (np.zeros((4, 3), complex), "complex128 of shape (4, 3)"),
    (np.full((4, 3), "1"), "<U1 of shape (4, 3)"), (np.zeros((4, 3), object), "object of shape (4, 3)"),
    (np.zeros((4, 3), bool), "bool of shape (4, 3)"), (np.array(3), "int64 of shape ()"),
    (np.full((4, 3), 1 << 63, np.uint64), "uint64 of shape (4, 3)")], ids=str)
@pytest.mark.parametrize("name", ["inputs", "outputs"])
def test_anything_but_integers_is_refused(values, given, name):
    arrays = {"inputs": np.zeros((4, 3), np.int64), "outputs": np.zeros((4, 3), np.int64)} | {name: values}
    with pytest.raises(Refusal) as caught:
        Vectors(**arrays, network="abc")
    assert str(caught.value) == (f"The {name} of vectors must be an array of integers of 64 bits or less, not {given}; "
                                 "make them with Network.vectors")


def test_integers_of_any_width_are_taken():
    for kind in (np.int8, np.uint16, np.uint64):
        assert len(Vectors(np.ones((4, 3), kind), np.ones((4, 3), kind), "abc")) == 4


@pytest.mark.parametrize("missing", ["inputs", "outputs"])
def test_a_missing_array_is_named(tmp_path, missing):
    path = tmp_path / "vectors.npz"
    arrays = {"inputs": np.zeros((4, 3), np.int64), "outputs": np.zeros((4, 3), np.int64)}
    del arrays[missing]
    artifact.write_npz(path, Vectors.KIND, Vectors.VERSION, arrays, network="abc")
    with pytest.raises(Refusal, match=rf"^{path} must hold 'inputs' and 'outputs', but '{missing}' is missing; write"):
        Vectors.load(path)
