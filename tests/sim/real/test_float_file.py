"""The file of a network in float64: it is read as it was written, and nothing else is taken for one."""
import numpy as np
import pytest

from circulant.sim import artifact
from circulant.sim.kinds.conv import FloatConv
from circulant.sim.kinds.flatten import FloatFlatten
from circulant.sim.kinds.gru import FloatGru
from circulant.sim.kinds.linear import FloatLinear
from circulant.sim.kinds.lstm import FloatLstm
from circulant.sim.kinds.pool import FloatPool
from circulant.sim.kinds.scale import FloatScale
from circulant.sim.real import float_file
from circulant.sim.real.float_model import Bidirectional, Model, Residual
from circulant.sim.refusal import Refusal
from circulant.sim.shape.window import Window

RNG = np.random.default_rng(3)


def gru(name):
    return FloatGru(name, 4, 8, RNG.normal(size=(3, 2, 1, 4)), RNG.normal(size=(3, 2, 2, 4)),
                    bias_ih=RNG.normal(size=(3, 8)), bias_hh=RNG.normal(size=(3, 8)), returns="sequence")


def directions():
    """Layers of which the first has both directions."""
    lstm = FloatLstm("lstm", 16, 8, 8, RNG.normal(size=(4, 2, 4, 4)), weight_hh=RNG.normal(size=(4, 2, 2, 4)),
                     bias_ih=RNG.normal(size=(4, 8)), bias_hh=RNG.normal(size=(4, 8)), peephole=RNG.normal(size=(3, 8)))
    return Bidirectional("both", gru("both.forward"), gru("both.backward")), lstm


def pixels():
    """Layers over images, with a sum among them."""
    window = Window((3, 3), padding=(1, 1))

    def conv(name):
        return FloatConv(name, 2, 2, (4, 4), window, weight=RNG.normal(size=(9, 1, 1, 2)), bias=RNG.normal(size=2))

    body = Residual("sum", 2, (4, 4), body=(conv("inner"),), shortcut=(), relu=True)
    scale = FloatScale("scale", 2, RNG.normal(size=2), RNG.normal(size=2))
    pool = FloatPool("pool", 2, (4, 4), Window((2, 2), (2, 2)), "max")
    return (conv("conv"), scale, body, pool, FloatFlatten("flat", 2, (2, 2), "channels"),
            FloatLinear("linear", 8, 3, RNG.normal(size=(1, 2, 4)), RNG.normal(size=3)))


def recurrent():
    return Model.chain("recurrent", 4, True, directions())


def images():
    return Model.chain("images", 2, False, pixels(), shape=(2, 4, 4))


@pytest.mark.parametrize(("make", "shape"), [(recurrent, (3, 5, 4)), (images, (3, 2, 4, 4))])
def test_written_and_read_again(tmp_path, make, shape):
    model, x = make(), RNG.normal(size=shape)
    float_file.save(model, tmp_path / "float.npz")
    read = float_file.load(tmp_path / "float.npz")
    assert np.array_equal(read.run(x), model.run(x))
    assert [layer.name for layer in read.layers] == [layer.name for layer in model.layers]
    assert repr(read.flow) == repr(model.flow)


def test_a_file_from_before_a_network_was_a_graph(tmp_path):
    """Its layers stood in a row, both directions and sums among them."""
    for layers, inputs, shape in (directions(), 4, ()), (pixels(), 2, (2, 4, 4)):
        arrays, x = {}, RNG.normal(size=(3, *(shape or (5, 4))))
        chain = Model.chain("old", inputs, not shape, layers, shape)
        fields = {"name": "old", "inputs": inputs, "sequence": not shape, "layers": layers, "shape": shape}
        tree = {"kind": "Model", "fields": {name: float_file._plain(value, arrays) for name, value in fields.items()}}
        artifact.write_npz(tmp_path / "float.npz", float_file.FORMAT, 1, arrays, model=tree)
        read = float_file.load(tmp_path / "float.npz")
        assert np.array_equal(read.run(x), chain.run(x))
        assert [(node.name, node.sources) for node in read.nodes] == [(node.name, node.sources) for node in chain.nodes]


def layer_of(tree, number):
    return tree["fields"]["nodes"][number]["fields"]["layer"]


@pytest.mark.parametrize(("change", "words"), [
    (lambda tree: tree.update(kind="Path"), "must describe a network, but it does not \\('Path'\\)"),
    (lambda tree: tree["fields"].update(more=1), "unexpected keyword argument 'more'"),
    (lambda tree: tree["fields"].pop("name"), "missing 1 required positional argument: 'name'"),
    (lambda tree: tree["fields"].update(nodes=3), "must describe a network, but it does not"),
    (lambda tree: tree["fields"].update(outputs=["both", "gru"]), r"float\.npz: An output of network 'recurrent'"),
    (lambda tree: layer_of(tree, 0)["fields"].update(weight_ih={"array": "none"}), "does not \\('none'\\)"),
    (lambda tree: layer_of(tree, 0)["fields"].update(hidden="x"), "must describe a network"),
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
    with pytest.raises(Refusal, match="must describe a network, not a FloatGru; write it again"):
        float_file.load(tmp_path / "float.npz")
    integers = {name: array.astype(np.int64) for name, array in arrays.items()}
    artifact.write_npz(tmp_path / "float.npz", float_file.FORMAT, float_file.VERSION, integers, model=tree)
    with pytest.raises(Refusal, match="array0 must be float64, not int64"):
        float_file.load(tmp_path / "float.npz")


def test_a_missing_file(tmp_path):
    with pytest.raises(Refusal, match=r"float\.npz must exist, but it is missing"):
        float_file.load(tmp_path / "float.npz")
