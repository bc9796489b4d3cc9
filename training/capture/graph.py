"""The graph of a torch model as a chain of the layers that can be converted; all that cannot be is listed at once."""
import re
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from torch import fx, nn
from torch.nn.utils import parametrize

from circulant.sim.refusal import Refusal
from circulant.training.constraint import BlockCirculant

__all__ = ["Step", "chain"]

TRANSPARENT = (nn.Identity, nn.Dropout)
LAST_STEP = "take the last step of a GRU with out[:, -1] or h_n[-1]"


@dataclass(frozen=True)
class Step:
    """A layer of the chain: the module, its path in the model, and for a GRU whether only its last step is used."""

    path: str
    module: nn.Module
    last: bool = False


@dataclass(frozen=True)
class _Value:
    """What a node of the graph yields: the layers behind it, and its kind.

    Kinds: "vector" (N, n), "sequence" (N, T, n), "result" (what a GRU returns), "states" (its h_n), "unknown".
    """

    kind: str
    steps: tuple[Step, ...] = ()


class _Tracer(fx.Tracer):
    """Every module that is no container of the user's is a leaf: it is judged as a whole, never looked into."""

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        known = parametrize.type_before_parametrizations(m).__module__.startswith("torch.nn")
        return (known and not isinstance(m, nn.Sequential)) or isinstance(m, nn.Linear | nn.RNNBase)


def chain(model: nn.Module, *, sequence: bool) -> tuple[Step, ...]:
    """The layers that a model applies to its input one after the other, found by tracing its forward method.

    Parameters:
        sequence: whether the input is (N, T, inputs), not (N, inputs).

    Raises:
        Refusal: everything that cannot be converted, at once.
    """
    if _Tracer().is_leaf_module(model, ""):
        model = nn.Sequential(OrderedDict({_kind(model).lower(): model}))
    problems: dict[str, str] = {}
    try:
        graph = _Tracer().trace(model)
    except Exception as error:  # a forward method may raise anything when it meets a proxy
        for path, module in model.named_modules():
            if path and _Tracer().is_leaf_module(module, path) and (problem := _module_problem(module)):
                problems[path] = f"{_kind(module)}: {problem}"
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        problems["forward"] = (f"{type(error).__name__}: {reason}; it must be free of decisions that depend on data "
                               "and of initial states")
        raise _refusal(problems) from error
    return _Walk(model, graph, problems, sequence).run()


class _Walk:
    """Follows the graph from the input to the output, collecting layers and problems."""

    def __init__(self, model: nn.Module, graph: fx.Graph, problems: dict[str, str], sequence: bool) -> None:
        self.model, self.graph, self.problems, self.sequence = model, graph, problems, sequence
        self.values: dict[fx.Node, _Value] = {}
        self.calls: dict[str, int] = {}

    def run(self) -> tuple[Step, ...]:
        needed = _ancestors(self.graph)
        if sum(node.op == "placeholder" for node in needed) > 1:
            self.problems["forward"] = "it takes more than one input; only one tensor is supported"
        visit: dict[str, Callable[[fx.Node], _Value]] = {
            "placeholder": lambda node: _Value("sequence" if self.sequence else "vector"),
            "call_module": self._module, "call_function": self._function, "call_method": self._function,
            "get_attr": self._other, "output": self._output}
        for node in self.graph.nodes:
            if node in needed:
                self.values[node] = visit[node.op](node)
        if self.problems:
            raise _refusal(self.problems)
        return next(value.steps for node, value in self.values.items() if node.op == "output")

    def _note(self, where: str, problem: str) -> None:
        self.problems.setdefault(where, problem)

    def _module(self, node: fx.Node) -> _Value:
        path = str(node.target)
        module = self.model.get_submodule(path)
        self.calls[path] = self.calls.get(path, 0) + 1
        source = self._argument(node)
        if problem := _module_problem(module):
            self._note(path, f"{_kind(module)}: {problem}")
            return _Value("unknown")
        if isinstance(module, TRANSPARENT):
            return source
        gru = isinstance(module, nn.GRU)
        given = [value for value in (*node.args, *node.kwargs.values()) if value is not None]
        if len(given) > 1:
            self._note(path, f"{_kind(module)}: an initial state is not supported; leave it out, it is zero then")
        if not node.all_input_nodes:
            self._note(path, f"{_kind(module)}: it must depend on the input of the model, not on a constant")
        if self.calls[path] > 1:
            self._note(path, f"{_kind(module)}: it is called more than once; give every call a layer of its own")
        if source.kind in ("result", "states"):
            self._note(path, f"{_kind(module)}: it must take a tensor, not all that a GRU returns; {LAST_STEP}")
        if gru and source.kind == "vector":
            self._note(path, "GRU: it must take a sequence (N, T, inputs), not a vector of each; give it all steps")
        if path in self.problems or source.kind == "unknown":
            return _Value("unknown")
        return _Value("result" if gru else source.kind, (*source.steps, Step(path, module)))

    def _function(self, node: fx.Node) -> _Value:
        name = str(node.target) if node.op == "call_method" else getattr(node.target, "__name__", str(node.target))
        source = self._argument(node)
        if source.kind == "unknown":
            if name != "getitem":
                self._note(node.name, f"{name}: the function is not supported")
            return source
        if name == "getitem":
            key = node.args[1]
            if source.kind == "result" and key in (0, 1):
                return replace(source, kind="states" if key else "sequence")
            if source.kind == "states" and (key == -1 or key == _layers(source) - 1):
                return _last(source)
            whole = slice(None)
            recurrent = any(isinstance(step.module, nn.GRU) for step in source.steps)
            if source.kind == "sequence" and recurrent and key in ((whole, -1), (whole, -1, whole)):
                return _last(source)
            self._note(node.name, f"indexing with [{_index(key)}] is not supported; {LAST_STEP}")
        else:
            self._note(node.name, f"{name}: the function is not supported")
        return _Value("unknown")

    def _other(self, node: fx.Node) -> _Value:
        self._note(node.name, f"the tensor {node.target} is used by itself; only layers may hold tensors")
        return _Value("unknown")

    def _output(self, node: fx.Node) -> _Value:
        value = self._argument(node)
        if not isinstance(node.args[0], fx.Node) or value.kind in ("result", "states"):
            self._note("output", f"it must be one tensor, not what a GRU returns or a collection; {LAST_STEP}")
        elif value.kind != "unknown" and not value.steps:
            self._note("output", "it must come from at least one Linear or GRU")
        return value

    def _argument(self, node: fx.Node) -> _Value:
        """The first operand; a node with several operands is judged by its caller."""
        operands = node.all_input_nodes
        return self.values[operands[0]] if operands else _Value("unknown")


def _module_problem(module: nn.Module) -> str | None:
    """Why a module by itself cannot be converted, or None."""
    kind = parametrize.type_before_parametrizations(module)
    if kind not in (nn.Linear, nn.GRU, *TRANSPARENT):
        return "the layer is not supported; use GRU and Linear"
    if isinstance(module, nn.GRU):
        found = []
        if not module.batch_first:
            found.append("batch_first=False is not supported; build it with batch_first=True and inputs (N, T, inputs)")
        if module.bidirectional:
            found.append("bidirectional=True is not supported; use one direction")
        if found:
            return ", ".join(found)
    if parametrize.is_parametrized(module):
        chains: Any = module.parametrizations
        for tensor, chained in chains.items():
            if len(chained) > 1 and any(isinstance(part, BlockCirculant) for part in chained):
                return f"{tensor} carries other parametrizations beside BlockCirculant; remove them"
    return None


def _last(value: _Value) -> _Value:
    """The last step of a sequence: every layer after the last GRU works on each step alone, so the GRU may take it."""
    at = max(i for i, step in enumerate(value.steps) if isinstance(step.module, nn.GRU))
    steps = (*value.steps[:at], replace(value.steps[at], last=True), *value.steps[at + 1:])
    return _Value("vector", steps)


def _layers(value: _Value) -> int:
    module = value.steps[-1].module
    return module.num_layers if isinstance(module, nn.GRU) else 1


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


def _kind(module: nn.Module) -> str:
    return parametrize.type_before_parametrizations(module).__name__


def _index(key: Any) -> str:
    parts = key if isinstance(key, tuple) else (key,)
    texts = (":" if part == slice(None) else re.sub("None", "", f"{part.start}:{part.stop}") if isinstance(part, slice)
             else str(part) for part in parts)
    return ", ".join(texts)


def _refusal(problems: dict[str, str]) -> Refusal:
    count = "1 part of the model cannot" if len(problems) == 1 else f"{len(problems)} parts of the model cannot"
    return Refusal(f"{count} be converted: " + ", ".join(f"{where} ({problem})" for where, problem in problems.items()))
