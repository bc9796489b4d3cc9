"""From a torch model to the neutral graph, by recording its forward method; every part of it is accounted for."""
from collections import OrderedDict
from collections.abc import Iterator
from inspect import Parameter, signature
from typing import NamedTuple

import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn
from torch.nn.utils import parametrize

from circulant.sim.public import public
from circulant.sim.refusal import Refusal
from circulant.training.blocks.clone import clone
from circulant.training.capture.graph import Graph
from circulant.training.capture.loops import unlooped
from circulant.training.capture.operators import problem_of
from circulant.training.capture.record import Record, Ref, record
from circulant.training.capture.report import ConversionReport, Entry
from circulant.training.capture.walk import Walk, kind_of
from circulant.training.models.cells import Recurrent
from circulant.training.models.quantizer import Quantizer

__all__ = ["Captured", "capture", "finite", "inspect"]


class Captured(NamedTuple):
    """The graph of a model, None where anything is refused, and what became of each of its nodes."""

    graph: Graph | None
    report: ConversionReport


@public
def inspect(model: nn.Module, sample: ArrayLike | Tensor) -> ConversionReport:
    """The fate of each part of a model: one of `STATUSES`, and why.

    Parameters:
        model: stays as it is; judged in evaluation mode.
        sample: one or more inputs as the model takes them, the batch first: (N, inputs), (N, T, inputs) or
            (N, channels, height, width). Values do not matter, the shape does.

    Raises:
        Refusal: when the sample has another rank, is empty, or has not the features that the model takes.
    """
    model = clone(model).cpu().eval()
    finite(model)
    return capture(model, torch.as_tensor(sample)).report


def finite(model: nn.Module) -> list[str]:
    """The names of the tensors that hold NaN or infinity, in whose place they hold 0 then."""
    bad = [name for name, value in model.state_dict().items() if not torch.isfinite(value).all()]
    for name in bad:
        model.state_dict()[name].nan_to_num_(posinf=0, neginf=0)
    return bad


def capture(model: nn.Module, sample: Tensor) -> Captured:
    """The neutral graph of a model in evaluation mode, which it shares its tensors with, and the report.

    Raises:
        Refusal: as `inspect`. What cannot be captured stands in the report; `ConversionReport.require` refuses it.
    """
    title = kind_of(model)
    if sample.ndim < 2 or not sample.numel():
        raise Refusal("Sample inputs must have the shape (N, inputs), (N, T, inputs) or (N, channels, height, width) "
                      f"and be not empty, not {tuple(sample.shape)}; give a few representative samples")
    if _judged_whole(model):
        model = nn.Sequential(OrderedDict({title.lower(): model}))
    taken = signature(model.forward).parameters.values()
    leaves = dict(_leaves(model))
    required = [each for each in taken if each.default is Parameter.empty and each.name != "lengths" and each.kind in (
        Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)]
    if len(required) > 1:
        return Captured(None, _refused(title, leaves, "it takes more than one input; only one tensor is supported"))
    # Without lengths, which the training gives to a model that asks for them, all steps of a sequence are valid.
    lengths = {"lengths": None} if any(each.name == "lengths" for each in taken) else {}
    number = next(parameter.dtype for parameter in (*model.parameters(), torch.zeros(())))
    rows = (sample[:2] if len(sample) > 1 else sample.repeat(2, *(1,) * (sample.ndim - 1))).to(number, copy=True)
    done = record(model, leaves, next((each.name for each in taken), "input"), rows, **lengths)
    _check_features(done, sample)
    if done.problem:
        return Captured(None, _refused(title, leaves, done.problem))
    return Captured(*Walk(model, done if done.failure else unlooped(done), title).run())


def _refused(title: str, leaves: dict[str, nn.Module], problem: str) -> ConversionReport:
    """The report on a model that cannot be followed: that, and the layers that would be refused."""
    entries = [Entry(path, kind_of(module), "refused", reason) for path, module in leaves.items()
               if (reason := problem_of(module))]
    return ConversionReport(title, (*entries, Entry("forward", "", "refused", problem)))


def _judged_whole(module: nn.Module) -> bool:
    """Whether a module is judged as a whole, and never looked into: one that is no container of the user's."""
    known = parametrize.type_before_parametrizations(module).__module__.startswith("torch.nn")
    return (known and not isinstance(module, nn.Sequential | nn.ModuleList | nn.ModuleDict)) or isinstance(
        module, nn.Linear | nn.RNNBase | Recurrent | Quantizer)


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


def _check_features(done: Record, sample: Tensor) -> None:
    """Check the last axis of a sample against the first layer."""
    for step in done.steps:
        if step.module is not None and Ref(0, 0) in step.sources:
            wanted = getattr(step.module, "in_features", getattr(step.module, "input_size", sample.shape[-1]))
            if sample.shape[-1] != wanted:
                raise Refusal(f"Sample inputs must have {wanted} features, the inputs of the model, on their last "
                              f"axis, not the shape {tuple(sample.shape)}; rearrange the axes")
