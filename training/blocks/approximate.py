"""Training through approximate products: the forward pass has golden's integers, the gradient is that of exact ones.

What comes to a matrix, its weights and its bias become the integers of a golden network, and its product is golden's
own, with its roundings and saturations. The functions behind it are those of torch, not tables.
"""
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial, singledispatch
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import linear
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from circulant.sim.arith.circulant import JointProduct, Product, pad
from circulant.sim.arith.fixed import Integers, Reals
from circulant.sim.golden.network import Network
from circulant.sim.passes.products import spectra
from circulant.sim.refusal import Refusal
from circulant.training.blocks.matrices import constraint_of, matrices, owner
from circulant.training.blocks.quantized_set import golden_paths

__all__ = ["first_of", "forward", "gates_of", "integers_of", "multiplying", "over_steps", "product_of", "rows_of",
           "through"]


@contextmanager
def multiplying(model: nn.Module, network: Network) -> Iterator[None]:
    """While it lasts, the layers of a model multiply as those of the golden network that was made of it.

    Parameters:
        model: of `circulant.training.blocks.quantized_set.constrain_to_quantized`.

    Raises:
        Refusal: when a matrix is of another layer than a Linear, or a GRU or LSTM of torch, of one level and direction
            and without a projection; as `golden_paths`.
    """
    layers, changed = {layer.name: layer for layer in network.layers}, list[nn.Module]()
    for name, path in golden_paths(model, network).items():
        module: Any = model.get_submodule(owner(name))
        if name not in matrices(model) or module in changed:
            continue
        several = getattr(module, "num_layers", 1) > 1 or getattr(module, "bidirectional", False)
        if several or getattr(module, "proj_size", 0) or forward.dispatch(type(module)) is forward.dispatch(object):
            raise Refusal("A training through approximate products must be that of Linear layers, and of torch's GRU "
                          f"and LSTM with one level, one direction and no projection, but {owner(name)!r} is another "
                          f"{type(module).__name__}; set quantization.finetune_epochs to 0")
        module.forward = partial(forward, module, layers[path.rpartition(".")[0]])
        changed.append(module)
    try:
        yield
    finally:
        for module in changed:
            del module.forward


@singledispatch
def forward(module: Any, layer: Any, x: Any, state: Any = None) -> Any:
    """The values that a module gives, by the products of its golden layer; each kind has an implementation in
    `circulant.training.kinds`."""
    raise TypeError(f"{type(module).__name__} has no approximate products")


def through(exact: Tensor, golden: Reals) -> Tensor:
    """The golden values, with the gradient of the exact ones."""
    return torch.from_numpy(golden).to(exact) + (exact - exact.detach())


def first_of(module: nn.Module, tensor: str, weight: Tensor) -> Reals:
    """First columns (block rows, q, k) of a matrix as it counts in this pass."""
    constraint = constraint_of(matrices(module)[tensor])
    assert constraint is not None
    first: Reals = constraint.right_inverse(weight.detach().double()).cpu().numpy()
    return first.reshape(-1, *first.shape[2:])


def product_of(rule: Product, first: Reals, bias: Sequence[Tensor | None], gates: int = 1) -> Product:
    """A golden product with these weights, and with the sum of some biases."""
    total = sum((each.detach().double().cpu().numpy().reshape(gates, -1) for each in bias if each is not None),
                np.zeros((gates, 1)))
    return replace(rule, weights=rule.grid.quantize(spectra(first)),
                   bias=rule.output.quantize(pad(total, rule.rows // gates).reshape(-1)))


def integers_of(rule: Product, x: Tensor) -> Integers:
    return rule.input.quantize(x.detach().double().cpu().numpy())


def rows_of(product: Product | JointProduct, size: int, *xs: Integers, gates: int = 1) -> Reals:
    """Golden rows (…, gates · size), without the zeros behind those of each gate."""
    y = product(*xs)
    rows = y.reshape(*y.shape[:-1], gates, -1)[..., :size]
    return product.output.real(rows.reshape(*y.shape[:-1], gates * size))


def over_steps(module: Any, x: Tensor | PackedSequence, states: Sequence[Tensor] | None,
               made: Callable[[Reals, Reals], Callable[..., tuple[Tensor, ...]]]) -> tuple[Any, list[Tensor]]:
    """The outputs of a recurrent layer, packed if x is, and its last states (1, N, hidden).

    Parameters:
        made: from first columns of both matrices to a step, of x, the exact products with it and with the state, and
            the state, to the next one.
    """
    if packed := isinstance(x, PackedSequence):
        x, lengths = pad_packed_sequence(x, batch_first=module.batch_first)
    x = x.transpose(0, 1) if module.batch_first else x
    w_x, w_h = module.weight_ih_l0, module.weight_hh_l0
    b_x, b_h = (getattr(module, f"bias_{each}_l0", None) for each in ("ih", "hh"))
    step = made(first_of(module, "weight_ih_l0", w_x), first_of(module, "weight_hh_l0", w_h))
    count = 2 if isinstance(module, nn.LSTM) else 1
    state = tuple(each[0] for each in states) if states is not None else tuple(
        x.new_zeros(x.shape[1], module.hidden_size) for _ in range(count))
    passed = []
    for each, driven in zip(x, linear(x, w_x, b_x), strict=True):
        state = step(each, driven, linear(state[0], w_h, b_h), *state)
        passed.append(state)
    y, *more = (torch.stack(each) for each in zip(*passed, strict=True))
    ends = (lengths - 1, torch.arange(len(lengths))) if packed else (-1,)
    last = [each[ends][None] for each in (y, *more)]
    y = y.transpose(0, 1) if module.batch_first else y
    return (pack_padded_sequence(y, lengths, module.batch_first, enforce_sorted=False) if packed else y), last


def gates_of(layer: Any, of_x: Reals, of_h: Reals, module: Any, gates: int) -> JointProduct:
    """The product of the first gates of a layer."""
    rows, biases = gates * module.hidden_size, [None, None]
    if module.bias:
        biases = [module.bias_ih_l0[:rows], module.bias_hh_l0[:rows]]
    (x, h), count = layer.gates.parts, len(layer.gates.parts[0].weights)
    return JointProduct((product_of(x, of_x[:count], biases, gates), product_of(h, of_h[:count], [], gates)))
