"""From a torch model to the neutral graph, by tracing its forward method; every node of it is accounted for."""
import traceback
from collections import OrderedDict
from collections.abc import Iterator
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple

import torch
from numpy.typing import ArrayLike
from torch import Tensor, fx, nn
from torch.nn.utils import parametrize

from circulant.sim.public import public
from circulant.sim.refusal import Refusal
from circulant.training.blocks.clone import clone
from circulant.training.capture.graph import Graph
from circulant.training.capture.operators import problem_of
from circulant.training.capture.report import ConversionReport, Entry
from circulant.training.capture.walk import INPUT_AXES, Walk, kind_of
from circulant.training.models.cells import Recurrent
from circulant.training.models.quantizer import Quantizer

__all__ = ["Captured", "capture", "inspect"]


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
    return capture(clone(model).cpu().eval(), torch.as_tensor(sample)).report


def capture(model: nn.Module, sample: Tensor) -> Captured:
    """The neutral graph of a model in evaluation mode, which it shares its tensors with, and the report.

    Raises:
        Refusal: as `inspect`. What cannot be captured stands in the report; `ConversionReport.require` refuses it.
    """
    title = kind_of(model)
    if sample.ndim not in INPUT_AXES or not sample.numel():
        raise Refusal("Sample inputs must have the shape (N, inputs), (N, T, inputs) or (N, channels, height, width) "
                      f"and be not empty, not {tuple(sample.shape)}; give a few representative samples")
    if _Tracer().is_leaf_module(model, ""):
        model = nn.Sequential(OrderedDict({title.lower(): model}))
    entries = [Entry(path, kind_of(module), "refused", problem) for path, module in _leaves(model)
               if (problem := problem_of(module))]
    try:
        # Without lengths, which the training gives to a model that asks for them, all steps of a sequence are valid.
        asks = "lengths" in signature(model.forward).parameters
        traced = _Tracer().trace(model, concrete_args={"lengths": None} if asks else None)
    except Exception as error:  # a forward method may raise anything when it meets a proxy
        entries.append(Entry("forward", "", "refused", f"it cannot be traced{_where(error)} ({_reason(error)}); it "
                             "must be free of packed sequences, of decisions that depend on data and of initial "
                             "states"))
        return Captured(None, ConversionReport(title, tuple(entries)))
    needed = _ancestors(traced)
    if sum(node.op == "placeholder" for node in needed) > 1:
        entries.append(Entry("forward", "", "refused", "it takes more than one input; only one tensor is supported"))
        return Captured(None, ConversionReport(title, tuple(entries)))
    _check_features(model, traced, sample)
    results = _Results(model, traced)
    number = next(parameter.dtype for parameter in (*model.parameters(), torch.zeros(())))
    try:
        with torch.no_grad():
            results.run((sample[:2] if len(sample) > 1 else sample.repeat(2, *(1,) * (sample.ndim - 1))).to(number))
    except Exception as error:  # so may it when it meets data; the walk says where
        results.failure = f"it fails on samples of the shape {tuple(sample.shape)}: {_reason(error)}"
    return Captured(*Walk(model, traced, needed=needed, results=results.seen, failure=results.failure,
                          title=title).run())


class _Tracer(fx.Tracer):
    """Every module that is no container of the user's is a leaf: it is judged as a whole, never looked into."""

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        known = parametrize.type_before_parametrizations(m).__module__.startswith("torch.nn")
        return (known and not isinstance(m, nn.Sequential)) or isinstance(
            m, nn.Linear | nn.RNNBase | Recurrent | Quantizer)


def _leaves(module: nn.Module, path: str = "") -> Iterator[tuple[str, nn.Module]]:
    """The modules that are judged as a whole, by their paths."""
    for name, child in module.named_children():
        below = f"{path}.{name}" if path else name
        if _Tracer().is_leaf_module(child, below):
            yield below, child
        else:
            yield from _leaves(child, below)


class _Results(fx.Interpreter):
    """Runs a graph, and remembers the result of every node, up to where it fails."""

    def __init__(self, model: nn.Module, graph: fx.Graph) -> None:
        super().__init__(model, graph=graph)  # A GraphModule would write code, with every name in it.
        self.seen: dict[str, Any] = {}
        self.failure = ""

    def run_node(self, n: fx.Node) -> Any:
        self.seen[n.name] = super().run_node(n)
        return self.seen[n.name]


def _check_features(model: nn.Module, traced: fx.Graph, sample: Tensor) -> None:
    """Check the last axis of a sample against the first layer."""
    for node in traced.nodes:
        if node.op == "call_module" and any(source.op == "placeholder" for source in node.all_input_nodes):
            module = model.get_submodule(str(node.target))
            wanted = getattr(module, "in_features", getattr(module, "input_size", sample.shape[-1]))
            if sample.shape[-1] != wanted:
                raise Refusal(f"Sample inputs must have {wanted} features, the inputs of the model, on their last "
                              f"axis, not the shape {tuple(sample.shape)}; rearrange the axes")


def _ancestors(graph: fx.Graph) -> set[fx.Node]:
    """The nodes that the output depends on, the output included."""
    needed = {node for node in graph.nodes if node.op == "output"}
    todo = list(needed)
    while todo:
        for node in todo.pop().all_input_nodes:
            if node not in needed:
                needed.add(node)
                todo.append(node)
    return needed


def _where(error: Exception) -> str:
    """The user's own line that raised an error, in words."""
    others = str(Path(torch.__file__).parent), str(Path(__file__).parent)
    own = [frame for frame in traceback.extract_tb(error.__traceback__)
           if not frame.filename.startswith(others) and frame.line]
    return f" beyond `{own[-1].line}`, line {own[-1].lineno} of {Path(own[-1].filename).name}" if own else ""


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0]}" if str(error) else type(error).__name__
