"""Training through approximate products: the forward pass has golden's integers, the gradient is that of exact ones.

What comes to a matrix, its weights and its bias become the integers of a golden network, and its product is golden's
own, with its roundings and saturations. The functions behind it are those of torch, not tables.
"""
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
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

__all__ = ["multiplying"]


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
        kind = next((each for each in _FORWARD if isinstance(module, each)), None)
        if kind is None or several or getattr(module, "proj_size", 0):
            raise Refusal("A training through approximate products must be that of Linear layers, and of torch's GRU "
                          f"and LSTM with one level, one direction and no projection, but {owner(name)!r} is another "
                          f"{type(module).__name__}; set quantization.finetune_epochs to 0")
        module.forward = partial(_FORWARD[kind], module, layers[path.rpartition(".")[0]])
        changed.append(module)
    try:
        yield
    finally:
        for module in changed:
            del module.forward


def _through(exact: Tensor, golden: Reals) -> Tensor:
    """The golden values, with the gradient of the exact ones."""
    return torch.from_numpy(golden).to(exact) + (exact - exact.detach())


def _first(module: nn.Module, tensor: str, weight: Tensor) -> Reals:
    """First columns (block rows, q, k) of a matrix as it counts in this pass."""
    constraint = constraint_of(matrices(module)[tensor])
    assert constraint is not None
    first: Reals = constraint.right_inverse(weight.detach().double()).cpu().numpy()
    return first.reshape(-1, *first.shape[2:])


def _product(rule: Product, first: Reals, bias: Sequence[Tensor | None], gates: int = 1) -> Product:
    """A golden product with these weights, and with the sum of some biases."""
    total = sum((each.detach().double().cpu().numpy().reshape(gates, -1) for each in bias if each is not None),
                np.zeros((gates, 1)))
    return replace(rule, weights=rule.grid.quantize(spectra(first)),
                   bias=rule.output.quantize(pad(total, rule.rows // gates).reshape(-1)))


def _integers(rule: Product, x: Tensor) -> Integers:
    return rule.input.quantize(x.detach().double().cpu().numpy())


def _rows(product: Product | JointProduct, size: int, *xs: Integers, gates: int = 1) -> Reals:
    """Golden rows (…, gates · size), without the zeros behind those of each gate."""
    y = product(*xs)
    rows = y.reshape(*y.shape[:-1], gates, -1)[..., :size]
    return product.output.real(rows.reshape(*y.shape[:-1], gates * size))


def _linear(module: Any, layer: Any, x: Tensor) -> Tensor:
    weight = module.weight
    product = _product(layer.product, _first(module, "weight", weight), [module.bias])
    return _through(linear(x, weight, module.bias), _rows(product, layer.outputs, _integers(product, x)))


def _recurrent(module: Any, x: Tensor | PackedSequence, states: Sequence[Tensor] | None,
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
    step = made(_first(module, "weight_ih_l0", w_x), _first(module, "weight_hh_l0", w_h))
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


def _gates(layer: Any, of_x: Reals, of_h: Reals, module: Any, gates: int) -> JointProduct:
    """The product of the first gates of a layer."""
    rows, biases = gates * module.hidden_size, [None, None]
    if module.bias:
        biases = [module.bias_ih_l0[:rows], module.bias_hh_l0[:rows]]
    (x, h), count = layer.gates.parts, len(layer.gates.parts[0].weights)
    return JointProduct((_product(x, of_x[:count], biases, gates), _product(h, of_h[:count], [], gates)))


def _gru(module: Any, layer: Any, x: Tensor | PackedSequence, state: Tensor | None = None) -> tuple[Any, Tensor]:
    size = module.hidden_size
    b_x, b_h = (getattr(module, f"bias_{each}_l0")[2 * size:] if module.bias else None for each in ("ih", "hh"))

    def made(of_x: Reals, of_h: Reals) -> Callable[..., tuple[Tensor, ...]]:
        gates = _gates(layer, of_x, of_h, module, 2)
        count = len(gates.weights)
        new, kept = (_product(rule, first[count:], [bias]) for rule, first, bias in (
            (layer.candidate, of_x, b_x), (layer.candidate_recurrent, of_h, b_h)))

        def step(x: Tensor, driven: Tensor, recurrent: Tensor, h: Tensor) -> tuple[Tensor, ...]:
            given = _integers(gates.parts[0], x), _integers(gates.parts[1], h)
            both = (driven + recurrent)[:, :2 * size]
            r, z = _through(both, _rows(gates, size, *given, gates=2)).sigmoid().chunk(2, 1)
            before = _through(driven[:, 2 * size:], _rows(new, size, given[0]))
            n = (before + r * _through(recurrent[:, 2 * size:], _rows(kept, size, given[1]))).tanh()
            return (n + z * (h - n),)

        return step

    y, states = _recurrent(module, x, None if state is None else [state], made)
    return y, states[0]


def _lstm(module: Any, layer: Any, x: Tensor | PackedSequence, state: tuple[Tensor, Tensor] | None = None
          ) -> tuple[Any, tuple[Tensor, Tensor]]:
    size = module.hidden_size

    def made(of_x: Reals, of_h: Reals) -> Callable[..., tuple[Tensor, ...]]:
        gates = _gates(layer, of_x, of_h, module, 4)

        def step(x: Tensor, driven: Tensor, recurrent: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, ...]:
            given = _integers(gates.parts[0], x), _integers(gates.parts[1], h)
            i, f, g, o = _through(driven + recurrent, _rows(gates, size, *given, gates=4)).chunk(4, 1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            return o.sigmoid() * c.tanh(), c

        return step

    y, (h, c) = _recurrent(module, x, state, made)
    return y, (h, c)


_FORWARD: dict[type[nn.Module], Callable[..., Any]] = {nn.Linear: _linear, nn.GRU: _gru, nn.LSTM: _lstm}
