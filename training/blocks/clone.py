"""Copies of models that may be parametrized."""
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from circulant.sim.refusal import Refusal
from circulant.training.blocks.fast_forward import use_fast_forward

__all__ = ["clone", "settle"]


def clone(model: nn.Module) -> nn.Module:
    """A deep copy, independent of the original also where modules are parametrized.

    Of the modules that `compress` parametrizes, `copy.deepcopy` makes such copies, too (see `settle`); this is for all.

    Raises:
        Refusal: when a module holds a computed tensor, as hooks make it, which nothing can copy.
    """
    for path, module in model.named_modules():
        if made := [name for name, value in vars(module).items() if isinstance(value, Tensor) and value.grad_fn]:
            raise Refusal(f"The tensors of a module must be parameters or buffers, but {path or 'model'}.{made[0]} is "
                          "computed, as by torch.nn.utils.weight_norm; use that of torch.nn.utils.parametrizations, or "
                          "keep no result in the module")
    for module in model.modules():
        if parametrize.is_parametrized(module):
            settle(module)
    return deepcopy(model)


def settle(module: nn.Module) -> None:
    """Let a module that was just parametrized use the faster product, and let `copy.deepcopy` copy it.

    torch's own copies have the class of the original, whose cache key is the original's (the copy would read the
    original's weights under `parametrize.cached`), and fail on the derived weights that a GRU keeps from a step.
    """
    use_fast_forward(module)
    own: Any = type(module)  # torch gives every parametrized module a class of its own.
    own.__deepcopy__ = _copied


def _copied(self: Any, memo: dict[int, Any]) -> Any:
    if id(self) in memo:
        return memo[id(self)]
    if isinstance(self, nn.RNNBase):
        memo.setdefault(id(self._flat_weights), [])
    copy = memo[id(self)] = self.__new__(type(self))
    copy.__dict__ = deepcopy(self.__dict__, memo)
    _parametrize_anew(copy)
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
        for kind in ("_parameters", "_buffers"):  # The very tensors, as an optimizer that is copied along has them.
            vars(module.parametrizations[tensor])[kind].update(vars(chain)[kind])
    settle(module)
    if isinstance(module, nn.RNNBase):
        module._init_flat_weights()
