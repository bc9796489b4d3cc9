"""Models over images (N, channels, height, width): LeNet-5, a small VGG, ResNet-8; and a perceptron over anything."""
import math
from collections import OrderedDict
from collections.abc import Collection, Sequence

from torch import Tensor, nn

from circulant.sim.refusal import Refusal

__all__ = ["BasicBlock", "LeNet5", "ResNet8", "cnn", "funnel", "lenet_caffe", "mlp", "separable", "vgg"]


def mlp(shape: Sequence[int], widths: Sequence[int], classes: int) -> nn.Sequential:
    """Hidden layers fc1, fc2, … of these widths over all values of a sample (N, *shape), and a Linear to (N, classes).

    A ReLU follows each hidden layer.
    """
    parts: list[tuple[str, nn.Module]] = [("flatten", nn.Flatten())] if len(shape) > 1 else []
    size = math.prod(shape)
    for number, width in enumerate(widths, start=1):
        parts += [(f"fc{number}", nn.Linear(size, width)), (f"relu{number}", nn.ReLU())]
        size = width
    return nn.Sequential(OrderedDict([*parts, ("linear", nn.Linear(size, classes))]))


class LeNet5(nn.Module):
    """LeNet-5 (LeCun et al. 1998) as it is built today: ReLU, max pooling, and 28 × 28 padded to 32 × 32.

    Parameters:
        width: channels of the first convolution. Six fill no blocks; of eight, each block of the second is whole.
        window: side of the first convolution's windows, odd.

    Raises:
        Refusal: when an image is smaller than 12 × 12.
    """

    def __init__(self, shape: Sequence[int], classes: int, *, width: int = 6, window: int = 5) -> None:
        super().__init__()
        channels, high, wide = shape
        if min(high, wide) < 12:
            raise Refusal(f"LeNet-5 must have images of at least 12 × 12, not {high} × {wide}; choose another model")
        self.conv1 = nn.Conv2d(channels, width, window, padding=window // 2)
        self.conv2 = nn.Conv2d(width, 16, 5)
        self.relu, self.pool, self.flatten = nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()
        self.fc1 = nn.Linear(16 * ((high // 2 - 4) // 2) * ((wide // 2 - 4) // 2), 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.pool(self.relu(self.conv1(x)))
        x = self.flatten(self.pool(self.relu(self.conv2(x))))
        logits: Tensor = self.fc3(self.relu(self.fc2(self.relu(self.fc1(x)))))
        return logits


def lenet_caffe(shape: Sequence[int], classes: int) -> nn.Sequential:
    """LeNet-5 as Caffe ships it and papers on compression count it (Han et al. 2016: 431,000 weights).

    Two 5 × 5 convolutions without padding, of 20 and 50 channels, each with a maximum over 2 × 2, and a hidden layer of
    500 with ReLU; the convolutions have none.

    Raises:
        Refusal: when an image is smaller than 16 × 16.
    """
    channels, high, wide = shape
    if min(high, wide) < 16:
        raise Refusal(f"Caffe's LeNet-5 must have images of at least 16 × 16, not {high} × {wide}; choose another "
                      "model")
    size = 50 * (((high - 4) // 2 - 4) // 2) * (((wide - 4) // 2 - 4) // 2)
    return nn.Sequential(OrderedDict([
        ("conv1", nn.Conv2d(channels, 20, 5)), ("pool1", nn.MaxPool2d(2)), ("conv2", nn.Conv2d(20, 50, 5)),
        ("pool2", nn.MaxPool2d(2)), ("flatten", nn.Flatten()), ("fc1", nn.Linear(size, 500)), ("relu", nn.ReLU()),
        ("fc2", nn.Linear(500, classes))]))


def vgg(shape: Sequence[int], classes: int, *, width: int = 32) -> nn.Sequential:
    """Three pairs of 3 × 3 convolutions with batch normalisation, of width, 2 · width and 4 · width channels.

    After Simonyan and Zisserman 2015, for images of 32 × 32: a maximum over 2 × 2 ends each of the first two pairs, and
    the mean over all positions is what the Linear takes.

    Raises:
        Refusal: when an image is smaller than 4 × 4.
    """
    if min(shape[1:]) < 4:
        raise Refusal(f"The small VGG must have images of at least 4 × 4, not {shape[1]} × {shape[2]}; choose another "
                      "model")
    return _stack(shape, classes, [width << pair for pair in (0, 0, 1, 1, 2, 2)], (2, 4))


def cnn(shape: Sequence[int], classes: int, *, width: int = 32) -> nn.Sequential:
    """Four 3 × 3 convolutions with batch normalisation, of width, 2 · width and twice 4 · width channels.

    A maximum over 2 × 2 ends each but the third, so that most of the work is done on few positions: half the work of
    `vgg` on images of 32 × 32. The mean over all positions is what the Linear takes.

    Raises:
        Refusal: when an image is smaller than 8 × 8.
    """
    if min(shape[1:]) < 8:
        raise Refusal(f"The small CNN must have images of at least 8 × 8, not {shape[1]} × {shape[2]}; choose another "
                      "model")
    return _stack(shape, classes, [width, 2 * width, 4 * width, 4 * width], (1, 2, 4))


def funnel(shape: Sequence[int], classes: int, widths: Sequence[int]) -> nn.Sequential:
    """3 × 3 convolutions with batch normalisation of these many channels, a maximum over 2 × 2 behind all but the last.

    Wide where positions are few: most of the weights are in the last layers, and cost little work there.

    Raises:
        Refusal: when an image is smaller than the maxima need.
    """
    least = 1 << len(widths) - 1
    if min(shape[1:]) < least:
        raise Refusal(f"A CNN of {len(widths)} convolutions must have images of at least {least} × {least}, not "
                      f"{shape[1]} × {shape[2]}; choose fewer widths")
    return _stack(shape, classes, widths, range(1, len(widths)))


def separable(shape: Sequence[int], classes: int, *, width: int = 32) -> nn.Sequential:
    """A depthwise separable network (Howard et al. 2017, arXiv 1704.04861) of width to 4 · width channels.

    A 3 × 3 convolution at every second row and column, then three pairs of a 3 × 3 depthwise and a 1 × 1 convolution,
    to 2 · width and twice 4 · width channels, the first with a maximum over 2 × 2 behind it; all with batch
    normalisation and ReLU. The mean over all positions is what the Linear takes.

    Raises:
        Refusal: when an image is smaller than 4 × 4.
    """
    if min(shape[1:]) < 4:
        raise Refusal(f"The separable CNN must have images of at least 4 × 4, not {shape[1]} × {shape[2]}; choose "
                      "another model")
    convs = [("conv", nn.Conv2d(shape[0], width, 3, stride=2, padding=1, bias=False))]
    channels = width
    for number, outputs in enumerate((2 * width, 4 * width, 4 * width), start=1):
        convs += [(f"depthwise{number}", nn.Conv2d(channels, channels, 3, padding=1, groups=channels, bias=False)),
                  (f"pointwise{number}", nn.Conv2d(channels, outputs, 1, bias=False))]
        channels = outputs
    parts: list[tuple[str, nn.Module]] = []
    for name, conv in convs:
        parts += [(name, conv), (f"{name}_norm", nn.BatchNorm2d(conv.out_channels)), (f"{name}_relu", nn.ReLU())]
    parts.insert(9, ("pool", nn.MaxPool2d(2)))
    parts += [("mean", nn.AdaptiveAvgPool2d(1)), ("flatten", nn.Flatten()), ("linear", nn.Linear(channels, classes))]
    return nn.Sequential(OrderedDict(parts))


def _stack(shape: Sequence[int], classes: int, widths: Sequence[int], pools: Collection[int]) -> nn.Sequential:
    """Convolutions 3 × 3 of these widths, those of the numbers in ``pools`` with a maximum behind, and the Linear."""
    parts: list[tuple[str, nn.Module]] = []
    channels = shape[0]
    for number, outputs in enumerate(widths, start=1):
        parts += [(f"conv{number}", nn.Conv2d(channels, outputs, 3, padding=1, bias=False)),
                  (f"norm{number}", nn.BatchNorm2d(outputs)), (f"relu{number}", nn.ReLU())]
        if number in pools:
            parts.append((f"pool{number}", nn.MaxPool2d(2)))
        channels = outputs
    parts += [("mean", nn.AdaptiveAvgPool2d(1)), ("flatten", nn.Flatten()), ("linear", nn.Linear(channels, classes))]
    return nn.Sequential(OrderedDict(parts))


class BasicBlock(nn.Module):
    """relu(shortcut(x) + two 3 × 3 convolutions of x), each with batch normalisation (He et al. 2016, figure 5 left).

    The shortcut is a 1 × 1 convolution where the shape changes, else the identity.
    """

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU()
        self.shortcut: nn.Module = nn.Identity()
        if stride > 1 or inputs != outputs:
            self.shortcut = nn.Sequential(OrderedDict([
                ("conv", nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False)), ("norm", nn.BatchNorm2d(outputs))]))

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm2(self.conv2(self.relu(self.norm1(self.conv1(x)))))
        out: Tensor = self.relu(y + self.shortcut(x))
        return out


class ResNet8(nn.Module):
    """The residual network of He et al. 2016, section 4.2, with n = 1: 6n + 2 layers.

    Members:
        conv, norm: 3 × 3 to ``width`` channels.
        stage1, stage2, stage3: a `BasicBlock` each, of width, 2 · width and 4 · width channels.
        linear: from the mean over all positions to the classes.
    """

    def __init__(self, shape: Sequence[int], classes: int, *, width: int = 16) -> None:
        super().__init__()
        self.conv = nn.Conv2d(shape[0], width, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(width)
        self.relu = nn.ReLU()
        self.stage1 = BasicBlock(width, width, 1)
        self.stage2 = BasicBlock(width, 2 * width, 2)
        self.stage3 = BasicBlock(2 * width, 4 * width, 2)
        self.linear = nn.Linear(4 * width, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.relu(self.norm(self.conv(x)))
        x = self.stage3(self.stage2(self.stage1(x)))
        logits: Tensor = self.linear(x.mean((2, 3)))
        return logits
