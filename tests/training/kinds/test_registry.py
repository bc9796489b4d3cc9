"""Kinds are found by themselves, and each says all that capture asks of it."""
from pathlib import Path

import pytest
from torch import nn

from circulant.training.capture.operators import problem_of
from circulant.training.kinds import registry
from circulant.training.kinds.conv import Conv
from circulant.training.kinds.depthwise import Depthwise
from circulant.training.neutral import Node, lowered
from circulant.training.neutral.forms import MODULES, handler_of

NODES = [made for module in registry.KINDS for made in vars(module).values() if isinstance(made, type)
         and issubclass(made, Node) and made.__module__ == module.__name__ and not made.__subclasses__()]


def test_every_file_is_found():
    names = {path.stem for path in Path(registry.__file__).parent.glob("*.py")} - {"__init__", "registry"}
    assert {module.__name__.rpartition(".")[2] for module in registry.KINDS} == names


@pytest.mark.parametrize("node", NODES)
def test_every_node_becomes_a_layer_or_says_why_not(node):
    assert lowered.dispatch(node) is not lowered.dispatch(Node)


def test_kinds_share_a_module_by_what_fits_them():
    handlers = {made: handler_of(nn.Conv2d(4, 4, 3, groups=groups)) for made, groups in ((Conv, 2), (Depthwise, 4))}
    assert {made: handler.__module__ for made, handler in handlers.items()} == {
        made: made.__module__ for made in (Conv, Depthwise)}
    assert nn.Conv2d in MODULES
    assert problem_of(nn.Conv2d(4, 4, 3, padding_mode="circular")) == (
        "padding_mode='circular' is not supported; only 'zeros' is")
