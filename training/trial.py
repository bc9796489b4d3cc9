"""A trial of a user's model on the first samples of the data, before anything is trained."""
import torch
from torch import Tensor, nn

from circulant.sim.files.user_code import calling
from circulant.sim.refusal import Refusal
from circulant.training.data import Dataset
from circulant.training.loop.loop import forward
from circulant.training.models.python import KEY
from circulant.training.settings.model import ModelSettings
from circulant.training.task.batches import Part
from circulant.training.task.task import task_of

__all__ = ["require_fit"]

FEW = 2


def require_fit(settings: ModelSettings, model: nn.Module, data: Dataset) -> None:
    """Check that a model takes the samples of a data set, and gives what their targets ask for.

    Raises:
        Refusal: when its forward raises, with file and line; when it gives something else than one tensor; as
            `Task.check`.
    """
    batch = Part(data, "train", torch.device("cpu")).take(torch.arange(min(FEW, len(data.train_x))))
    training = model.training
    try:
        with torch.no_grad():
            outputs: object = calling(KEY, settings.path, forward, model.eval(), batch)
    except Refusal as refusal:
        raise Refusal(f"{refusal} (samples of {data.name!r} have the shape {data.shape})") from None
    finally:
        model.train(training)
    if not isinstance(outputs, Tensor):
        what = f"a {type(outputs).__name__}" + (f" of {len(outputs)}" if isinstance(outputs, tuple | list) else "")
        raise Refusal(f"{KEY} = {settings.path!r} must return one tensor from its forward, not {what}; return the "
                      "outputs alone")
    task_of(data).check(outputs, batch)
