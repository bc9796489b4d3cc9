"""Recurrent layers: what all kinds of them share, of torch, of ONNX and of the layers that they become."""
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.utils.rnn import PackedSequence

from circulant.sim.kinds.cell import FloatCell
from circulant.sim.real.float_model import Bidirectional, Stage
from circulant.sim.shape.window import Flow
from circulant.training.blocks.matrices import Matrix, block_sizes, constraint_of
from circulant.training.kinds.step import CellStep
from circulant.training.models import cells
from circulant.training.models.quantizer import grids_of, set_grids
from circulant.training.neutral import Builder, Call, Node, Stream, Unsupported, Value, lowered, of_torch
from circulant.training.neutral.call import HIDDEN
from circulant.training.neutral.streams import Form, as_numpy
from circulant.training.onnx import OnnxCall, OnnxGraph, OnnxNode, Values, grids, of_onnx, weights

__all__ = ["CELLS", "Fields", "Recurrent", "RecurrentKind", "ends", "first_columns", "level", "register"]

Fields = dict[str, Any]
"""Fields of a layer in float64."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Recurrent(Node):
    """A recurrent layer, all its layers and directions.

    Parameters:
        returns: "sequence" or "last"; with two directions the end of each.
    """

    module: nn.Module
    returns: str = "sequence"
    stepwise: ClassVar[bool] = True

    @property
    def ways(self) -> int:
        """Directions."""
        return 1 + bool(self.module.bidirectional)


@dataclass(frozen=True, eq=False)
class RecurrentKind:
    """A kind of recurrent layers: what differs between them.

    Parameters:
        modules: of torch and of our own.
        layer: the layer of one direction, from its name, the module, the suffix of its tensors and common fields.
        cell: the cell that does the same with each step of a sequence as the first of the modules.
        step: what gives its new state, or several.
        order: for each gate in torch's order its place in ONNX.
        functions: those of a node of ONNX, one behind the other.
        module_of: the class of module that a node of ONNX becomes.
        rectified: those classes that may have a ReLU for the last of the functions.
    """

    name: str
    modules: tuple[type[nn.Module], ...]
    layer: Callable[[str, Any, str, Fields], FloatCell]
    cell: type[nn.Module]
    step: Callable[[CellStep], Value | list[Value]]
    order: tuple[int, ...]
    functions: list[str]
    module_of: Callable[[OnnxNode], type[nn.Module]]
    rectified: tuple[type[nn.Module], ...] = ()


KINDS: list[RecurrentKind] = []

CELLS: dict[type[nn.Module], Callable[..., Any]] = {}
"""Cells, and the layers that do the same with each step of a sequence."""


def register(kind: RecurrentKind) -> None:
    """Add a kind, its modules of torch and its operator of ONNX."""
    KINDS.append(kind)
    CELLS[kind.cell] = kind.modules[0]
    of_torch(*kind.modules)(_captured)
    of_torch(kind.cell)(lambda call: kind.step(CellStep(call)))
    of_onnx(kind.name.upper(), module=partial(_module, kind), becomes=(
        "`LSTM`, `GRU`, `RNN`, `PeepholeLstm`, `ResetBeforeGru`, `LinearRnn`"), conditions=(
        "forward or bidirectional, sigmoid and tanh; for the tanh of an RNN, or of a GRU that resets before its "
        "matrix, also ReLU; or, of an RNN, \"Affine\" with alpha 1; zeros as initial states, no clip; `Y_c` is "
        "refused"))(_run)


def _kind_of(module: nn.Module) -> RecurrentKind:
    return next(kind for kind in KINDS if isinstance(module, kind.modules))


def _captured(call: Call) -> list[Value]:
    """The steps of all its layers and directions, h_n, and c_n of an LSTM.

    The states of the upper layer are values of its steps.
    """
    source, module = call.tensor, call.module
    if any(isinstance(each, Value) or bool(each.any()) for given in call.given[1:] if given is not None
           for each in (given if isinstance(given, tuple | list) else (given,))):
        raise Unsupported("an initial state is not supported; leave it out, it is zero then")
    if source.rank != 3:
        raise Unsupported("it must take a sequence (N, T, inputs), not a vector of each; give it all steps")
    packed = isinstance(call.result, tuple) and isinstance(call.result[0], PackedSequence)
    if source.batch != (0 if module.batch_first or packed else 1):
        wanted = "(N, T, inputs)" if module.batch_first else "(T, N, inputs)"
        raise Unsupported(f"it must take {wanted} with batch_first={module.batch_first}, but the batch comes on axis "
                          f"{source.batch}; build it with batch_first={not module.batch_first}, or transpose the axes "
                          "before it")
    shape = (None, source.sizes[0], call.result[0].data.shape[-1]) if packed else ()
    steps = call.emit(Recurrent, (source,), source.batch, shape=shape, module=module)
    assert steps.places is not None
    ways = 1 + bool(module.bidirectional)
    upper = steps.places.flatten()[ends(steps.sizes, ways)].view(ways, -1)
    lower = torch.full(((module.num_layers - 1) * ways, upper.shape[1]), HIDDEN)
    cells = torch.full((module.num_layers * ways, module.hidden_size), HIDDEN)
    return [steps, Value(torch.cat((lower, upper)), 1), Value(cells, 1)]


def ends(sizes: tuple[int, ...], ways: int) -> torch.Tensor:
    """The numbers of the values of the last step among all (steps, size); with two directions those of the end of
    each."""
    steps, size = sizes
    numbers = torch.arange(steps * size).view(steps, size)
    return numbers[-1] if ways == 1 else torch.cat((numbers[-1, :size // 2], numbers[0, size // 2:]))


@lowered.register
def _(node: Recurrent, to: Builder) -> Stream | None:
    module: Any = node.module
    sizes = set(block_sizes(module).values())
    if len(sizes) > 1:
        to.problem(node.name, f"its matrices have block sizes {', '.join(map(str, sorted(sizes)))}, but those of a "
                              "recurrent layer must share one")
        return None
    source = to.taken(node, sequence=True)
    kind = _kind_of(module)
    width = (getattr(module, "proj_size", 0) or module.hidden_size) * node.ways
    for number in range(module.num_layers):
        returns = node.returns if number == module.num_layers - 1 else "sequence"
        source = to.give(node.name, kind.name, source, partial(_level, module, number, returns), Form.of(
            Flow(width, sequence=returns == "sequence"), *source.form.shape[:1]),
            path=f"{node.name}.l{number}" if module.num_layers > 1 else node.name)
        directions = ((".forward", ""), (".backward", "_reverse")) if module.bidirectional else (("", ""),)
        for side, suffix in directions:
            found = (grids_of(module).get(f"weight_{part}_l{number}{suffix}") for part in ("ih", "hh"))
            products = dict(zip(("input_product", "recurrent_product"), found, strict=True))
            to.note_grid(f"{source.name}{side}", sizes, **products)
    return source


def _level(module: Any, number: int, returns: str, name: str, flow: Flow) -> Stage:
    return level(name, module, number, returns)


def level(name: str, module: Any, level: int, returns: str) -> Stage:
    """One layer of a recurrent module, in one direction or both."""
    suffix = f"_l{level}"
    if not module.bidirectional:
        return _direction(name, module, level, suffix, returns)
    return Bidirectional(name, _direction(f"{name}.forward", module, level, suffix, returns),
                         _direction(f"{name}.backward", module, level, f"{suffix}_reverse", returns))


def _direction(name: str, module: Any, level: int, suffix: str, returns: str) -> FloatCell:
    hidden, outputs, kind = module.hidden_size, getattr(module, "proj_size", 0) or module.hidden_size, _kind_of(module)
    inputs, gates = outputs * (1 + module.bidirectional) if level else module.input_size, len(kind.order)
    fields: Fields = {"inputs": inputs, "hidden": hidden, "returns": returns}
    for side, columns in (("ih", inputs), ("hh", outputs)):
        fields[f"weight_{side}"] = first_columns(Matrix(module, f"weight_{side}{suffix}", gates, hidden, columns))
        fields[f"bias_{side}"] = np.zeros((gates, hidden))
    for side in (("ih", "hh") if module.bias else ()):
        ours = isinstance(module, cells.Recurrent)  # with one bias
        if not ours or side == "ih":
            bias = getattr(module, f"bias{suffix}" if ours else f"bias_{side}{suffix}")
            fields[f"bias_{side}"] = as_numpy(bias).reshape(gates, hidden)
    return kind.layer(name, module, suffix, fields)


def first_columns(matrix: Matrix) -> NDArray[np.float64]:
    """First columns (groups, p, q, k) of a weight; k = 1 where it is dense."""
    if constraint_of(matrix):
        return as_numpy(matrix.first)
    return as_numpy(matrix.weight).reshape(matrix.groups, matrix.rows, matrix.columns, 1)


def _run(call: OnnxCall, module: nn.Module, values: Values) -> Any:
    """Y (T, directions, N, hidden), and the last states (directions, N, hidden); in layout 1 the batch comes first."""
    x, first = call.data(values), bool(call.option("layout", 0))
    out, states = module(x.transpose(0, 1) if first else x)
    ways = 1 + (call.option("direction", "") == "bidirectional")
    out = out.unflatten(-1, (ways, -1))  # (T, N, directions, hidden)
    kept = states if isinstance(states, tuple) else (states,)
    return (out.transpose(0, 1), *(state.transpose(0, 1) for state in kept)) if first else (
        out.transpose(1, 2), *kept)


def _module(kind: RecurrentKind, graph: OnnxGraph, node: OnnxNode) -> nn.Module:
    """The module of a node.

    Raises:
        Refusal: when its weights contradict its sizes or each other, or it has what torch has not.
    """
    options, hidden = node.attributes, node.attributes.get("hidden_size", 0)
    direction = options.get("direction", "forward")
    if direction not in ("forward", "bidirectional"):
        raise node.refused(f"its direction must be forward or bidirectional, not {direction}; reverse the data")
    ways, gates = 1 + (direction == "bidirectional"), len(kind.order)
    functions, due = list(options.get("activations", kind.functions * ways)), kind.functions * ways
    made: Any = kind.module_of(node)
    rectified = made in kind.rectified and functions == [*kind.functions[:-1], "Relu"] * ways
    legal = functions == due or rectified or made is cells.LinearRnn
    if not legal or options.get("clip") or options.get("input_forget"):
        more = "".join(f" with {name}={options[name]}" for name in ("clip", "input_forget") if options.get(name))
        raise node.refused(f"its activations must be {', '.join(kind.functions)} without a clip, not "
                           f"{', '.join(functions)}{more}; train it with those")
    names = [*node.inputs, *[""] * 8]
    w, r = (weights(graph, node, name) for name in names[1:3])
    inputs = graph.shapes[node.inputs[0]][-1]
    for name, array, due in (("W", w, (ways, gates * hidden, inputs)), ("R", r, (ways, gates * hidden, hidden))):
        if array.shape != due:
            raise node.refused(f"its sizes contradict each other: {name} must be {due} for {inputs} inputs and "
                               f"hidden_size {hidden}, not {array.shape}; export the float model, before it is "
                               "quantized, with another exporter")
    b = weights(graph, node, names[3]) if names[3] else np.zeros((ways, 2 * gates * hidden))
    if b.shape != (ways, 2 * gates * hidden):
        raise node.refused(f"its sizes contradict each other: B must be {(ways, 2 * gates * hidden)}, not {b.shape}; "
                           "export it with another exporter")
    _check_start(graph, node, names[4:7])
    peephole = weights(graph, node, names[7]) if made is cells.PeepholeLstm else None
    module = made(inputs, hidden, bidirectional=ways == 2, **{"nonlinearity": "relu"} if rectified else {})
    suffixes = ("_l0", "_l0_reverse")[:ways]
    set_grids(module, grids(graph, node, {1: {f"weight_ih{suffix}": w for suffix in suffixes},
                                          2: {f"weight_hh{suffix}": r for suffix in suffixes}}))
    with torch.no_grad():
        for way, suffix in enumerate(suffixes):
            _fill(module, suffix, *(_ordered(part, kind.order) for part in (w[way], r[way], *np.split(b[way], 2))))
            if peephole is not None:
                p = peephole[way].reshape(3, hidden)[[0, 2, 1]]  # i, o, f there are i, f, o here.
                getattr(module, f"peephole{suffix}").copy_(torch.from_numpy(p))
    return module


def _fill(module: Any, suffix: str, w: NDArray[Any], r: NDArray[Any], *biases: NDArray[Any]) -> None:
    """Set the weights of one direction."""
    of_x, of_h = biases
    getattr(module, f"weight_ih{suffix}").copy_(torch.from_numpy(w))
    getattr(module, f"weight_hh{suffix}").copy_(torch.from_numpy(r))
    if hasattr(module, f"bias{suffix}"):  # Our own cells have one bias.
        getattr(module, f"bias{suffix}").copy_(torch.from_numpy(of_x + of_h).view_as(getattr(module, f"bias{suffix}")))
    else:
        getattr(module, f"bias_ih{suffix}").copy_(torch.from_numpy(of_x))
        getattr(module, f"bias_hh{suffix}").copy_(torch.from_numpy(of_h))


def _ordered(rows: NDArray[Any], order: tuple[int, ...]) -> NDArray[Any]:
    """Rows of all gates in torch's order."""
    parts = np.split(rows, len(order))
    return np.concatenate([parts[place] for place in order])


def _check_start(graph: OnnxGraph, node: OnnxNode, names: list[str]) -> None:
    """Check lengths and initial states, in this order: none, and zeros."""
    lengths, *states = names
    if lengths and not _alike(graph, lengths, graph.shapes[node.inputs[0]][node.attributes.get("layout", 0)]):
        raise node.refused("its sequences must all have the length of the input; leave sequence_lens out")
    for name in filter(None, states):
        if not _alike(graph, name, 0):
            raise node.refused("its initial states must be zeros; export it without states")


def _alike(graph: OnnxGraph, name: str, value: int) -> bool:
    return name in graph.constants and bool((graph.constants[name] == value).all())
