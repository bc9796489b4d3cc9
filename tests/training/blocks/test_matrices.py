"""Which matrices a model has, which block size each gets, and what it costs."""
import pytest
from torch import nn

from circulant.sim.refusal import Refusal
from circulant.training.blocks.matrices import assign, matrices, resolve, storage


def network():
    return nn.Sequential(nn.Conv2d(3, 20, (3, 2)), nn.Conv2d(20, 20, 3, groups=20), nn.Flatten(),
                         nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 10)))


def test_matrices():
    found = {name: (m.groups, m.rows, m.columns, m.kernel) for name, m in matrices(network()).items()}
    assert found == {"0.weight": (1, 20, 3, (3, 2)), "3.0.weight": (1, 64, 64, ()), "3.1.weight": (1, 10, 64, ())}, \
        "a convolution of several groups is no matrix"


@pytest.mark.parametrize(("dense", "wanted"), [
    ((), (8, 8, 8)), (("first",), (1, 8, 8)), (("last",), (8, 8, 1)), (("first", "last"), (1, 8, 1)),
    (("3",), (8, 1, 1)), (("3.0.weight",), (8, 1, 8)), (("0", "3.1"), (1, 8, 1)),
])
def test_assign(dense, wanted):
    assert tuple(assign(network(), 8, dense).values()) == wanted


def test_assign_by_name():
    assert assign(network(), {"3": 16, "3.1": 4}, ["3.0"]) == {"0.weight": 1, "3.0.weight": 1, "3.1.weight": 4}
    assert assign(nn.Linear(8, 8), 8, ["last"]) == {"weight": 1}


def test_first_is_a_whole_module():
    sizes = assign(nn.Sequential(nn.LSTM(8, 8, num_layers=2), nn.Linear(8, 8)), 4, ["first"])
    assert set(sizes.values()) == {1, 4} and sizes["1.weight"] == 4
    assert sum(k == 1 for k in sizes.values()) == 4, "all matrices of the LSTM belong to the first module"


def test_unknown_names_are_refused():
    with pytest.raises(Refusal, match=r"^Dense matrices must be modules or parameters of the model, or first or last, "
                                      r"not 'frist'; did you mean 'first'\?; legal are 0, 0\.weight, 3, 3\.0, "):
        assign(network(), 8, ["frist"])
    with pytest.raises(Refusal, match=r"^A block size must be given to a module or parameter of the model, not to '4'"):
        assign(network(), {"4": 8})


def test_resolve_names_what_it_refuses():
    with pytest.raises(Refusal, match=r"^0\.weight: Block size must not exceed both sides of its matrix \(20 × 3\)"):
        resolve(network(), {"0": 32})


def test_storage():
    found = storage(network(), {"0": 8, "3.1": 16})
    assert found["0.weight"][:3] == (8, 6 * 3 * 1 * 8, 6 * 20 * 3)
    assert found["0.weight"].padding == pytest.approx(1 - 20 * 3 / (24 * 8))
    assert found["3.0.weight"] == (1, 64 * 64, 64 * 64, 0.0)
    assert found["3.1.weight"][:3] == (16, 64, 640)
    assert found["3.1.weight"].padding == pytest.approx(6 / 16)


def test_storage_of_gates_that_are_padded_each():
    found = storage(nn.LSTM(8, 12, proj_size=6), 8)
    assert found["weight_hh_l0"][:3] == (8, 4 * 2 * 1 * 8, 4 * 12 * 6)
    assert found["weight_hh_l0"].padding == pytest.approx(1 - 12 * 6 / (16 * 8))
    assert found["weight_hr_l0"][:3] == (8, 1 * 2 * 8, 6 * 12)
