"""ONNX files: their graphs, quantizers, and the operators of nodes, which become torch. Here is what kinds register."""
from circulant.training.onnx.call import OnnxCall, Values
from circulant.training.onnx.modules import constant, filled, grids, padding_of, weights
from circulant.training.onnx.nodes import OnnxGraph, OnnxNode
from circulant.training.onnx.operators import Run, called, module_of, of_onnx

__all__ = ["OnnxCall", "OnnxGraph", "OnnxNode", "Run", "Values", "called", "constant", "filled", "grids", "module_of",
           "of_onnx", "padding_of", "weights"]
