"""Networks in integers: the golden model that the hardware equals bit for bit."""
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from circulant.sim import artifact
from circulant.sim.arith.fixed import Format, Integers, Reals
from circulant.sim.arith.trace import Recorder, Tensor
from circulant.sim.golden import network_file
from circulant.sim.golden.bidirectional import Bidirectional
from circulant.sim.golden.layers import Layer, Recurrent
from circulant.sim.golden.reduce.argmax import Argmax
from circulant.sim.golden.residual import Residual
from circulant.sim.public import public
from circulant.sim.refusal import Refusal
from circulant.sim.shape.chain import chained, check_chain, check_data, entry, flows
from circulant.sim.shape.sequences import Lengths, check_lengths, descending, valid
from circulant.sim.shape.window import Flow
from circulant.sim.vectors import Vectors

__all__ = ["Layer", "Network", "Result"]

BATCH = 1024
"""Sequences computed side by side: so many that numpy's calls cost little."""

IMAGES = 2 ** 14
"""Pixels computed side by side."""

VALUES = 2 ** 21
"""Values of the widest vectors of all steps of these sequences at the most: memory, and caches, are bounded."""


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """Golden outputs: the integers, and the real values that they stand for.

    Parameters:
        trace: every tensor on the way by its name, where it was asked for.
    """

    integers: Integers
    real: Reals
    trace: dict[str, Tensor] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Result {self.integers.shape}{f', trace of {len(self.trace)} tensors' if self.trace else ''}>"


def _check_formats(layers: Sequence[Layer]) -> None:
    for before, after in itertools.pairwise(layers):
        if before.output_format != after.input_format:
            raise Refusal(f"Layer {after.name!r} must take the {before.output_format} of layer {before.name!r}, "
                          f"not {after.input_format}; quantize the network again")
    for layer in layers:
        for chain in layer.branches.values() if isinstance(layer, Residual) else ():
            _check_formats(chain)
            if chain and chain[0].input_format != layer.input_format:
                raise Refusal(f"Layer {chain[0].name!r} must take the {layer.input_format} of layer {layer.name!r}, "
                              f"not {chain[0].input_format}; quantize the network again")


@dataclass(frozen=True, eq=False, repr=False)
class Network:
    """A chain of quantized layers over vectors (N, inputs) or, with ``sequence``, over sequences (N, T, inputs).

    Parameters:
        shape: of a sample as it comes, see `circulant.sim.real.float_model.Model`; real inputs may have it, too.
        ragged: whether its sequences have different lengths, so that arrays of them must come with these.

    Raises:
        Refusal: as `check_chain`, and when a layer does not take the format that the one before gives.
    """

    name: str
    inputs: int
    sequence: bool
    layers: tuple[Layer, ...]
    shape: tuple[int, ...] = ()
    ragged: bool = False

    def __post_init__(self) -> None:
        check_chain(self.name, self.flow, self.layers)
        _check_formats(self.layers)

    def __repr__(self) -> str:
        layers, per = " → ".join(layer.kind for layer in self.layers), "step" if self.per_step else "sequence"
        often = f" per {per}" if self.sequence else ""
        return f"<Network {self.name!r} {layers}, {self.inputs} → {self.outputs}{often}, {self.hash[:12]}>"

    @property
    def flow(self) -> Flow:
        """The flow that the first layer takes."""
        return entry(self.name, self.inputs, self.sequence, self.shape, self.layers)

    @property
    def end(self) -> Flow:
        """The flow that the last layer gives."""
        return check_chain(self.name, self.flow, self.layers)

    @property
    def input_format(self) -> Format:
        return self.layers[0].input_format

    @property
    def output_format(self) -> Format:
        return self.layers[-1].output_format

    @property
    def outputs(self) -> int:
        """Values of one output vector."""
        return self.layers[-1].outputs

    @property
    def per_step(self) -> bool:
        """Whether there is an output vector for each step, not one for each sequence."""
        recurrent = [layer for layer in self.layers if isinstance(layer, Recurrent)]
        return self.sequence and all(layer.returns == "sequence" for layer in recurrent)

    @property
    def output_vectors(self) -> int:
        """Output vectors of a sample where their number is known: those of an image whose rows become steps, if each
        step gives one; otherwise 1."""
        if self.flow.grid is None or not self.end.sequence:
            return 1
        passing = flows(self.flow, self.layers)
        return next(come.grid[0] for come, go in itertools.pairwise(passing) if come.grid is not None and go.sequence)

    @property
    def hash(self) -> str:
        """SHA-256 of sizes, formats and weights."""
        return artifact.digest(self.body)

    @cached_property
    def body(self) -> dict[str, Any]:
        """Sizes, formats and the hash of the integers, as `sim.golden.network_file` writes them."""
        return network_file.body(self)

    @public
    def run(self, x: ArrayLike, *, lengths: ArrayLike | None = None, trace: bool = False) -> Result:
        """Golden outputs for real inputs (N, T, inputs) or (N, inputs), which are first brought to the input format.

        Parameters:
            lengths: as `run_integers`.
            trace: keep every tensor on the way; the whole batch is then computed at once.
        """
        integers = self.integers(x)
        if not trace:
            integers = self.run_integers(integers, lengths)
            return Result(integers, self.output_format.real(integers))
        known = self.lengths(integers, lengths)
        record = Recorder(lengths=known is not None)
        if known is None:
            integers = chained(self.layers, integers, record)
        else:
            order = descending(known)
            found = chained(self.layers, integers[order, :int(known.max())], record, known[order])
            integers = self._outputs(integers)
            integers[order, :found.shape[1]] = found
        return Result(integers, self.output_format.real(integers), record.tensors)

    def lengths(self, x: NDArray[Any], lengths: ArrayLike | None) -> Lengths | None:
        """The lengths (N,) of sequences x (N, T, inputs); None where all have T steps.

        Raises:
            Refusal: when a ragged network is given none; as `check_lengths`.
        """
        what = f"Inputs of network {self.name!r}"
        if lengths is not None and not self.sequence:
            raise Refusal(f"{what} must be sequences to have lengths, but it takes samples of one size; leave the "
                          "lengths out, and cut or fill all samples alike")
        if lengths is not None:
            return check_lengths(what, lengths, x.shape)
        if self.ragged:
            raise Refusal(f"{what} must come with lengths (N,), the steps of each sequence, because it was made of "
                          f"sequences of different lengths, but {x.shape} came without; give lengths, such as "
                          "lengths=data.test_lengths")
        return None

    def integers(self, x: ArrayLike) -> Integers:
        """Real inputs (N, T, inputs), (N, inputs) or (N, *shape) as integers (N, T, inputs), (N, inputs) or, of images,
        (N, height, width, channels).

        Raises:
            Refusal: as `check_data`.
        """
        return self.input_format.quantize(check_data(
            f"Inputs of network {self.name!r}", x, self.flow, self.shape))

    def run_integers(self, x: Integers, lengths: ArrayLike | None = None) -> Integers:
        """Golden outputs for inputs that are integers of the input format already, those of images (N, height, width,
        channels) or (N, height · width, channels).

        Parameters:
            lengths: (N,), the steps of each sequence; None where all have T. The outputs are those of each sequence by
                itself, and 0 beyond its end.

        Raises:
            Refusal: as `lengths`.
        """
        known = self.lengths(x, lengths)
        if known is not None:
            return self._ragged(x, known)
        grid = self.flow.grid
        if grid is not None:
            x, batch = x.reshape(len(x), *grid, self.inputs), max(1, IMAGES // math.prod(grid))
        else:
            batch = self._batch(math.prod(x.shape[1:-1]))
        outputs = [chained(self.layers, x[start:start + batch], None) for start in range(0, max(1, len(x)), batch)]
        return outputs[0] if len(outputs) == 1 else np.concatenate(outputs)

    def traced(self, x: Integers) -> dict[str, Tensor]:
        """Every tensor on the way for inputs as `run_integers` takes them, all of them computed at once, and as many
        steps of each sequence."""
        record = Recorder()
        chained(self.layers, x, record)
        return record.tensors

    def _ragged(self, x: Integers, lengths: Lengths) -> Integers:
        """Golden outputs for sequences of these lengths: those of like length side by side."""
        outputs, order, start = self._outputs(x), descending(lengths), 0
        while start < len(order):
            longest = int(lengths[order[start]])
            some = order[start:start + self._batch(longest)]
            found = chained(self.layers, x[some, :longest], None, lengths[some])
            outputs[some, :found.shape[1]] = found
            start += len(some)
        return outputs

    def _outputs(self, x: Integers) -> Integers:
        """Zeros in the place of the outputs for sequences x."""
        return np.zeros((*x.shape[:2 if self.per_step else 1], self.outputs), np.int64)

    def _batch(self, steps: int) -> int:
        """Sequences of so many steps that are computed side by side."""
        widest = max(max(layer.inputs, layer.outputs) for layer in self.layers)
        return min(BATCH, max(64, VALUES // (steps * widest or 1)))

    def with_argmax(self) -> "Network":
        """This network and behind it the choice of the largest output, as hardware and C may have it.

        Raises:
            Refusal: when there are not two outputs to choose from, or the choice is there already.
        """
        names = [layer.name for layer in self.layers]
        if isinstance(self.layers[-1], Argmax):
            raise Refusal(f"Network {self.name!r} must give values to choose from, but it ends with the choice "
                          f"{names[-1]!r} already; leave argmax out")
        name = next(name for name in itertools.chain(["argmax"], map("argmax_{}".format, itertools.count(1)))
                    if name not in names)
        choice = Argmax(name, self.outputs, self.output_format)
        return Network(self.name, self.inputs, sequence=self.sequence, layers=(*self.layers, choice), shape=self.shape,
                       ragged=self.ragged)

    def chosen(self, vectors: Vectors) -> Vectors:
        """The test vectors of the network without the choice at its end as those of this one."""
        return replace(vectors, outputs=self.layers[-1](vectors.outputs), network=self.hash)

    def initial(self, count: int) -> list[Any]:
        """The states of all layers that ``count`` sequences start from; None for a layer that keeps nothing."""
        return [layer.initial(count) if isinstance(layer, Recurrent) else None for layer in self.layers]

    def resume(self, x: Integers, states: Sequence[Any]) -> tuple[Integers, list[Any]]:
        """Golden outputs for integers of the input format that go on from the states, and the states behind them.

        Pieces of sequences, one after the other, give what the whole ones give.

        Raises:
            Refusal: when a layer needs whole sequences, or a state is not that of as many sequences.
        """
        following = []
        for layer, state in zip(self.layers, states, strict=True):
            if isinstance(layer, Bidirectional):
                raise Refusal(f"A sequence can be continued piece by piece if all layers run forward, but layer "
                              f"{layer.name!r} is bidirectional; run whole sequences")
            if isinstance(layer, Recurrent):
                x, state = layer.run(x, state)
            else:
                x = layer(x)
            following.append(state)
        return x, following

    @public
    def vectors(self, x: ArrayLike, *, lengths: ArrayLike | None = None) -> Vectors:
        """Test vectors for the hardware: the integer inputs of real ``x``, and the outputs expected.

        An image is the sequence of its pixels, row by row.

        Parameters:
            lengths: as `run_integers`; inputs beyond them become 0.
        """
        inputs = self.integers(x)
        known = self.lengths(inputs, lengths)
        if known is not None:
            inputs[~valid(known, inputs.shape[1])] = 0
        if self.flow.grid is not None:
            inputs = inputs.reshape(len(inputs), -1, self.inputs)
        return Vectors(inputs, self.run_integers(inputs, known), self.hash, known)

    @public
    def save(self, folder: str | Path) -> None:
        """Write ``network.json`` and ``weights.npz``."""
        network_file.write(self, folder)

    @classmethod
    @public
    def load(cls, folder: str | Path) -> "Network":
        """Read what `save` wrote.

        Raises:
            Refusal: when a file is missing, damaged, of another version, breaks `sim.golden.rules.NETWORK`, or the
                two do not belong together.
        """
        return network_file.read(folder, cls)
