"""Models over images: sizes of their layers, and that they train."""
import pytest
import torch
from torch import nn

from circulant.sim.refusal import Refusal
from circulant.training.models.vision import LeNet5, ResNet8, cnn, funnel, lenet_caffe, mlp, separable, vgg


def layers(model, kind):
    return [module for module in model.modules() if isinstance(module, kind)]


@pytest.mark.parametrize(("shape", "features"), [((1, 28, 28), 400), ((3, 32, 32), 576), ((1, 12, 12), 16)])
def test_lenet5(shape, features):
    model = LeNet5(shape, 10)
    assert model.fc1.in_features == features
    assert model(torch.rand(2, *shape)).shape == (2, 10)


def test_lenet5_for_hardware():
    model = LeNet5((1, 28, 28), 10, width=8, window=3)
    assert model.conv1.weight.shape == (8, 1, 3, 3)
    assert model.conv2.weight.shape == (16, 8, 5, 5)
    assert model.fc1.in_features == 400, "the size of the maps is that of 5 × 5 windows"
    assert model(torch.rand(2, 1, 28, 28)).shape == (2, 10)


def test_lenet_as_caffe_has_it():
    model = lenet_caffe((1, 28, 28), 10)
    assert sum(parameter.numel() for parameter in model.parameters()) == 431_080, "as papers on compression count it"
    assert model.fc1.in_features == 800
    assert model(torch.rand(2, 1, 28, 28)).shape == (2, 10)


def test_resnet8_has_eight_layers_and_two_shortcuts():
    model = ResNet8((3, 32, 32), 10)
    convolutions = layers(model, nn.Conv2d)
    assert len([conv for conv in convolutions if conv.kernel_size == (3, 3)]) + 1 == 8
    assert len([conv for conv in convolutions if conv.kernel_size == (1, 1)]) == 2
    assert sum(p.numel() for p in model.parameters()) == 78_042, "convolutions have no bias"


def test_vgg_channels():
    model = vgg((3, 32, 32), 10, width=8)
    assert [conv.out_channels for conv in layers(model, nn.Conv2d)] == [8, 8, 16, 16, 32, 32]
    assert model(torch.rand(2, 3, 32, 32)).shape == (2, 10)


def test_cnn_does_most_of_its_work_on_few_positions():
    model = cnn((3, 32, 32), 10, width=8)
    assert [conv.out_channels for conv in layers(model, nn.Conv2d)] == [8, 16, 32, 32]
    assert [name for name, _ in model.named_children() if name.startswith("pool")] == ["pool1", "pool2", "pool4"]
    assert model(torch.rand(2, 3, 32, 32)).shape == (2, 10)


def test_most_weights_of_a_separable_network_are_of_its_1_by_1_parts():
    model = separable((1, 28, 28), 10, width=8)
    shapes = [(conv.groups, conv.kernel_size[0], conv.out_channels) for conv in layers(model, nn.Conv2d)]
    assert shapes == [(1, 3, 8), (8, 3, 8), (1, 1, 16), (16, 3, 16), (1, 1, 32), (32, 3, 32), (1, 1, 32)]
    assert [model[:n](torch.rand(1, 1, 28, 28)).shape[2] for n in (1, 9, 10)] == [14, 14, 7]
    with pytest.raises(Refusal, match=r"^The separable CNN must have images of at least 4 × 4, not 3 × 8; choose"):
        separable((1, 3, 8), 10)


def test_funnel_halves_its_image_behind_all_but_the_last():
    model = funnel((3, 16, 16), 10, (4, 8, 12, 16))
    assert [conv.out_channels for conv in layers(model, nn.Conv2d)] == [4, 8, 12, 16]
    assert [name for name, _ in model.named_children() if name.startswith("pool")] == ["pool1", "pool2", "pool3"]
    assert model[:-3](torch.rand(2, 3, 16, 16)).shape == (2, 16, 2, 2)
    assert model(torch.rand(2, 3, 16, 16)).shape == (2, 10)


def test_mlp():
    model = mlp((4, 6), (16, 16), 3)
    assert [(m.in_features, m.out_features) for m in layers(model, nn.Linear)] == [(24, 16), (16, 16), (16, 3)]
    assert not layers(mlp((24,), [16], 3), nn.Flatten)


@pytest.mark.parametrize("make", [lambda: LeNet5((1, 12, 12), 2), lambda: vgg((1, 12, 12), 2, width=4),
                                  lambda: cnn((1, 12, 12), 2, width=4),
                                  lambda: funnel((1, 12, 12), 2, (4, 8, 16)),
                                  lambda: ResNet8((1, 12, 12), 2, width=4)])
def test_they_learn_a_few_images(make):
    torch.manual_seed(0)
    x, y = torch.rand(16, 1, 12, 12), torch.arange(16) % 2
    model = make()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for _ in range(60):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.3, "it must fit sixteen images"


@pytest.mark.parametrize(("make", "message"), [
    (LeNet5, r"^LeNet-5 must have images of at least 12 × 12, not 8 × 8"),
    (lambda shape, classes: cnn((1, 7, 9), classes), r"^The small CNN must have images of at least 8 × 8, not 7 × 9"),
    (lambda shape, classes: funnel((1, 3, 4), classes, (8, 8, 8)),
     r"^A CNN of 3 convolutions must have images of at least 4 × 4, not 3 × 4; choose fewer widths$"),
    (lambda shape, classes: vgg((1, 3, 3), classes), r"^The small VGG must have images of at least 4 × 4, not 3 × 3"),
])
def test_images_that_are_too_small(make, message):
    with pytest.raises(Refusal, match=message):
        make((1, 8, 8), 10)
