"""Recording: a model runs once on a concrete sample, and every call that depends on the sample is noted.

Sizes are plain numbers then, branches and asserts on them are decided, and what does not depend on the sample is a
constant. A decision that depends on its values would be followed silently; it is refused.
"""
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence
from torch.overrides import TorchFunctionMode

from circulant.sim.shape.graph import free_name

__all__ = ["Record", "Ref", "Step", "TraceError", "mapped", "numbers_of", "parts", "record", "refs"]

SIZES = ("new_zeros", "new_ones", "new_full", "new_empty", "new_tensor", "zeros_like", "ones_like", "full_like",
         "empty_like")
"""Functions that take nothing but the size of a tensor."""

ABOUT = ("size", "dim", "ndimension", "numel", "nelement", "stride", "element_size", "storage_offset", "is_contiguous",
         "is_floating_point", "is_complex", "get_device", "data_ptr", "is_same_size", "len")
"""Functions that tell numbers of a tensor which do not depend on its values; its attributes do so, too."""


PACKING = ("pack_padded_sequence", "pad_packed_sequence")
"""Functions that give values, and sizes beside them that do not depend on the data."""


class TraceError(Exception):
    """Error of a model that a recording would follow silently where it should not."""


@dataclass(frozen=True)
class Ref:
    """A tensor that a step gave, by its place among all that it gave."""

    step: int
    place: int


@dataclass(eq=False)
class Step:
    """A call of a function or of a module that is judged as a whole; the first are the inputs.

    Parameters:
        name: differs from that of every other step: the path of a module at its first call.
        kind: name of the function.
        called: the module or function.
        args, kwargs: with `Ref` in place of what depends on the sample.
        result: of the call; None where it failed.
    """

    name: str
    kind: str
    called: Any
    args: Any
    kwargs: Any
    result: Any = None

    @property
    def module(self) -> nn.Module | None:
        """The module, None where a function is called."""
        return self.called if isinstance(self.called, nn.Module) else None

    @property
    def sources(self) -> list[Ref]:
        """References to what it takes of other steps."""
        return refs((self.args, self.kwargs))


@dataclass(eq=False)
class Record:
    """The steps of a model in their order.

    Parameters:
        output: what the model returned, with `Ref`.
        failure: why the last step or the model failed, or nothing.
        problem: why the model as a whole cannot be followed, or nothing.
    """

    steps: list[Step]
    output: Any = None
    failure: str = ""
    problem: str = ""

    @property
    def needed(self) -> set[int]:
        """The steps that the output depends on; all of them where there is none."""
        if self.failure:
            return set(range(len(self.steps)))
        todo = [ref.step for ref in refs(self.output)]
        needed = set(todo)
        while todo:
            for ref in self.steps[todo.pop()].sources:
                if ref.step not in needed:
                    needed.add(ref.step)
                    todo.append(ref.step)
        return needed


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """A value whose parts, within tuples, lists, dictionaries and slices, are what ``change`` makes of them."""
    if isinstance(value, dict):
        return {key: mapped(each, change) for key, each in value.items()}
    if isinstance(value, list) or (isinstance(value, tuple) and not isinstance(value, torch.Size | PackedSequence)):
        parts = [mapped(each, change) for each in value]
        return parts if isinstance(value, list) else tuple(parts)
    return change(value)


def parts(value: Any) -> list[Any]:
    """Everything within a value, one by one."""
    found: list[Any] = []
    mapped(value, found.append)
    return found


def refs(value: Any) -> list[Ref]:
    """All references in a value."""
    return [part for part in parts(value) if isinstance(part, Ref)]


class _Recorder(TorchFunctionMode):
    """Notes calls while it is active."""

    def __init__(self, paths: Iterable[str]) -> None:
        super().__init__()
        self.steps: list[Step] = []
        self._known: dict[int, tuple[Tensor, Ref]] = {}  # The tensors are kept: an id is used again.
        self._within, self._taken = 0, {name for path in paths for name in (path, path.replace(".", "_"))}
        self._called = set[str]()

    def took(self, name: str, sample: Tensor) -> None:
        """Note the input, whose name no module may have then."""
        self._called.add(name)
        self._finish(self._begin(name, "input", None, (), {}), sample)

    def known(self, value: Any) -> Any:
        """A value with `Ref` in place of the tensors that depend on the sample."""
        def change(part: Any) -> Any:
            if isinstance(part, PackedSequence):
                if len(set(part.batch_sizes.tolist())) > 1:
                    raise TraceError("a packed sequence of different lengths")
                part = part.data
            return self._known[id(part)][1] if isinstance(part, Tensor) and id(part) in self._known else part
        return mapped(value, change)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        attribute = func.__name__ == "__get__"
        kind = func.__self__.__name__ if attribute else func.__name__.strip("_")
        taken = self.known((args, kwargs)) if not self._within else ()
        if not refs(taken) or kind in SIZES:
            return func(*args, **kwargs)
        step = self._begin(free_name(kind, self._taken), kind, func, *taken)
        result = func(*args, **kwargs)
        if kind == "setitem":
            self._finish(step, args[0])
        elif any(isinstance(each, Tensor) for each in parts(result)):
            self._finish(step, result)
        else:
            self.steps.pop()
            self._taken.discard(step.name)
            if not attribute and kind not in ABOUT and not isinstance(result, str | torch.Size | torch.dtype):
                raise TraceError(f"{kind} reads values that depend on the data")
        return result

    def entered(self, path: str, module: nn.Module, args: Any, kwargs: Any) -> None:
        """Note that a module begins; what it calls is part of it."""
        if not self._within and refs(taken := self.known((args, kwargs))):
            name = free_name(path.replace(".", "_"), self._taken) if path in self._called else path
            self._called.add(path)
            self._begin(name, "", module, *taken)
        self._within += 1

    def left(self, module: nn.Module, result: Any) -> None:
        """Note what a module gave."""
        self._within -= 1
        if not self._within and self.steps[-1].module is module and self.steps[-1].result is None:
            self._finish(self.steps[-1], result)

    def _begin(self, name: str, kind: str, called: Any, args: Any, kwargs: Any) -> Step:
        self._taken.add(name)
        self.steps.append(Step(name, kind, called, args, kwargs))
        return self.steps[-1]

    def _finish(self, step: Step, result: Any) -> None:
        step.result = result
        for place, part in enumerate(parts(result)[:1] if step.kind in PACKING else parts(result)):
            if isinstance(part, PackedSequence):
                part = part.data
            if isinstance(part, Tensor):
                self._known[id(part)] = part, Ref(len(self.steps) - 1, place)


def record(model: nn.Module, leaves: Mapping[str, nn.Module], samples: Mapping[str, Tensor], **more: Any) -> Record:
    """Run a model.

    Parameters:
        leaves: the modules that are judged as a whole, by path.
        samples: the inputs by name; arguments in this order.
        more: further arguments of the model.
    """
    recorder = _Recorder(leaves)
    for name, sample in samples.items():
        recorder.took(name, sample)
    hooks = []
    for path, module in leaves.items():
        def enter(module: nn.Module, args: Any, kwargs: Any, path: str = path) -> None:
            recorder.entered(path, module, args, kwargs)

        def leave(module: nn.Module, args: Any, result: Any) -> None:
            recorder.left(module, result)

        hooks += [module.register_forward_pre_hook(enter, with_kwargs=True), module.register_forward_hook(leave)]
    found = Record(recorder.steps)
    try:
        with torch.no_grad(), numbers_of(next(iter(samples.values())).dtype), recorder:
            found.output = recorder.known(model(*samples.values(), **more))
    except TraceError as error:
        found.failure = found.problem = (f"it cannot be traced{_where(error)} ({_reason(error)}); it must be free of "
                                         "packed sequences of different lengths and of decisions that depend on data")
    except Exception as error:  # a forward method may raise anything
        shapes = ", ".join(str(tuple(sample.shape)) for sample in samples.values())
        found.failure = f"it fails on samples of the shape {shapes}: {_reason(error)}"
        if found.steps[-1].result is not None:
            found.problem = found.failure + _where(error)
    finally:
        for hook in hooks:
            hook.remove()
    return found


@contextmanager
def numbers_of(dtype: torch.dtype) -> Iterator[None]:
    """While it is open, new tensors, such as zeros in a forward method, are of the type of a model's numbers."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype if dtype.is_floating_point else before)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def _where(error: Exception) -> str:
    """The user's own line that raised an error, in words."""
    others = str(Path(torch.__file__).parent), str(Path(__file__).parent)
    own = [frame for frame in traceback.extract_tb(error.__traceback__)
           if not frame.filename.startswith(others) and frame.line]
    return f" beyond `{own[-1].line}`, line {own[-1].lineno} of {Path(own[-1].filename).name}" if own else ""


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0]}" if str(error) else type(error).__name__
