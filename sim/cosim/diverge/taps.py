"""Taps: which golden tensor each signal of the Verilog carries, block by block.

Tensors and signals have the same layers' names; a signal is looked for in the module of a layer's unit, and a unit that
a layer lacks has no tap. Blocks are compared wherever in time they appear: the order in which a unit works is not known
here, so that a fault in it cannot hide.
"""
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from circulant.sim.arith.fixed import Format, Integers
from circulant.sim.arith.trace import Tensor

__all__ = ["UNITS", "Signal", "Tap", "signals", "taps_of"]

VECTOR = re.compile(r"\b(?:wire|reg|input|output)\s+\[(\d+):0\]\s+([\w\s,]+?)\s*(?:[;/)]|,\s*//)")

UNITS = ("input", "transform", "accumulator", "pre-activation", "gate", "state", "output")
"""Units of a layer in the order in which a step passes them."""

STREAMS = ("input", "output")
"""Units that are streams between layers."""

PLACES: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    ("input", "", r"i__payload(?:_\d+_0)?", ("input_product.input", "product.input")),
    ("transform", r"_engine_banks", r"fft_\w+?__o__payload",
     ("input_product.spectrum", "product.spectrum", "recurrent_product.spectrum", "projection.spectrum")),
    ("accumulator", r"(?:_engine)?_array_chain_\d+", r"inverse_\d+__i__payload",
     ("gates.product", "candidate.product", "candidate_input.product", "candidate_recurrent.product",
      "projection.product", "product.product")),
    ("pre-activation", r"(?:_engine)?_array_chain_\d+", r"o__data",
     ("gates.output", "candidate.output", "candidate_input.output", "candidate_recurrent.output", "projection.output",
      "product.output")),
    ("gate", r"_pointwise_cell_\d+_(?:sigmoid|tanh)_(\w)", r"y", ("r", "z", "n", "i", "f", "g", "o")),
    ("state", r"_pointwise", r"own__data", ("c",)),
    ("state", r"_(?:pointwise|renewal)", r"o__y", ("m", "h")),
    ("output", "", r"o__payload", ("y",)),
)
"""Unit, end of the module's name, signal, and the ends of the tensors' names that it carries. The gate of a cell is the
letter in its name."""


@dataclass(frozen=True)
class Signal:
    """A vector of the Verilog.

    Parameters:
        module, name: as they stand there.
    """

    module: str
    name: str
    width: int


@dataclass(frozen=True)
class Tap:
    """Signals that carry a tensor.

    Parameters:
        layer, unit: where; ``unit`` is one of `UNITS`.
        tensors: by name, those that these signals may carry.
        signals: each of which carries whole blocks; or, of a gate, an element of each of the cells side by side.
        block: values of a block.
    """

    layer: str
    unit: str
    tensors: Mapping[str, Tensor]
    signals: tuple[Signal, ...]
    block: int

    @property
    def parallel(self) -> bool:
        """Whether a block comes over several cycles, an element from each signal at a time."""
        return self.unit == "gate"

    def width_in(self, signal: Signal) -> int:
        """Bits of an element in a signal of whole blocks. A layer's streams may have the mark of the last block above
        their data, and several blocks side by side."""
        if self.unit not in STREAMS:
            return signal.width // self.block
        return max(tensor.format.width for tensor in self.tensors.values())

    def abreast(self, signal: Signal) -> int:
        """Blocks side by side in a signal."""
        return signal.width // self.width_in(signal) // self.block if self.unit in STREAMS else 1

    def expected(self) -> Iterator[tuple[int, str, int, Integers, Format]]:
        """Step, tensor, first element and values of each block, step by step."""
        steps = max(tensor.integers.shape[1] for tensor in self.tensors.values())
        for step in range(steps):
            for name, tensor in self.tensors.items():
                if step >= tensor.integers.shape[1] or (step == 0 and name == "recurrent_product.spectrum"):
                    continue  # The first state is zero, and is not transformed.
                values = tensor.integers[0, step]
                for row in [values.reshape(-1)] if _spectral(name) else values.reshape(-1, values.shape[-1]):
                    for start in range(0, len(row), self.block):
                        yield step, name, start, row[start:start + self.block], tensor.format


def signals(verilog: str) -> dict[str, dict[str, int]]:
    """The vectors of each module, with their widths."""
    found: dict[str, dict[str, int]] = {}
    for text in re.split(r"^(?=module )", verilog, flags=re.MULTILINE)[1:]:
        module = text.split(None, 2)[1]
        vectors = found[module] = {}
        for width, names in VECTOR.findall(text):
            for name in re.split(r"[\s,]+", names.strip(" ,\n")):
                vectors[name] = int(width) + 1
    return found


def taps_of(layers: Sequence[str], trace: Mapping[str, Tensor], verilog: str) -> list[Tap]:
    """The taps of layers, in their order and in that of `UNITS`.

    Parameters:
        layers: names of the layers that are made of no other ones.
        trace: of one sample, (1, T, …) for each tensor of a sequence.
    """
    modules, found = signals(verilog), []
    for layer in layers:
        inside = re.sub(r"\W+", "_", layer)
        short = {name.removeprefix(f"{layer}."): tensor for name, tensor in trace.items()
                 if name.startswith(f"{layer}.") and not name.endswith(".sums")}
        own = {name: _stepwise(name, tensor) for name, tensor in short.items()}
        block = next((tensor.integers.shape[-1] for name, tensor in own.items() if name.endswith("spectrum")), 1)
        for unit, ending, pattern, tensors in PLACES:
            groups: dict[str, list[Signal]] = {}
            for module, vectors in modules.items():
                match = re.fullmatch(rf"\w+?_(?:layer|top)_{inside}{ending}", module)
                for name, width in vectors.items() if match else ():
                    if re.fullmatch(pattern, name):
                        assert match is not None
                        groups.setdefault(match[1] if match.groups() else "", []).append(Signal(module, name, width))
            for gate, carried in groups.items():
                held = {name: own[name] for name in tensors if name in own and (not gate or name == gate)}
                if unit == "output" and "gates.output" in own:
                    held = {}  # Only of the last step, perhaps; a cell's state has a tap.
                elif unit == "output" and not held and "product.output" in own:
                    held = {"product.output": own["product.output"]}
                least = max((tensor.format.width for tensor in held.values()), default=0)
                if held:
                    carried = [each for each in carried if _holds(unit, each.width, least, 1 if gate else block)]
                if held and carried:
                    found.append(Tap(layer, unit, held, tuple(carried), block))
    return sorted(found, key=lambda tap: (list(layers).index(tap.layer), UNITS.index(tap.unit)))


def _holds(unit: str, width: int, element: int, block: int) -> bool:
    """Whether a signal carries whole blocks of elements that are so wide, in a stream with or without their mark."""
    return width % (element * block) in (0, 1) if unit in STREAMS else width >= element * block


def _stepwise(name: str, tensor: Tensor) -> Tensor:
    """With one axis of steps: of vectors one step, of images a step for each pixel."""
    values, inner = tensor.integers, 2 if _spectral(name) or name.startswith("gates.") or name == "sigmoid.input" else 1
    return Tensor(values.reshape(len(values), -1, *values.shape[values.ndim - inner:]), tensor.format)


def _spectral(name: str) -> bool:
    return name.endswith((".spectrum", ".product"))
