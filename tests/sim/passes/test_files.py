import numpy as np
import pytest

from circulant.sim.kinds.registry import layer_as_json, layer_from_json
from circulant.sim.passes.bases import activations, layer_arrays
from circulant.sim.passes.files import integers
from circulant.sim.refusal import Refusal
from tests.sim import samples


@pytest.mark.parametrize("layer", [samples.linear(relu=True), samples.gru(), samples.gru(reset="before")],
                         ids=["linear", "gru", "gru, reset before"])
def test_a_layer_is_read_as_it_was_written(layer):
    read = layer_from_json(layer_as_json(layer), layer_arrays(layer))
    assert type(read) is type(layer)
    assert layer_as_json(read) == layer_as_json(layer)
    assert list(layer_as_json(layer))[:3] == ["kind", "name", "inputs"]
    assert {name: array.tolist() for name, array in layer_arrays(read).items()} == {
        name: array.tolist() for name, array in layer_arrays(layer).items()}


def test_only_layers_with_gates_have_tables():
    assert activations(samples.linear()) == {}
    assert list(activations(samples.gru())) == ["sigmoid", "tanh"]


@pytest.mark.parametrize(("array", "given"), [
    (None, "missing"), (np.zeros((2, 2)), r"float64 of shape \(2, 2\)"),
    (np.zeros(2, np.int64), r"int64 of shape \(2,\)"), (np.zeros((0, 2), np.int64), r"int64 of shape \(0, 2\)")])
def test_what_is_no_matrix_of_integers_is_refused(array, given):
    arrays = {} if array is None else {"w": array}
    rule = rf"^The array 'w' must be 64-bit integers with 2 axes, not {given}; quantize again$"
    with pytest.raises(Refusal, match=rule):
        integers(arrays, "w", 2)
