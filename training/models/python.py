"""A model that a class or function in a Python file of the user's makes."""
import hashlib

from torch import nn

from circulant.sim.files.user_code import calling, content, load_object, parted
from circulant.sim.refusal import Refusal
from circulant.training.settings.model import ModelSettings

__all__ = ["KEY", "identity", "made"]

KEY = "model.path"


def made(settings: ModelSettings) -> nn.Module:
    """The module that the class or function returns.

    Raises:
        Refusal: when the file or the name is missing, it raises, or what it returns is no module.
    """
    make = load_object(KEY, settings.path)
    if not callable(make):
        raise Refusal(f"{KEY} = {_short(settings)} must be a class or a function that makes a torch.nn.Module, not a "
                      f"{type(make).__name__}; name another")
    model = calling(KEY, settings.path, make, **settings.arguments)
    if not isinstance(model, nn.Module):
        raise Refusal(f"{KEY} = {_short(settings)} must make a torch.nn.Module, not a {type(model).__name__}; return "
                      "the model")
    return model


def identity(settings: ModelSettings) -> str:
    """The name of what is taken of the file, and the SHA-256 of the file.

    Raises:
        Refusal: as `content`.
    """
    return f"{parted(KEY, settings.path)[1]} of {hashlib.sha256(content(KEY, settings.path)).hexdigest()}"


def _short(settings: ModelSettings) -> str:
    return repr(settings.path.replace("\\", "/").rpartition("/")[2])
