"""Copies of models that may be parametrized."""
from copy import deepcopy
from typing import Any

import torch
from torch import nn
from torch.nn.utils import parametrize

from circulant.training.fast import hasten

__all__ = ["clone"]


def clone(model: nn.Module) -> nn.Module:
    """A deep copy, independent of the original also where modules are parametrized.

    `copy.deepcopy` alone leaves both with one class, whose cache key is the original's (the copy would read the
    original's weights under `parametrize.cached`), and fails on the derived weights that a GRU keeps from a step.
    """
    derived = [m for m in model.modules() if isinstance(m, nn.RNNBase) and parametrize.is_parametrized(m)]
    copy = deepcopy(model, {id(module._flat_weights): [] for module in derived})
    for module in list(copy.modules()):
        if parametrize.is_parametrized(module):
            _parametrize_anew(module)
    return copy


def _parametrize_anew(module: Any) -> None:
    """Give a deep copy its own parametrized class, with the values that it has."""
    lists, plain = module.parametrizations, parametrize.type_before_parametrizations(module)
    del module.parametrizations
    module.__class__ = plain
    if isinstance(module, nn.RNNBase):
        module._flat_weights = [None] * len(module._flat_weights_names)
    for tensor, chain in lists.items():
        with torch.no_grad():
            value = chain()
        trained = next(chain.parameters(recurse=False), None)
        if trained is None:
            module.register_buffer(tensor, value)
        else:
            module.register_parameter(tensor, nn.Parameter(value, trained.requires_grad))
        for parametrization in chain:
            parametrize.register_parametrization(module, tensor, parametrization, unsafe=True)
        module.parametrizations[tensor].load_state_dict(chain.state_dict())
    hasten(module)
    if isinstance(module, nn.RNNBase):
        module._init_flat_weights()
