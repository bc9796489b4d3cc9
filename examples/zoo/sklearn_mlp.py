"""An MLPClassifier of scikit-learn on its handwritten digits, through the ONNX file that skl2onnx makes of it.

Run it with `python examples/zoo/sklearn_mlp.py [FOLDER]`. skl2onnx is no dependency: the file is written here with
`onnx.helper`, node for node as skl2onnx 1.17 does without a ZipMap. Its label comes from an ArgMax behind the softmax;
the output to import is that of the probabilities.
"""
import sys
import warnings
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier
from torch import Tensor, nn, tensor

import circulant

OPSETS = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]


def write(classifier: MLPClassifier, path: str) -> None:
    """The file of a trained classifier: a MatMul and an Add for each layer, a Relu between."""
    constants = {"classes": classifier.classes_.astype(np.int64), "shape_tensor": np.array([-1], np.int64)}
    nodes, last = [helper.make_node("Cast", ["X"], ["cast_input"], "Cast", to=TensorProto.FLOAT)], "cast_input"
    for n, (weight, bias) in enumerate(zip(classifier.coefs_, classifier.intercepts_, strict=True)):
        end = n == len(classifier.coefs_) - 1
        constants |= {f"coefficient{n}": weight.astype(np.float32), f"intercepts{n}": bias[None].astype(np.float32)}
        nodes += [helper.make_node("MatMul", [last, f"coefficient{n}"], [f"mul_result{n}"], f"MatMul{n}"),
                  helper.make_node("Add", [f"mul_result{n}", f"intercepts{n}"], [f"add_result{n}"], f"Add{n}")]
        last = f"add_result{n}" if end else f"next_activations{n}"
        nodes += [] if end else [helper.make_node("Relu", [f"add_result{n}"], [last], f"Relu{n}")]
    nodes += [helper.make_node("Softmax", [last], ["probabilities"], "Softmax", axis=1),
              helper.make_node("ArgMax", ["probabilities"], ["argmax_output"], "ArgMax", axis=1),
              helper.make_node("ArrayFeatureExtractor", ["classes", "argmax_output"], ["extracted"],
                               "ArrayFeatureExtractor", domain="ai.onnx.ml"),
              helper.make_node("Reshape", ["extracted", "shape_tensor"], ["label"], "Reshape")]
    graph = helper.make_graph(
        nodes, "mlp", [helper.make_tensor_value_info("X", TensorProto.FLOAT, [None, 64])],
        [helper.make_tensor_value_info("label", TensorProto.INT64, [None]),
         helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, [None, len(classifier.classes_)])],
        [numpy_helper.from_array(array, name) for name, array in constants.items()])
    onnx.save(helper.make_model(graph, opset_imports=OPSETS, ir_version=8), path)


def model(small: bool = False, path: str = "mlp.onnx") -> nn.Module:
    digits = load_digits()
    classifier = MLPClassifier(8 if small else (64, 32), max_iter=4, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # A few rounds do not converge.
        write(classifier.fit(digits.data / 16, digits.target), path)
    return circulant.from_onnx(path, output="probabilities")


def samples(count: int, small: bool = False) -> Tensor:
    """Images (count, 64)."""
    return tensor(load_digits().data[:count] / 16).float()


def main(folder: str = "runs/sklearn-mlp") -> None:
    Path(folder).parent.mkdir(parents=True, exist_ok=True)
    net, x = model(path=f"{folder}.onnx"), samples(64)
    print(circulant.inspect(net, x))
    network = circulant.export(net, x, name="sklearn_mlp")
    circulant.generate(network, multipliers=64).write(folder)
    check = circulant.verify(folder, network.vectors(x))
    print(f"{check.words_compared} words compared, {check.mismatches} mismatches, "
          f"{check.cycles_per_step:g} cycles per image")


if __name__ == "__main__":
    main(*sys.argv[1:2])
