"""The kinds of layers in training: each file has what of torch and of ONNX becomes one, and the layer that it becomes.

`matrix`, `window`, `cell`, `step` and `elementwise` have what several kinds share.
"""
