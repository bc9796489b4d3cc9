"""The training loop. It knows no model: only batches, a loss, and a penalty that is added to it."""
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.utils import parametrize

from circulant.sim.refusal import Refusal, nearest
from circulant.training.data import Dataset

__all__ = ["DECAYS", "Loss", "Metrics", "evaluate", "fit"]

Loss = Callable[[Tensor, Tensor], Tensor]
Metrics = dict[str, float]

SMALL = 200_000
"""Parameters below which one thread trains a model."""

DECAYS: dict[str, Callable[[float], float]] = {
    "cosine": lambda done: 0.5 * (1 + math.cos(math.pi * done)),
    "step": lambda done: 0.1 ** (int(done * 3)),
    "none": lambda done: 1.0,
}
"""Factor of the learning rate by the fraction of the steps that are done; "step" divides by ten after each third."""


def fit(model: nn.Module, data: Dataset, *, epochs: int, lr: float, batch: int = 32, seed: int = 0,
        loss: Loss = cross_entropy, decay: str = "cosine", penalty: Callable[[], Tensor] | None = None,
        on_epoch: Callable[[int, Metrics], bool | None] | None = None) -> list[Metrics]:
    """Train a model in place with Adam; the same seed gives the same weights.

    Parameters:
        loss: of (outputs, classes), a mean over the batch.
        penalty: a term added to the loss of each batch, such as `Admm.penalty`.
        on_epoch: called after each epoch (counted from 1) with its metrics, which it may extend; True stops.

    Returns:
        The metrics of each epoch: ``loss``, the mean over the train part without the penalty, and ``accuracy`` on the
        test part.

    Raises:
        Refusal: when the loss is not finite, or the decay is unknown.
    """
    if decay not in DECAYS:
        raise Refusal(f"A decay must be one of {', '.join(map(repr, DECAYS))}, not {decay!r}{nearest(decay, DECAYS)}")
    device = next(model.parameters()).device
    x, y = torch.from_numpy(data.train_x).to(device), torch.from_numpy(data.train_y).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr)
    steps = max(1, epochs * math.ceil(len(x) / batch))
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: DECAYS[decay](step / steps))
    shuffle = torch.Generator().manual_seed(seed)
    history: list[Metrics] = []
    with _few_threads(model), torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)  # for dropout
        for epoch in range(1, epochs + 1):
            model.train()
            total = 0.0
            for number, chosen in enumerate(torch.randperm(len(x), generator=shuffle).to(device).split(batch), start=1):
                optimizer.zero_grad()
                with parametrize.cached():
                    value = loss(model(x[chosen]), y[chosen])
                    (value if penalty is None else value + penalty()).backward()
                if not math.isfinite(value.item()):
                    raise Refusal(f"The loss must be finite, but is {value.item()} in epoch {epoch}, batch {number}; "
                                  f"choose a learning rate below {lr:g}")
                optimizer.step()
                scheduler.step()
                total += value.item() * len(chosen)
            metrics = {"loss": total / len(x), "accuracy": evaluate(model, data)}
            history.append(metrics)
            if on_epoch is not None and on_epoch(epoch, metrics):
                break
    return history


@contextmanager
def _few_threads(model: nn.Module) -> Iterator[None]:
    """One thread for a model with few parameters.

    Its products take microseconds, in which a team of threads only waits for itself: on a machine that has other work
    an epoch takes up to a hundred times as long.
    """
    before = torch.get_num_threads()
    if sum(parameter.numel() for parameter in model.parameters()) < SMALL:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def evaluate(model: nn.Module, data: Dataset, *, batch: int = 1024) -> float:
    """The fraction of the test part whose greatest output is that of its class; the model's mode is left as it was."""
    device = next(model.parameters()).device
    training = model.training
    model.eval()
    try:
        with torch.no_grad(), parametrize.cached():
            guesses = [model(x.to(device)).argmax(-1) for x in torch.from_numpy(data.test_x).split(batch)]
    finally:
        model.train(training)
    return float((torch.cat(guesses).cpu() == torch.from_numpy(data.test_y)).double().mean())
