"""The file of a network in float64: it is read as it was written, and nothing else is taken for one."""
import numpy as np
import pytest

from circulant.sim import artifact
from circulant.sim.real import float_file
from circulant.sim.real.float_layers import Bidirectional
from circulant.sim.real.float_model import Conv, Flatten, Gru, Linear, Model, Pool, Residual, Scale
from circulant.sim.real.float_recurrent_layers import Lstm
from circulant.sim.refusal import Refusal
from circulant.sim.shape.window import Window

RNG = np.random.default_rng(3)


def gru(name):
    return Gru(name, 4, 8, RNG.normal(size=(3, 2, 1, 4)), RNG.normal(size=(3, 2, 2, 4)),
               bias_ih=RNG.normal(size=(3, 8)), bias_hh=RNG.normal(size=(3, 8)), returns="sequence")


def recurrent():
    lstm = Lstm("lstm", 16, 8, 8, RNG.normal(size=(4, 2, 4, 4)), weight_hh=RNG.normal(size=(4, 2, 2, 4)),
                bias_ih=RNG.normal(size=(4, 8)), bias_hh=RNG.normal(size=(4, 8)), peephole=RNG.normal(size=(3, 8)))
    return Model("recurrent", 4, True, (Bidirectional("both", gru("both.forward"), gru("both.backward")), lstm))


def images():
    window = Window((3, 3), padding=(1, 1))

    def conv(name):
        return Conv(name, 2, 2, (4, 4), window, weight=RNG.normal(size=(9, 1, 1, 2)), bias=RNG.normal(size=2))

    body = Residual("sum", 2, (4, 4), body=(conv("inner"),), shortcut=(), relu=True)
    scale = Scale("scale", 2, RNG.normal(size=2), RNG.normal(size=2))
    pool = Pool("pool", 2, (4, 4), Window((2, 2), (2, 2)), "max")
    return Model("images", 2, False, (conv("conv"), scale, body, pool, Flatten("flat", 2, (2, 2), "channels"),
                                      Linear("linear", 8, 3, RNG.normal(size=(1, 2, 4)), RNG.normal(size=3))),
                 shape=(2, 4, 4))


@pytest.mark.parametrize(("make", "shape"), [(recurrent, (3, 5, 4)), (images, (3, 2, 4, 4))])
def test_written_and_read_again(tmp_path, make, shape):
    model, x = make(), RNG.normal(size=shape)
    float_file.save(model, tmp_path / "float.npz")
    read = float_file.load(tmp_path / "float.npz")
    assert np.array_equal(read.run(x), model.run(x))
    assert [layer.name for layer in read.layers] == [layer.name for layer in model.layers]
    assert repr(read.flow) == repr(model.flow)


@pytest.mark.parametrize(("change", "words"), [
    (lambda tree: tree.update(kind="Path"), "must describe a network, but it does not \\('Path'\\)"),
    (lambda tree: tree["fields"].update(more=1), "unexpected keyword argument 'more'"),
    (lambda tree: tree["fields"].pop("name"), "missing 1 required positional argument: 'name'"),
    (lambda tree: tree["fields"].update(layers=3), "must describe a network, but it does not"),
    (lambda tree: tree["fields"].update(inputs=9), r"float\.npz: "),
    (lambda tree: tree["fields"]["layers"][1]["fields"].update(weight_ih={"array": "none"}), "does not \\('none'\\)"),
    (lambda tree: tree["fields"]["layers"][1]["fields"].update(hidden="x"), "must describe a network"),
])
def test_another_tree_is_refused(tmp_path, change, words):
    arrays = {}
    tree = float_file._plain(recurrent(), arrays)
    change(tree)
    artifact.write_npz(tmp_path / "float.npz", float_file.FORMAT, float_file.VERSION, arrays, model=tree)
    with pytest.raises(Refusal, match=words):
        float_file.load(tmp_path / "float.npz")


def test_a_layer_alone_is_no_network(tmp_path):
    arrays = {}
    tree = float_file._plain(gru("gru"), arrays)
    artifact.write_npz(tmp_path / "float.npz", float_file.FORMAT, float_file.VERSION, arrays, model=tree)
    with pytest.raises(Refusal, match="must describe a network, not a Gru; write it again"):
        float_file.load(tmp_path / "float.npz")
    integers = {name: array.astype(np.int64) for name, array in arrays.items()}
    artifact.write_npz(tmp_path / "float.npz", float_file.FORMAT, float_file.VERSION, integers, model=tree)
    with pytest.raises(Refusal, match="array0 must be float64, not int64"):
        float_file.load(tmp_path / "float.npz")


def test_a_missing_file(tmp_path):
    with pytest.raises(Refusal, match=r"float\.npz must exist, but it is missing"):
        float_file.load(tmp_path / "float.npz")
