"""ONNX in: a graph becomes a torch module, which is then inspected, compressed, trained and exported like any other."""
from circulant.training.onnx.network import OnnxNetwork, from_onnx

__all__ = ["OnnxNetwork", "from_onnx"]
