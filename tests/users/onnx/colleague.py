"""What the colleague hands over: a convolutional network over vibration data, as ONNX, and samples of its inputs."""
import warnings

import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Conv1d(3, 8, 5), nn.BatchNorm1d(8), nn.ReLU(), nn.MaxPool1d(4), nn.Flatten(), nn.Linear(56, 4))
x = torch.randn(40, 3, 32)
net(x)  # Statistics of the batch normalization.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # torch's exporter to ONNX that needs no further package is its older one.
    torch.onnx.export(net.eval(), (x[:1],), "vibration.onnx", dynamo=False, input_names=["x"],
                      dynamic_axes={"x": {0: "n"}})
np.savez("calibration.npz", x=x.numpy())
