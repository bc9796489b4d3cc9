"""Functions in several nodes, as exporters of older opsets write them."""
import warnings

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from circulant.sim.refusal import Refusal
from circulant.training import export, from_onnx
from tests.modules import Net


def own_gelu(x):
    return x * (0.5 * (1 + torch.erf(x / 2 ** 0.5)))


def layered(function):
    return Net(lambda m, x: function(m.fc(x)), fc=nn.Linear(6, 8))


@pytest.mark.parametrize(("function", "name"), [
    (F.gelu, "gelu"), (own_gelu, "gelu"), (lambda x: 0.5 * x * (torch.erf(x / 2 ** 0.5) + 1), "gelu"),
    (F.softsign, "softsign"), (lambda x: x / (x.abs() + 1), "softsign")])
def test_a_function_in_several_nodes_is_one_layer(function, name, tmp_path):
    model, x = layered(function).eval(), torch.randn(20, 6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Of the older exporter, which needs no further package.
        torch.onnx.export(model, (x,), tmp_path / "net.onnx", dynamo=False, opset_version=17)
    network = export(from_onnx(tmp_path / "net.onnx", x), x)
    assert [layer.kind for layer in network.layers] == ["linear", "activation"]
    assert network.layers[1].table.function == name


def test_what_only_looks_like_it_is_refused(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(layered(lambda x: x / (1 + (2 * x).abs())).eval(), (torch.randn(2, 6),),
                          tmp_path / "net.onnx", dynamo=False, opset_version=17)
    with pytest.raises(Refusal, match="it must divide by a constant, not by what depends on the data"):
        export(from_onnx(tmp_path / "net.onnx", x := torch.randn(2, 6)), x)
