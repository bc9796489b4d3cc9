"""From a torch model to the neutral graph, by recording its forward method; every part of it is accounted for."""
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from inspect import Parameter, signature
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn
from torch.nn.utils import parametrize

from circulant.sim.public import public
from circulant.sim.refusal import Refusal
from circulant.training.blocks.clone import clone
from circulant.training.capture.loops import unlooped
from circulant.training.capture.merging import unmerged
from circulant.training.capture.operators import problem_of
from circulant.training.capture.record import Record, Ref, record, refs
from circulant.training.capture.report import ConversionReport, Entry
from circulant.training.capture.walk import Walk, kind_of
from circulant.training.models.cells import Recurrent
from circulant.training.models.quantizer import Quantizer
from circulant.training.neutral.forms import MODULES
from circulant.training.neutral.graph import Graph

__all__ = ["Captured", "capture", "finite", "inputs_of", "inspect", "typed"]


class Captured(NamedTuple):
    """The graph of a model, None where anything is refused, and what became of each of its nodes."""

    graph: Graph | None
    report: ConversionReport


@public
def inspect(model: nn.Module, sample: ArrayLike | Tensor | tuple[Any, ...] | Mapping[str, Any]) -> ConversionReport:
    """The fate of each part of a model: one of `STATUSES`, and why.

    Parameters:
        model: stays as it is; judged in evaluation mode.
        sample: one or more inputs as the model takes them, the batch first: (N, inputs), (N, T, inputs) or
            (N, channels, height, width). Values do not matter, the shape does. Of a model with several inputs a tuple
            of those of each in the order of its ``forward``, or those by name.

    Raises:
        Refusal: when the sample has another rank, is empty, or has not the features that the model takes.
    """
    model = clone(model).cpu().eval()
    finite(model)
    return capture(model, sample).report


def inputs_of(model: nn.Module, sample: Any) -> dict[str, Tensor]:
    """The inputs of a model by name, in the order of its ``forward``.

    Raises:
        Refusal: when it does not take as many or others, or they have not as many samples.
    """
    taken = [each for each in signature(model.forward).parameters.values() if each.name != "lengths"]
    names = [each.name for each in taken if each.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)]
    several = isinstance(sample, tuple) and bool(sample) and all(np.ndim(each) for each in sample)
    values = list(sample.values() if isinstance(sample, Mapping) else sample if several else [sample])
    names += [f"{each.name}_{n}" for each in taken if each.kind is Parameter.VAR_POSITIONAL
              for n in range(len(values) - len(names))]
    keys = list(sample) if isinstance(sample, Mapping) else names[:len(values)]
    due = sum(each.default is Parameter.empty for each in taken if each.name in names)
    if not due <= len(values) == len(keys) or set(keys) != set(names[:len(keys)]):
        raise Refusal(f"The sample must be of the inputs of the model, {', '.join(names)}, not of "
                      f"{', '.join(keys) if isinstance(sample, Mapping) else len(values)}; give a tuple of those of "
                      "each, or a dictionary by name")
    given = dict(zip(keys, values, strict=True))
    given = {name: given[name] for name in names[:len(keys)]}
    found = {name: torch.as_tensor(value) for name, value in given.items()}
    if len({len(value) for value in found.values() if value.ndim}) > 1:
        counts = ", ".join(str(len(each)) for each in found.values())
        raise Refusal(f"All inputs must have as many samples, not {counts}; give the same of each")
    return found


def finite(model: nn.Module) -> list[str]:
    """The names of the tensors that hold NaN or infinity, in whose place they hold 0 then."""
    bad = [name for name, value in model.state_dict().items() if not torch.isfinite(value).all()]
    for name in bad:
        model.state_dict()[name].nan_to_num_(posinf=0, neginf=0)
    return bad


def capture(model: nn.Module, sample: Any) -> Captured:
    """The neutral graph of a model in evaluation mode, which it shares its tensors with, and the report.

    Parameters:
        sample: as `inspect`.

    Raises:
        Refusal: as `inspect`. What cannot be captured stands in the report; `ConversionReport.require` refuses it.
    """
    title = kind_of(model)
    if _judged_whole(model):
        model = nn.Sequential(OrderedDict({title.lower(): model}))
    samples = inputs_of(model, sample)
    for each in samples.values():
        if each.ndim < 2 or not each.numel():
            raise Refusal("Sample inputs must have the shape (N, inputs), (N, T, inputs) or (N, channels, height, "
                          f"width) and be not empty, not {tuple(each.shape)}; give a few representative samples")
    leaves = dict(_leaves(model))
    # Without lengths, which the training gives to a model that asks for them, all steps of a sequence are valid.
    lengths = {"lengths": None} if "lengths" in signature(model.forward).parameters else {}
    number = next(parameter.dtype for parameter in (*model.parameters(), torch.zeros(())))
    rows = {name: typed(model, (each[:2] if len(each) > 1 else each.repeat(2, *(1,) * (each.ndim - 1))).clone(), number)
            for name, each in samples.items()}
    done = record(model, leaves, rows, **lengths)
    _check_features(done, list(samples.values()))
    if done.problem:
        return Captured(None, _refused(title, leaves, done.problem))
    return Captured(*Walk(model, done if done.failure else unmerged(unlooped(done)), title).run())


def typed(model: nn.Module, sample: Tensor, number: torch.dtype) -> Tensor:
    """A sample in the type of the model's numbers; integers stay where there are tables that they may be for."""
    tables = any(isinstance(module, nn.Embedding) for module in model.modules())
    return sample.long() if tables and not sample.is_floating_point() else sample.to(number)


def _refused(title: str, leaves: dict[str, nn.Module], problem: str) -> ConversionReport:
    """The report on a model that cannot be followed: that, and the layers that would be refused."""
    entries = [Entry(path, kind_of(module), "refused", reason) for path, module in leaves.items()
               if (reason := problem_of(module))]
    return ConversionReport(title, (*entries, Entry("forward", "", "refused", problem)))


def _judged_whole(module: nn.Module) -> bool:
    """Whether a module is judged as a whole, and never looked into: one that is no container of the user's."""
    known = parametrize.type_before_parametrizations(module).__module__.startswith("torch.nn")
    return (known and not isinstance(module, nn.Sequential | nn.ModuleList | nn.ModuleDict)) or isinstance(
        module, nn.Linear | nn.RNNBase | Recurrent | Quantizer) or type(module) in MODULES


def _leaves(module: nn.Module, path: str = "", seen: set[nn.Module] | None = None) -> Iterator[tuple[str, nn.Module]]:
    """The modules that are judged as a whole, by the first of their paths."""
    seen = set() if seen is None else seen
    for name, child in module.named_children():
        below = f"{path}.{name}" if path else name
        if not _judged_whole(child):
            yield from _leaves(child, below, seen)
        elif child not in seen:
            seen.add(child)
            yield below, child


def _check_features(done: Record, samples: list[Tensor]) -> None:
    """Check the last axis of each input against the layer that takes it."""
    for step in done.steps:
        for number, sample in enumerate(samples) if step.module is not None else ():
            wanted = getattr(step.module, "in_features", getattr(step.module, "input_size", sample.shape[-1]))
            if Ref(number, 0) in refs((step.args[:1], {})) and sample.shape[-1] != wanted:
                raise Refusal(f"Sample inputs must have {wanted} features, the inputs of the model, on their last "
                              f"axis, not the shape {tuple(sample.shape)}; rearrange the axes")
