"""The curves of a training for TensorBoard, which shows them while it goes on."""
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from circulant.sim.refusal import Refusal

__all__ = ["Curves"]


class Curves:
    """A `Progress` that writes every figure of every epoch: ``tensorboard --logdir FOLDER`` shows them.

    A figure stands under its phase: ``admm/loss``, ``admm/gru.weight_hh_l0/primal``. A training that goes on adds to
    the same curves.

    Raises:
        Refusal: when TensorBoard is not installed.
    """

    def __init__(self, folder: str | Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise Refusal("Curves must be written through tensorboard, which is not installed; run: "
                          "pip install 'circulant[logs]', or set training.tensorboard=false") from None
        self._writer = SummaryWriter(str(folder))

    def __call__(self, phase: str, epoch: int, epochs: int, metrics: Mapping[str, Any]) -> None:
        for name, value in _flat(phase, metrics):
            self._writer.add_scalar(name, value, epoch)
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()


def _flat(name: str, metrics: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    for part, value in metrics.items():
        if isinstance(value, Mapping):
            # The name of the table that holds the matrices says nothing that theirs do not say.
            yield from _flat(name if part == "matrices" else f"{name}/{part}", value)
        else:
            yield f"{name}/{part}", float(value)
