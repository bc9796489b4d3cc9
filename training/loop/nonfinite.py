"""Where a value that is not finite comes from."""
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from circulant.training.task.batches import Batch

__all__ = ["find_nonfinite_source"]


@torch.no_grad()
def find_nonfinite_source(model: nn.Module, batch: Batch, forward: Callable[[], Any]) -> str:
    """The place, in words, where NaN or infinity first appears as a batch goes through a model.

    Parameters:
        forward: runs the batch through the model, as it was run when the loss was not finite.

    Returns:
        "sample 7 of the data", "the weights linear.weight", "the output of layer 'gru' (GRU)", or "the loss itself".
    """
    bad = [int(i) for i, x in zip(batch.indices, batch.x, strict=True) if not torch.isfinite(x).all()]
    if bad:
        return f"sample {bad[0]} of the data"
    weights = [name for name, weight in model.named_parameters() if not torch.isfinite(weight).all()]
    if weights:
        return f"the weights {weights[0]}"
    found: list[str] = []

    def hook(name: str) -> Callable[[nn.Module, Any, Any], None]:
        def look(module: nn.Module, inputs: Any, outputs: Any) -> None:
            if not all(bool(torch.isfinite(tensor).all()) for tensor in _tensors(outputs)):
                kind = parametrize.type_before_parametrizations(module).__name__
                found.append(f"the output of layer {name!r} ({kind})" if name else f"the output of the {kind}")
        return look

    hooks = [module.register_forward_hook(hook(name)) for name, module in model.named_modules()]
    try:
        forward()
    finally:
        for handle in hooks:
            handle.remove()
    return found[0] if found else "the loss itself"


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for part in value:
            yield from _tensors(part)
