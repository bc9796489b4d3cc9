"""Networks in integers: the golden model that the hardware equals bit for bit."""
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from circulant.sim import artifact
from circulant.sim.arith.fixed import Format, Integers, Reals
from circulant.sim.arith.multiplier import EXACT
from circulant.sim.arith.trace import Recorder, Tensor
from circulant.sim.document import Document
from circulant.sim.golden import expected, network_file
from circulant.sim.golden import faults as wrong
from circulant.sim.golden.faults import Fault, FaultMemory
from circulant.sim.golden.stages import Stages, stages
from circulant.sim.kinds.argmax import Argmax
from circulant.sim.public import public
from circulant.sim.refusal import Refusal
from circulant.sim.shape.flows import check_all, check_data
from circulant.sim.shape.graph import Graph, Node, computed, free_name
from circulant.sim.shape.sequences import Lengths, check_lengths, descending
from circulant.sim.vectors import Vectors

__all__ = ["Network", "Result"]

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


@dataclass(frozen=True, eq=False, repr=False)
class Network(Graph):
    """A graph of quantized layers.

    Parameters:
        ragged: whether its sequences have different lengths, so that arrays of them must come with these.

    Members:
        former_hash: the hash of the file that it was read from, where that is of an older version.

    Raises:
        Refusal: as `Graph`, and when a layer does not take the format that a source gives.
    """

    ragged: bool = False
    former_hash: str = field(default="", init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        formats = self.formats
        for node in self.nodes:
            for source, due in zip(node.sources, node.layer.taken, strict=True):
                if formats[source] != due:
                    raise Refusal(f"Layer {node.name!r} must take the {formats[source]} of layer {source!r}, not {due};"
                                  " quantize the network again")
        if len(found := {each.multiplier for layer in self.layers for each in layer.products.values()}) > 1:
            raise Refusal("The products of a network must be those of one multiplier, not of "
                          f"{' and '.join(sorted(found))}; quantize it again")

    def __repr__(self) -> str:
        what = " → ".join(layer.kind for layer in self.layers)
        if len(self.inputs) > 1 or len(self.outputs) > 1:
            return f"<Network {self.name!r} {what}, {self.hash[:12]}>"
        often = f" per {'step' if self.per_step else 'sequence'}" if self.sequence else ""
        return f"<Network {self.name!r} {what}, {self.flow.size} → {self.end.size}{often}, {self.hash[:12]}>"

    @cached_property
    def formats(self) -> dict[str, Format]:
        """The formats of what each input and node gives, by name."""
        given = {source: due for node in reversed(self.nodes)
                 for source, due in zip(node.sources, node.layer.taken, strict=True)}
        return {**{each.name: given[each.name] for each in self.inputs},
                **{node.name: node.layer.output_format for node in self.nodes}}

    @cached_property
    def arrangement(self) -> Stages:
        """The network as stages, and what each takes; see `circulant.sim.golden.stages`."""
        return stages(self)

    @property
    def stages(self) -> tuple[Any, ...]:
        """The stages of `arrangement`, in topological order."""
        return self.arrangement.each

    @property
    def multiplier(self) -> str:
        """The multiplier of the products of spectra, see `circulant.sim.arith.multiplier`."""
        return next((each.multiplier for layer in self.layers for each in layer.products.values()), EXACT)

    @property
    def input_format(self) -> Format:
        return self.formats[self.entry.name]

    @property
    def output_format(self) -> Format:
        return self.formats[self.exit]

    @property
    def per_step(self) -> bool:
        """Whether there is an output vector for each step, not one for each sequence."""
        return self.gives_steps(self.exit)

    def gives_steps(self, output: str) -> bool:
        """Whether an output has a vector for each step, not one for each sequence."""
        return self.sequence and self.flows[output].sequence

    @property
    def output_vectors(self) -> int:
        """`vectors_of` the only output."""
        return self.vectors_of(self.exit)

    def vectors_of(self, output: str) -> int:
        """Vectors of a sample that an output gives where their number is known: those of an image whose rows become
        steps, if each step gives one; otherwise 1."""
        sources = {node.name: node.sources[0] for node in self.nodes}

        def rows(layer: Any, given: Sequence[int]) -> int:
            come = self.flows[sources[layer.name]]
            return 1 if not self.flows[layer.name].sequence else given[0] if come.grid is None else come.grid[0]

        return self.walk({each.name: 1 for each in self.inputs}, rows, every=True)[output]

    @property
    def hash(self) -> str:
        """SHA-256 of nodes, sizes, formats and weights."""
        return self.former_hash or artifact.digest(self.body)

    @cached_property
    def body(self) -> Document:
        """Sizes, formats and the hash of the integers, as `sim.golden.network_file` writes them."""
        return network_file.body(self)

    @public
    def run(self, x: ArrayLike | Mapping[str, ArrayLike], *, lengths: ArrayLike | None = None, trace: bool = False
            ) -> Any:
        """The `Result` for real inputs (N, T, inputs) or (N, inputs), which are first brought to the input format; of
        several outputs a dictionary of one for each.

        Parameters:
            x: of a network with several inputs those of each by its name; no lengths then.
            lengths: as `run_integers`.
            trace: keep every tensor on the way; the whole batch is then computed at once.
        """
        if self.many and lengths is None:
            record = Recorder() if trace else None
            every = computed(self, self.all_integers(x if isinstance(x, Mapping) else {self.entry.name: x}), record)
            results = {name: Result(each, self.formats[name].real(each), record.tensors if record else {})
                       for name, each in every.items()}
            return results if len(results) > 1 else results[self.exit]
        assert not isinstance(x, Mapping)
        integers = self.integers(x)
        if not trace:
            integers = self.run_integers(integers, lengths)
            return Result(integers, self.output_format.real(integers))
        known = self.lengths(integers, lengths)
        record = Recorder(lengths=known is not None)
        if known is None:
            integers = self._compute(integers, record)
        else:
            order = descending(known)
            found = self._compute(integers[order, :int(known.max())], record, known[order])
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
            f"Inputs of network {self.name!r}", x, self.flow, self.shape, self.entry.axes))

    def all_integers(self, x: Mapping[str, ArrayLike]) -> dict[str, Integers]:
        """Real inputs by name as `integers` of each.

        Raises:
            Refusal: as `check_all`.
        """
        given = check_all(f"Inputs of network {self.name!r}", self.inputs, x)
        return {name: self.formats[name].quantize(each) for name, each in given.items()}

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
            x, batch = x.reshape(len(x), *grid, self.flow.size), max(1, IMAGES // math.prod(grid))
        else:
            batch = self.side_by_side(math.prod(x.shape[1:-1]))
        outputs = [self._compute(x[start:start + batch]) for start in range(0, max(1, len(x)), batch)]
        return outputs[0] if len(outputs) == 1 else np.concatenate(outputs)

    def traced(self, x: Integers | Mapping[str, Integers]) -> dict[str, Tensor]:
        """Every tensor on the way for inputs as `run_integers` takes them, or of several inputs for those by name, all
        of them computed at once, and as many steps of each sequence."""
        record = Recorder()
        computed(self, x if isinstance(x, Mapping) else {self.entry.name: x}, record)
        return record.tensors

    def compute(self, values: Mapping[str, Integers], *, lengths: Lengths | None = None) -> dict[str, Integers]:
        """All outputs by name for integers of all inputs by name, of networks with any number of them.

        Parameters:
            lengths: of sequences, in descending order; None where all have T steps.
        """
        return computed(self, values, None, lengths)

    def _compute(self, x: Integers, record: Recorder | None = None, lengths: Lengths | None = None) -> Integers:
        found: Integers = computed(self, {self.entry.name: x}, record, lengths)[self.exit]
        return found

    def _ragged(self, x: Integers, lengths: Lengths) -> Integers:
        """Golden outputs for sequences of these lengths: those of like length side by side."""
        outputs, order, start = self._outputs(x), descending(lengths), 0
        while start < len(order):
            longest = int(lengths[order[start]])
            some = order[start:start + self.side_by_side(longest)]
            found = self._compute(x[some, :longest], None, lengths[some])
            outputs[some, :found.shape[1]] = found
            start += len(some)
        return outputs

    def _outputs(self, x: Integers) -> Integers:
        """Zeros in the place of the outputs for sequences x."""
        return np.zeros((*x.shape[:2 if self.per_step else 1], self.end.size), np.int64)

    def side_by_side(self, steps: int) -> int:
        """Sequences of so many steps that are computed side by side."""
        widest = max(max(layer.inputs, layer.outputs) for layer in self.layers)
        return min(BATCH, max(64, VALUES // (steps * widest or 1)))

    def with_argmax(self) -> "Network":
        """This network and behind it the choice of the largest output, as hardware and C may have it.

        Raises:
            Refusal: when there are not two outputs to choose from, or the choice is there already.
        """
        last = self.exit
        if isinstance(self.nodes[-1].layer, Argmax):
            raise Refusal(f"Network {self.name!r} must give values to choose from, but it ends with the choice "
                          f"{last!r} already; leave argmax out")
        choice = Argmax(free_name("argmax", self.flows), self.end.size, self.output_format)
        return replace(self, nodes=(*self.nodes, Node(choice, (last,))), outputs=(choice.name,))

    def chosen(self, vectors: Vectors) -> Vectors:
        """The test vectors of the network without the choice at its end as those of this one."""
        return replace(vectors, outputs=self.nodes[-1].layer(vectors.outputs), network=self.hash)

    def initial(self, count: int) -> list[Any]:
        """The states of all layers that ``count`` sequences start from; None for a layer that keeps nothing."""
        return [layer.initial(count) for layer in self.layers]

    def resume(self, x: Integers, states: Sequence[Any]) -> tuple[Integers, list[Any]]:
        """Golden outputs for integers of the input format that go on from the states, and the states behind them.

        Pieces of sequences, one after the other, give what the whole ones give.

        Raises:
            Refusal: when a layer needs whole sequences, or a state is not that of as many sequences.
        """
        given = dict(zip((layer.name for layer in self.layers), states, strict=True))

        def step(layer: Any, values: Sequence[Integers]) -> Integers:
            y, given[layer.name] = layer.run(layer.argument(values), given[layer.name])
            return np.asarray(y)

        found = self.walk({self.entry.name: x}, step)[self.exit]
        return found, [given[layer.name] for layer in self.layers]

    @public
    def vectors(self, x: ArrayLike | Mapping[str, ArrayLike], *, lengths: ArrayLike | None = None) -> Vectors:
        """Test vectors for the hardware: the integer inputs of real ``x``, and the outputs expected.

        An image is the sequence of its pixels, row by row.

        Parameters:
            x: of a network with several inputs those of each by its name.
            lengths: as `run_integers`; inputs beyond them become 0.

        Raises:
            Refusal: as `run_integers`, and when inputs are missing, or there are not as many samples of each.
        """
        return expected.vectors(self, x, lengths)

    @property
    def memories(self) -> dict[str, FaultMemory]:
        """The memories that `with_faults` knows, by name."""
        return wrong.memories(self)

    @public
    def with_faults(self, faults: Sequence[Fault]) -> "Network":
        """The network as a circuit computes it whose memories have these faults, with a hash of its own.

        Raises:
            Refusal: when a memory, a word or a bit does not exist, or a bit has two faults.
        """
        nodes = wrong.faulted(self, faults)
        return replace(self, nodes=tuple(nodes.get(node.name, node) for node in self.nodes))

    @public
    def draw_faults(self, *, rate: float | None = None, count: int | None = None, seed: int = 0,
                    memories: Sequence[str] | None = None, kind: str = "flip", protection: str = "none"
                    ) -> tuple[Fault, ...]:
        """Different bits at random, each with the probability ``rate``, or ``count`` of all.

        Parameters:
            memories: names, or parts of them such as "bias" or "gru"; None: those of all weights.
            kind: "flip", "stuck-at-0" or "stuck-at-1".
            protection: "parity", "secded" or "scrub": words have check bits, which can be wrong, too, and what is given
                is left behind the decoder.

        Raises:
            Refusal: when a rate is not from 0 to 1, a memory does not exist, or there are not as many bits.
        """
        return wrong.draw(self, rate=rate, count=count, seed=seed, memories=memories, kind=kind,
                          protection=protection)

    @public
    def save(self, folder: str | Path) -> None:
        """Write ``network.json`` and ``weights.npz``."""
        network_file.write(self, folder)

    @classmethod
    @public
    def load(cls, folder: str | Path) -> "Network":
        """Read what `save` wrote.

        Raises:
            Refusal: when a file is missing, damaged, of another version, breaks `network_file.NETWORK`, or the
                two do not belong together.
        """
        return network_file.read(folder, cls)
