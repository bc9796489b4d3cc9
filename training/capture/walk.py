"""The walk over a traced model, which turns its nodes into neutral ones and accounts for each of them."""
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.nn.utils import parametrize

from circulant.training.blocks.matrices import matrices, owner, storage
from circulant.training.capture.call import LAST_STEP, Call, Unsupported, Value
from circulant.training.capture.graph import Graph, Node, simplify
from circulant.training.capture.lowering import missing, moves_batch
from circulant.training.capture.operators import FUNCTIONS, MODULES, problem_of
from circulant.training.capture.report import ConversionReport, Entry

__all__ = ["INPUT_AXES", "Walk", "kind_of"]

INPUT_AXES = {2: ("batch", "feature"), 3: ("batch", "time", "feature"), 4: ("batch", "feature", "feature", "feature")}
"""Meanings of the axes of a sample, by their number."""

REFUSED_BEFORE = "something before it is refused"


class Walk:
    """Follows a traced graph from its input to its output.

    Parameters:
        needed: the nodes that the output depends on.
        results: what each node gives for a sample, by its name.
        failure: why the results end before the output, or nothing.
        title: of the report.
    """

    def __init__(self, model: nn.Module, traced: fx.Graph, needed: set[fx.Node], results: dict[str, Any],
                 failure: str, title: str) -> None:
        self.model, self.traced, self.needed, self.results = model, traced, needed, results
        self.failure, self.title = failure, title
        self.values: dict[fx.Node, Value] = {}
        self.nodes: dict[str, Node] = {}
        self.entries: dict[str, Entry] = {}

    def run(self) -> tuple[Graph | None, ConversionReport]:
        visit: dict[str, Callable[[fx.Node, str], Value]] = {
            "placeholder": self._input, "call_module": self._module, "call_function": self._function,
            "call_method": self._function, "get_attr": self._tensor, "output": self._output}
        for node in self.traced.nodes:
            path = str(node.target) if node.op == "call_module" else ""
            name = path if path and path not in self.entries else node.name
            if node in self.needed:
                self.values[node] = visit[node.op](node, name)
            elif node.op != "placeholder":
                self._note(name, self._kind_of(node), "skipped", "its output is not used", None)
        if any(entry.status == "refused" for entry in self.entries.values()):
            return None, self.report
        output = next(value.node for node, value in self.values.items() if node.op == "output")
        return self._finish(Graph(tuple(self.nodes.values()), output))

    @property
    def report(self) -> ConversionReport:
        return ConversionReport(self.title, tuple(self.entries.values()))

    def _finish(self, graph: Graph) -> tuple[Graph | None, ConversionReport]:
        graph, notes = simplify(graph)
        left, absent, sizes = {node.name for node in graph.nodes}, missing(graph), _sizes(self.model)
        for name, entry in self.entries.items():
            if name in left:
                note = "; ".join(filter(None, (sizes.get(name), notes.get(name), absent.get(name))))
                status = "captured" if name in absent else entry.status
                self.entries[name] = Entry(name, entry.kind, status, note, entry.shape)
            elif name in self.nodes and name not in left:
                status = "skipped" if notes[name].startswith("dropped") else "folded"
                self.entries[name] = Entry(name, entry.kind, status, notes[name], entry.shape)
            if name in left and moves_batch(graph[name]):
                self.entries[name] = Entry(name, entry.kind, "skipped", "it moves the batch only", entry.shape)
        return graph, self.report

    def _note(self, name: str, kind: str, status: str, note: str, result: Any) -> None:
        shape = " × ".join(["N", *map(str, result.shape[1:])]) if isinstance(result, Tensor) and result.ndim else ""
        self.entries[name] = Entry(name, kind, status, note, shape)

    def _input(self, node: fx.Node, name: str) -> Value:
        sizes = tuple(self.results[node.name].shape)
        self.nodes[name] = Node(name, "input", "input", (), (None, *sizes[1:]))
        return Value("tensor", name, INPUT_AXES[len(sizes)], sizes)

    def _module(self, node: fx.Node, name: str) -> Value:
        module = self.model.get_submodule(str(node.target))
        problem = problem_of(module)
        if problem is None and name != node.target and any(True for _ in module.parameters()):
            problem = "it is called more than once; give every call a layer of its own"
        return self._judge(node, name, module, MODULES.get(parametrize.type_before_parametrizations(module)), problem)

    def _function(self, node: fx.Node, name: str) -> Value:
        result = self.results.get(node.name, ())
        if not isinstance(result, Tensor | tuple) or isinstance(result, torch.Size):
            self._note(name, self._kind_of(node), "skipped", "a size, which the sample gives", None)
            return Value("number")
        handler = FUNCTIONS.get(self._kind_of(node))
        return self._judge(node, name, None, handler, None if handler else "the function is not supported")

    def _judge(self, node: fx.Node, name: str, module: nn.Module | None, handler: Callable[[Call], Value] | None,
               problem: str | None) -> Value:
        """The value of a call, with an entry of what became of it."""
        kind, result = self._kind_of(node), self.results.get(node.name)
        result = result[0] if isinstance(result, tuple) else result
        sources: list[Value] = []

        def value_of(source: fx.Node) -> Any:
            sources.append(self.values[source])
            return sources[-1]

        args: Any = fx.node.map_arg(node.args, value_of)
        kwargs: Any = fx.node.map_arg(node.kwargs, value_of)

        def emit(op: str, inputs: tuple[str, ...], axes: tuple[str, ...], module: nn.Module | None = None,
                 options: dict[str, Any] | None = None) -> Value:
            if not isinstance(result, Tensor):
                raise Unsupported(self.failure)
            sizes = tuple(result.shape)
            shape = tuple(None if label == "batch" else size for label, size in zip(axes, sizes, strict=True))
            self.nodes[name] = Node(name, op=op, kind=kind, inputs=inputs, shape=shape, module=module,
                                    options=options or {})
            return Value("tensor", name, axes, sizes)

        unknown = any(source.kind == "unknown" for source in sources)
        if problem is None and not unknown and handler is not None:
            try:
                value = handler(Call(kind, module=module, sources=tuple(sources), args=args, kwargs=kwargs,
                                     result=tuple(getattr(result, "shape", ())), emit=emit,
                                     module_of=lambda source: self.nodes[source].module))
            except Unsupported as reason:
                problem = str(reason)
            else:
                emitted = name in self.nodes
                self._note(name, kind, "converted" if emitted else "skipped",
                           "" if emitted else "without effect in evaluation" if module else "selects an output", result)
                return value
        if problem is not None:
            self._note(name, kind, "refused", problem, None)
        else:
            self._note(name, kind, "not judged", REFUSED_BEFORE, None)
        return Value("unknown")

    def _tensor(self, node: fx.Node, name: str) -> Value:
        self._note(name, "tensor", "refused", f"{node.target} is used by itself; only layers may hold tensors", None)
        return Value("unknown")

    def _output(self, node: fx.Node, name: str) -> Value:
        sources = node.all_input_nodes
        value = self.values[sources[0]] if sources else Value("number")
        problem = None
        if not isinstance(node.args[0], fx.Node) or value.kind not in ("tensor", "unknown"):
            problem = f"it must be one tensor, not what a recurrent layer returns or a collection; {LAST_STEP}"
        elif value.kind == "tensor" and all(node.op == "input" for node in self.nodes.values()):
            problem = "it must come from at least one layer"
        elif value.kind == "tensor" and value.axes[0] != "batch":
            problem = "the batch must be its first axis; transpose it"
        if problem:
            self._note("output", "", "refused", problem, None)
        return value

    def _kind_of(self, node: fx.Node) -> str:
        if node.op == "call_module":
            return kind_of(self.model.get_submodule(str(node.target)))
        return str(node.target) if node.op == "call_method" else getattr(node.target, "__name__", str(node.target))


def _sizes(model: nn.Module) -> dict[str, str]:
    """By module, the block size of its matrices and how much of each is padding: "k = 8, 37 % padding"; where a side is
    shorter than a block, such as few channels, a block size that is not."""
    texts: dict[str, list[str]] = {}
    sides = {name: min(matrix.rows, matrix.columns) for name, matrix in matrices(model).items()}
    for name, matrix in storage(model).items():
        padding = f", {matrix.padding:.0%} padding" if matrix.padding else ""
        if sides[name] < matrix.block_size:
            padding += f", less with k = {1 << sides[name].bit_length() - 1}"
        texts.setdefault(owner(name), []).append(f"k = {matrix.block_size}{padding}" if matrix.block_size > 1 else
                                                 "dense")
    return {module: "; ".join(dict.fromkeys(parts)) for module, parts in texts.items()}


def kind_of(module: nn.Module) -> str:
    """The class that a user gave a module, whatever parametrizes it."""
    return parametrize.type_before_parametrizations(module).__name__
