"""The walk over a recorded model, which turns its steps into neutral nodes and accounts for each of them."""
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from circulant.sim.shape.graph import free_name
from circulant.training.blocks.matrices import matrices, owner, storage
from circulant.training.capture.axes import indexing
from circulant.training.capture.operators import problem_of
from circulant.training.capture.record import Record, Ref, Step, mapped, parts
from circulant.training.capture.report import ConversionReport, Entry
from circulant.training.capture.simplify import simplify
from circulant.training.capture.turning import turned
from circulant.training.kinds.activation import Function
from circulant.training.kinds.cell import CELLS, Recurrent
from circulant.training.kinds.step import LOOPED
from circulant.training.kinds.taps import Padded
from circulant.training.neutral.call import HIDDEN, LAST_STEP, Call, Unsupported, Value
from circulant.training.neutral.forms import CONSTANTS, FUNCTIONS, handler_of
from circulant.training.neutral.graph import Constant, Graph, Input, Move, Node, Output
from circulant.training.neutral.lowering import judged
from circulant.training.neutral.making import NO_LAYER

__all__ = ["Walk", "kind_of"]

REFUSED_BEFORE = "something before it is refused"

JOINING = ("cat", "concat", "concatenate", "stack")
"""Functions that put constants beside values."""

ROW = 1 << 40
"""Difference of the numbers of one sample and of the next, where the samples of a batch are told apart."""


class Walk:
    """Follows the steps of a model from its input to its output.

    Parameters:
        record: of two samples or more.
        title: of the report.
    """

    def __init__(self, model: nn.Module, record: Record, title: str) -> None:
        self.model, self.record, self.title = model, record, title
        self.values: list[Any] = []
        self.nodes: dict[str, Node] = {}
        self.entries: dict[str, Entry] = {}
        self._starts: list[tuple[int, str]] = []  # The number of the first value of each node.
        self._count = 0
        self._rows = len(record.steps[0].result)
        self._tensors = {id(tensor): name for name, tensor in (*model.named_parameters(), *model.named_buffers())}

    def run(self) -> tuple[Graph | None, ConversionReport]:
        """The graph, None where anything is refused, and the report."""
        needed = self.record.needed
        for number, step in enumerate(self.record.steps):
            if step.kind == "input":
                self.values.append(self._input(step))
            elif number in needed:
                self.values.append(self._judged(step))
            else:
                self._note(step.name, _kind(step), "skipped", "its output is not used", None)
                self.values.append(Value())
        outputs = None if self.record.failure else self._outputs()
        if self.record.problem:
            self._note("forward", "", "refused", self.record.problem, None)
        if self.record.failure and not any(entry.status == "refused" for entry in self.entries.values()):
            failed = self.record.steps[-1]  # Its module can be captured, but not on this sample.
            self.entries.pop(failed.name, None)
            self._note(failed.name, _kind(failed), "refused", self.record.failure, None)
        if outputs is None or any(entry.status == "refused" for entry in self.entries.values()):
            return None, ConversionReport(self.title, tuple(self.entries.values()))
        whole = Graph(tuple(self.nodes.values()), outputs)
        for idle in [node for node in whole.inputs if node not in whole.pruned.nodes]:
            self._note(idle.name, "input", "refused", "no output depends on it; leave it out of forward", None)
        graph = self._finish(whole.pruned)
        return graph, ConversionReport(self.title, tuple(self.entries.values()))

    def _finish(self, graph: Graph) -> Graph | None:
        graph, notes = simplify(graph)
        graph, more = turned(graph)
        notes |= more
        left = {node.name for node in graph.nodes if not isinstance(node, Move)}
        builder, sizes = judged(graph), _sizes(self.model)
        absent, recurrent = builder.problems, any(isinstance(node, Recurrent) for node in graph.nodes)
        notes |= {name: note for name, note in builder.notes.items() if name not in notes}
        for name in absent.keys() - self.entries.keys():
            self._note(name, "input", "captured", "", None)
        for name, entry in self.entries.items():
            status, note = entry.status, notes.get(name, entry.note)
            if name in absent:
                status, note = "captured", absent[name]
                if entry.kind == "getitem" and note == NO_LAYER:
                    step = next(step for step in self.record.steps if step.name == name)
                    status, note = "refused", indexing(step.args[1], recurrent=recurrent)
            elif name in notes and name not in left:
                status = "skipped" if note.startswith("dropped") else "folded"
            texts = sizes.get(name) if name in left else "", notes.get(name) if name in absent else "", note
            note = "; ".join(filter(None, dict.fromkeys(texts)))
            self.entries[name] = Entry(name, entry.kind, status, note, entry.shape)
        return None if any(entry.status == "refused" for entry in self.entries.values()) else graph

    def _note(self, name: str, kind: str, status: str, note: str, result: Any) -> None:
        shape = " × ".join(["N", *map(str, result.shape[1:])]) if isinstance(result, Tensor) and result.ndim else ""
        self.entries[name] = Entry(name, kind, status, note, shape)

    def _input(self, step: Step) -> Value:
        sizes = tuple(step.result.shape[1:])
        self.nodes[step.name] = Input(name=step.name, kind="input", inputs=(), shape=(None, *sizes))
        return Value(self._numbered(step.name, sizes), node=step.name)

    def _numbered(self, name: str, sizes: tuple[int, ...]) -> Tensor:
        """New numbers for the values of a node."""
        self._starts.append((self._count, name))
        places = torch.arange(self._count, self._count + torch.Size(sizes).numel()).view(sizes)
        self._count += places.numel()
        return places

    def _value(self, part: Any) -> Any:
        """A value for a reference, all else as it is."""
        if not isinstance(part, Ref):
            return part
        values = self.values[part.step]
        return values[part.place] if isinstance(values, list) else values

    def _judged(self, step: Step) -> Any:
        """The value of a step, or a list of those of all that it gives, with an entry of what became of it."""
        kind, name, result = _kind(step), step.name, step.result
        args, kwargs = mapped((step.args, step.kwargs), self._value)
        taken: list[Value] = [self._value(ref) for ref in step.sources]
        handler, problem = self._handler(step, taken)
        if problem is None and all(value.places is not None for value in taken):
            try:
                values = handler(Call(kind, step.module, args, kwargs, result=result, rows=self._rows,
                                      emit=lambda *given, **fields: self._emit(step, *given, **fields),
                                      move=lambda: self._moved(step, taken), before=self._before))
            except Unsupported as reason:
                problem = str(reason)
            else:
                made = isinstance(values, Padded) or any(
                    each == name or each.startswith(f"{name}.") for each in self.nodes)
                done = made or (isinstance(values, Value) and _moves(values, taken[0], name)) or (
                    isinstance(values, list) and name in values[0].path)
                note = ("" if done else "without effect in evaluation" if step.module else
                        "it moves the batch only" if isinstance(values, Value) and name in values.path else
                        "without effect")
                self._note(name, kind, "converted" if done else "skipped", note,
                           result[0] if isinstance(result, tuple | list) else result)
                return values
        self._note(name, kind, "not judged" if problem is None else "refused", problem or REFUSED_BEFORE, None)
        return Value()

    def _handler(self, step: Step, taken: list[Value]) -> tuple[Any, str | None]:
        """The handler of a step, and why there is none. A tensor of the model beside ``taken`` is noted there."""
        module = step.module
        if module is None:
            for tensor in dict.fromkeys(map(id, parts((step.args, step.kwargs)))):
                if (name := self._tensors.get(tensor)) and step.kind not in CONSTANTS:
                    self._note(name.replace(".", "_"), "tensor", "refused",
                               f"{name} is used by itself; only layers may hold tensors", None)
                    taken.append(Value())
            handler = FUNCTIONS.get(step.kind)
            return handler, None if handler else "the function is not supported"
        if type(module) in CELLS and (
                len(step.sources) < 2 or sum(each.called is module for each in self.record.steps) > 1):
            return None, LOOPED
        return handler_of(module), problem_of(module)

    def _emit(self, step: Step, make: type[Node], sources: tuple[Value, ...], batch: int, part: str = "",
              shape: tuple[int | None, ...] = (), **fields: Any) -> Value:
        """The value of a new node, of the shape that the step gave, or of another one.

        Parameters:
            part: of what a step becomes, where that are several nodes; the last one has none.
        """
        name = free_name(f"{step.name}.{part}", self.nodes) if part else step.name
        result = step.result[0] if isinstance(step.result, tuple) else step.result
        if not isinstance(result, Tensor) and not shape:
            raise Unsupported(self.record.failure)
        shape = shape or tuple(None if axis == batch else size for axis, size in enumerate(result.shape))
        inputs, places = tuple(self._node(value) for value in sources), None
        moved = self.nodes[inputs[0]]
        if make is Function and isinstance(moved, Move) and len(moved.inputs) == 1:
            source = self.nodes[moved.inputs[0]]  # What works on each value by itself may as well stand before moves.
            if torch.equal(moved.places.flatten().sort().values, torch.arange(torch.Size(source.sizes).numel())):
                inputs, shape, places = moved.inputs, source.shape, moved.places
        self.nodes[name] = node = make(name=name, kind=_kind(step), inputs=inputs, shape=shape, **fields)
        numbers = self._numbered(name, node.sizes)
        if places is not None:
            return Value(numbers.flatten()[places], batch, sources[0].path)
        return Value(numbers, batch, node=name)

    def _node(self, value: Value) -> str:
        """The name of the node that gives a value, a new one where the values of others are moved."""
        if value.refused:
            raise Unsupported(value.refused)
        if value.node:
            return value.node
        assert value.places is not None
        flat, starts = value.places.flatten().contiguous(), torch.tensor([start for start, _ in self._starts])
        if bool((flat >= HIDDEN).any()):
            raise Unsupported(f"cells c_n and states of lower layers are no outputs of a layer; {LAST_STEP}")
        of = torch.bucketize(flat, starts, right=True) - 1
        order = list(dict.fromkeys(torch.unique_consecutive(of).tolist()))
        nodes = [self.nodes[self._starts[number][1]] for number in order]
        before, count = torch.zeros(len(starts), dtype=torch.int64), 0
        for number, node in zip(order, nodes, strict=True):
            before[number] = count - starts[number]
            count += torch.Size(node.sizes).numel()
        places = (flat + before[of]).view(value.places.shape)
        if len(nodes) == 1 and (nodes[0].sizes, nodes[0].batch) == (value.sizes, value.batch) and torch.equal(
                places.flatten(), torch.arange(count)):
            return nodes[0].name
        shape: list[int | None] = list(value.sizes)
        shape.insert(value.batch, None)
        name = value.path[-1] if value.path else f"{nodes[0].name}.h_n"
        inputs = tuple(node.name for node in nodes)
        while isinstance(known := self.nodes.get(name), Move) and not (
                known.inputs == inputs and torch.equal(known.places, places)):
            name = f"{name}.next"  # another part of what one call gave, or the same of other values
        self.nodes.setdefault(name, Move(name=name, kind="move", inputs=inputs, shape=tuple(shape), places=places,
                                         path=value.path))
        return name

    def _before(self, value: Value) -> list[tuple[str, type[Node]]]:
        """The nodes that a value depends on, the last one first; none before vectors."""
        names, found = [self._node(value)], dict[str, type[Node]]()
        while names:
            node = self.nodes[names.pop()]
            if len(node.sizes) > 1 and node.name not in found:
                found[node.name] = type(node)
                names += node.inputs
        return list(found.items())

    def _moved(self, step: Step, taken: list[Value]) -> Any:
        """The result of a function of the numbers of values, in place of the values themselves."""
        rows = self._rows
        path = dict.fromkeys(name for value in taken for name in value.path)

        def numbers(part: Any) -> Any:
            value = self._value(part)
            if isinstance(value, Tensor) and value.is_floating_point() and step.kind in JOINING:
                value = self._constants(step, value.detach(), taken[0].batch)
            if not isinstance(value, Value):
                return value
            assert value.places is not None
            return torch.stack([value.places + row * ROW for row in range(rows)], value.batch)

        def moved(part: Tensor) -> Value | None:
            for axis in range(part.ndim):
                first, *others = part.unbind(axis)
                if len(others) == rows - 1 and bool((first < ROW).all()) and all(
                        torch.equal(other, first + row * ROW) for row, other in enumerate(others, 1)):
                    return Value(first, axis, (*path, step.name), next((each.refused for each in taken), ""))
            return None

        args, kwargs = mapped((step.args, step.kwargs), numbers)
        try:
            found = step.called(*args, **kwargs)
        except (RuntimeError, IndexError, TypeError, ValueError):
            found = None
        if found is None or (step.result is None and isinstance(found, Tensor) and moved(found) is not None):
            raise Unsupported(self.record.failure)  # numbers lie in another way, and may have a view that values lack
        if isinstance(found, Tensor):
            return moved(found)
        values = [moved(part) for part in found]
        return None if None in values else values

    def _constants(self, step: Step, constant: Tensor, batch: int) -> Value:
        """The values of a constant among those that a step joins."""
        first, *others = constant.unbind(batch) if constant.ndim > batch else ()
        if len(others) != self._rows - 1 or not all(torch.equal(first, other) for other in others):
            raise Unsupported("a constant must be the same for all samples of a batch")
        name = free_name(f"{step.name}.constant", self.nodes)
        self.nodes[name] = Constant(name=name, kind="constant", inputs=(), shape=(None, first.numel()),
                                    values=first.reshape(-1))
        return Value(self._numbered(name, tuple(first.shape)), batch, node=name)

    def _outputs(self) -> tuple[Output, ...] | None:
        """The outputs, None where one is refused or follows what is."""
        found: list[Output | None] = []
        given = parts(self.record.output)
        for number, each in enumerate(given):
            value, problem, made = self._value(each), "", None
            if not isinstance(each, Ref):
                problem = "it must depend on the input" if isinstance(each, Tensor) else (
                    f"it must be a tensor, or a collection of tensors, not {type(each).__name__}; {LAST_STEP}")
            elif value.places is not None and set(value.sizes[:value.batch]) - {1}:
                problem = "the batch must be its first axis; transpose it"
            elif value.places is not None:
                try:
                    made = Output(self._node(value), value.batch)
                except Unsupported as reason:
                    problem = str(reason)
            if problem:
                self._note(f"output_{number}" if len(given) > 1 else "output", "", "refused", problem, None)
            found.append(made)
        if not given:
            self._note("output", "", "refused", "there must be a tensor that depends on the input", None)
        kept = tuple(each for each in found if each)
        return kept if found and len(kept) == len(found) else None


def _moves(value: Value, source: Value, name: str) -> bool:
    """Whether a call does more to a single sample than nothing."""
    return name in value.path and (value.places is None or source.places is None or not torch.equal(
        value.places, source.places))


def _kind(step: Step) -> str:
    return kind_of(step.module) if step.module is not None else step.kind


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
    return {module: "; ".join(dict.fromkeys(found)) for module, found in texts.items()}


def kind_of(module: nn.Module) -> str:
    """The class that a user gave a module, whatever parametrizes it."""
    return parametrize.type_before_parametrizations(module).__name__
