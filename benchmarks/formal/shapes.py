"""Shapes of the stream units that shipped designs use, collected while each is generated; and their proofs."""
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, TypedDict, cast
from unittest import mock

from amaranth.hdl import Value
from amaranth.lib import wiring

from benchmarks.designs import DESIGNS, network
from benchmarks.formal.check import Proof, prove
from benchmarks.resume import Record
from circulant.hw import generate
from circulant.hw.stream.pipeline import Queue, registers
from circulant.hw.stream.storage import DeepQueue
from circulant.sim.document import Document

__all__ = ["FILE", "Shapes", "collect", "component", "load", "measure", "proofs", "recorded"]

FILE = Path(__file__).parents[2] / "docs" / "measured" / "stream-shapes.json"
"""Shapes of all designs of `benchmarks.designs`, as `collect` finds them."""

Shapes = dict[str, list[list[int | None]]]
"""By unit the parameters of each of its shapes, in their order."""

UNITS: dict[str, tuple[str, Callable[..., list[int | None]]]] = {
    "Queue": ("stream.pipeline", lambda shape, *, depth, prompt=False: [max(depth, 3), *[1] * prompt]),
    "DeepQueue": ("stream.storage", lambda shape, *, depth, prompt=False: [depth, *[1] * prompt]),
    "Registers": ("stream.pipeline", lambda m, *, valid, ready, count, levels=4, gated=False, more=0: [
        registers(count, levels, more)]),
    "WidthConverter": ("stream.width_converter", lambda *, size, width, k_in, k_out: [size, k_in, k_out]),
    "FrameGuard": ("stream.frame_guard",
                   lambda shape, *, size, vectors: [size, vectors, shape.members["data"].length])}
"""Module of each unit, and its parameters as far as they matter: payloads are moved and not looked at. A 1
behind a queue's depth says that it is prompt."""

FUNCTIONS: dict[str, Callable[..., list[int | None]]] = {
    "requantize": lambda x, shift, width: [len(Value.cast(x)), shift, width],
    "saturate": lambda x, width: [len(Value.cast(x)), 0, width]}


@contextmanager
def collect() -> Iterator[Shapes]:
    """The shapes of all that is made within this context."""
    found: dict[str, set[tuple[int | None, ...]]] = {}
    with ExitStack() as stack:
        for name, (module, shape) in UNITS.items():
            kind = getattr(import_module(f"circulant.hw.{module}"), name)
            noted = _noted(kind.__init__, found.setdefault(name, set()), _of_object(shape))
            stack.enter_context(mock.patch.object(kind, "__init__", noted))
        fixed = import_module("circulant.hw.arith.fixed")
        clipped = found.setdefault("clipped", set())
        for name, shape in FUNCTIONS.items():
            old = getattr(fixed, name)
            new = _noted(old, clipped, shape)
            for module in ("fixed", "bounded", "activation"):
                _replace(stack, f"circulant.hw.arith.{module}", name, old=old, new=new)
            for module in ("array.output_pipeline", "kinds.gru", "kinds.lstm", "components.pointwise", "kinds.scale",
                           "kinds.pool.pool", "kinds.residual", "kinds.conv.tile", "kinds.conv.tile_conv",
                           "kinds.pool.window_pool"):
                _replace(stack, f"circulant.hw.{module}", name, old=old, new=new)
        _replace(stack, "circulant.hw.arith.bounded", "round_shift", old=fixed.round_shift, new=_noted(
            fixed.round_shift, clipped, lambda x, s: [len(x), max(s, 0), len(fixed.round_shift(x, max(s, 0)))]))
        shapes: Shapes = {}
        yield shapes
    for name, every in found.items():
        if name == "clipped":  # What has no digits too many is not clipped.
            every = {each for each in every if _int(each[0]) > _int(each[2]) or _int(each[1])}
        every -= {(0,)}  # No register is a wire.
        shapes[name] = _sorted(every)


def _sorted(every: set[tuple[int | None, ...]]) -> list[list[int | None]]:
    return [list(each) for each in sorted(every, key=lambda each: [_int(n) for n in each])]


def _int(number: int | None) -> int:
    return -1 if number is None else number


def _noted(old: Callable[..., Any], found: set[tuple[int | None, ...]],
           shape: Callable[..., list[int | None]]) -> Callable[..., Any]:
    def new(*given: Any, **named: Any) -> Any:
        found.add(tuple(shape(*given, **named)))
        return old(*given, **named)
    return new


def _of_object(shape: Callable[..., list[int | None]]) -> Callable[..., list[int | None]]:
    """The same of a constructor's arguments, the first of which is the object."""
    return lambda made, *given, **named: shape(*given, **named)


def _replace(stack: ExitStack, module: str, name: str, *, old: Any, new: Any) -> None:
    """Replace a function where a module has it under its name."""
    if getattr(import_module(module), name, None) is old:
        stack.enter_context(mock.patch(f"{module}.{name}", new))


class Recorded(TypedDict):
    """The names of the designs, and the shapes of their units."""

    designs: list[str]
    shapes: Shapes


def load() -> Recorded:
    """The record."""
    return cast(Recorded, json.loads(FILE.read_text()))


def recorded() -> Shapes:
    """The shapes of the record."""
    return {unit: [shape for shape in every if shape != [0]] for unit, every in load()["shapes"].items()}


def component(unit: str, shape: list[int | None]) -> wiring.Component:
    """A unit with its properties beside it, those of the tests."""
    properties = import_module("tests.hw.stream_properties")
    made: wiring.Component
    match unit:
        case "Queue":
            made = properties.Words(Queue(1, depth=_int(shape[0]), prompt=len(shape) > 1), holds=shape[0], room=True,
                                    ring=_int(shape[0]) - 1, prompt=len(shape) > 1)
        case "DeepQueue":
            made = properties.Words(DeepQueue(1, depth=_int(shape[0]), prompt=len(shape) > 1), holds=_int(shape[0]) + 1,
                                    room=True, ring=shape[0], prompt=len(shape) > 1)
        case "Registers":
            made = properties.Words(properties.Pipeline(shape[0]), holds=shape[0])
        case "WidthConverter":
            made = properties.elements(*shape)
        case "FrameGuard":
            made = properties.frames(shape[0], shape[1], lanes=shape[2])
        case _:
            made = properties.Clipped(*shape)
    return made


def proofs(shapes: Shapes, *, seconds: float = 60.0, record: Record[Proof] | None = None,
           note: Callable[[str], None] = lambda text: None) -> dict[str, str | int]:
    """By unit and shape "induction", or the cycles from the start that were looked at.

    Raises:
        AssertionError: when a property breaks.
    """
    found: dict[str, str | int] = {}
    for unit, every in shapes.items():
        for shape in every:
            name = f"{unit} {', '.join('any' if n is None else str(n) for n in shape)}"
            proof = prove(component(unit, shape), seconds=seconds, record=record)
            assert proof.broken is None, f"{name}: {proof.broken} breaks in cycle {proof.depth}"
            found[name] = proof.depth
            note(f"{name}: {proof.depth}")
    return found


def measure(names: tuple[str, ...] = tuple(DESIGNS), *,
            note: Callable[[str], None] = lambda text: None) -> Document:
    """The shapes of the stream units in some designs, and of numbers that are clipped: what `FILE` holds of all."""
    found: dict[str, set[tuple[int | None, ...]]] = {}
    for name in names:
        note(name)
        made = network(name)
        with collect() as shapes:
            generate(made, **DESIGNS[name].options, objective="throughput")
        for unit, every in shapes.items():
            found.setdefault(unit, set()).update(map(tuple, every))
    ordered = {unit: _sorted(every) for unit, every in found.items()}
    return {"benchmark": "shapes", "table": {unit: str(every) for unit, every in ordered.items()},
            "designs": list(names), "shapes": ordered}
