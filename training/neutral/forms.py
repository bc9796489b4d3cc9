"""Forms in torch: the modules and functions that can be captured, each with what makes nodes of its call."""
from collections.abc import Callable
from functools import singledispatch
from typing import Any, NamedTuple, TypeVar

from torch import nn
from torch.nn.utils import parametrize

from circulant.training.neutral.call import Call, Value

__all__ = ["CONSTANTS", "FUNCTIONS", "MODULES", "STEPWISE", "Handler", "fault", "handler_of", "of_torch"]

Handler = Callable[[Call], Value | list[Value]]

H = TypeVar("H", bound=Handler)


class ModuleHandler(NamedTuple):
    """A handler of the calls of modules that it fits."""

    handler: Handler
    fits: Callable[[Any], bool]


MODULES: dict[type[nn.Module], list[ModuleHandler]] = {}
"""By class of the module; the first that fits counts."""

FUNCTIONS: dict[str, Handler] = {}
"""By name of the function, method or attribute."""

CONSTANTS = set[str]()
"""Functions that a tensor of the model may be a constant of."""


STEPWISE = {"linear"}
"""Names of functions and modules that do the same with a sequence as with each of its steps."""


def of_torch(*forms: type[nn.Module] | str, fits: Callable[[Any], bool] | None = None, constants: bool = False,
             stepwise: bool = False) -> Callable[[H], H]:
    """The decorator of a handler of modules and functions.

    Parameters:
        forms: classes of modules, names of functions.
        fits: which of the modules it handles; all that no other one does without it.
        constants: whether a tensor of the model may be an operand.
        stepwise: whether it does the same with a sequence as with each of its steps.
    """
    def register(handler: H) -> H:
        for form in forms:
            STEPWISE.update([form if isinstance(form, str) else form.__name__] if stepwise else ())
            if isinstance(form, str):
                FUNCTIONS[form] = handler
                CONSTANTS.update([form] if constants else ())
            else:
                known = MODULES.setdefault(form, [])
                known.insert(0 if fits else len(known), ModuleHandler(handler, fits or (lambda module: True)))
        return handler
    return register


def handler_of(module: nn.Module) -> Handler | None:
    """The handler of a module, whatever parametrizes it; None where there is none."""
    known: Any = parametrize.type_before_parametrizations(module)
    return next((form.handler for form in MODULES.get(known, ()) if form.fits(module)), None)


@singledispatch
def fault(module: Any) -> str:
    """Why a module of a class that is known cannot be captured; nothing where it can."""
    return ""
