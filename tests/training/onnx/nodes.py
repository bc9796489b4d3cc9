"""Small ONNX files, node by node."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

RNG = np.random.default_rng(4)


def written(path, nodes, shape, result, **constants):
    """A file of these nodes from x to y."""
    graph = helper.make_graph(
        nodes, "made", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, result)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def floats(*shape):
    return RNG.normal(0, 0.4, shape).astype(np.float32)
