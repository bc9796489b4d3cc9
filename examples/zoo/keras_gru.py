"""A GRU of Keras 3 in front of a Dense layer, through the ONNX file that `model.export(format="onnx")` makes of it.

Run it with `python examples/zoo/keras_gru.py [FOLDER]`; weights are random. Keras is no dependency: the file is written
here with `onnx.helper` in the shape that such an export has: the batch is open, steps are moved to the front, the
initial state is zeros of a size that is read from the data, the GRU resets after its matrix (`reset_after`, Keras's
default), and `Y_h` is squeezed.
"""
import sys
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn

import circulant

STEPS, FEATURES, CLASSES = 20, 6, 4

NODES = [
    helper.make_node("Shape", ["keras_tensor"], ["shape"], "functional/gru/Shape"),
    helper.make_node("Slice", ["shape", "start", "stop", "axis"], ["batch"], "functional/gru/strided_slice"),
    helper.make_node("Concat", ["one", "batch", "units"], ["size"], "functional/gru/zeros/packed", axis=0),
    helper.make_node("ConstantOfShape", ["size"], ["zeros"], "functional/gru/zeros"),
    helper.make_node("Transpose", ["keras_tensor"], ["steps"], "functional/gru/transpose", perm=[1, 0, 2]),
    helper.make_node("GRU", ["steps", "W", "R", "B", "", "zeros"], ["Y", "Y_h"], "functional/gru/while",
                     linear_before_reset=1),
    helper.make_node("Squeeze", ["Y_h", "axis"], ["last"], "functional/gru/strided_slice_1"),
    helper.make_node("MatMul", ["last", "kernel"], ["product"], "functional/dense/MatMul"),
    helper.make_node("Add", ["product", "bias"], ["sum"], "functional/dense/BiasAdd"),
    helper.make_node("Softmax", ["sum"], ["output_0"], "functional/dense/Softmax"),
]


def write(path: str, units: int) -> None:
    """The file, with random weights."""
    rng = np.random.default_rng(0)
    weights = {"W": (1, 3 * units, FEATURES), "R": (1, 3 * units, units), "B": (1, 6 * units),
               "kernel": (units, CLASSES), "bias": (CLASSES,)}
    constants = {name: rng.normal(0, 0.3, shape).astype(np.float32) for name, shape in weights.items()}
    constants |= {name: np.array([value], np.int64) for name, value in zip(
        ("start", "stop", "axis", "one", "units"), (0, 1, 0, 1, units), strict=True)}
    nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in NODES]
    nodes[5].attribute.append(helper.make_attribute("hidden_size", units))
    graph = helper.make_graph(
        nodes, "gru", [helper.make_tensor_value_info("keras_tensor", TensorProto.FLOAT, ["N", STEPS, FEATURES])],
        [helper.make_tensor_value_info("output_0", TensorProto.FLOAT, ["N", CLASSES])],
        [numpy_helper.from_array(array, name) for name, array in constants.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8), path)


def model(small: bool = False, path: str = "gru.onnx") -> nn.Module:
    write(path, 4 if small else 64)
    return circulant.from_onnx(path)


def samples(count: int, small: bool = False) -> Tensor:
    """Sequences (count, 20, 6)."""
    return torch.randn(count, STEPS, FEATURES)


def main(folder: str = "runs/keras-gru") -> None:
    torch.manual_seed(0)
    Path(folder).parent.mkdir(parents=True, exist_ok=True)
    net, x = model(path=f"{folder}.onnx"), samples(64)
    print(circulant.inspect(net, x))
    network = circulant.export(net, x, name="keras_gru")
    circulant.generate(network, multipliers=64).write(folder)
    check = circulant.verify(folder, network.vectors(x[:16]))
    print(f"{check.words_compared} words compared, {check.mismatches} mismatches, "
          f"{check.cycles_per_step:g} cycles per step")


if __name__ == "__main__":
    main(*sys.argv[1:2])
