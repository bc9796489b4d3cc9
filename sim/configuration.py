"""The configuration port of a reloadable design as the host sees it: its address map and protocol.

Words have 32 bits, addresses count words. A memory word of more bits takes several of them, low bits first, and is
stored when its last one is written.
"""
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from circulant.sim.arith.fixed import Integers
from circulant.sim.document import Document
from circulant.sim.files.schema import WAY_OUT, Choice, Int, Listing, Null, Table, require
from circulant.sim.passes.rules import NAME, SIZE
from circulant.sim.refusal import Refusal

__all__ = ["ADDRESS_BITS", "CONFIGURATION", "CONTROL", "HOLD", "IDLE", "READ", "REFUSED", "RESTORING", "RESUME",
           "STATUS", "WAIT", "WORD", "WRITE", "Configuration", "Operation", "StateShape", "Window", "state_parts"]

WORD = 32
ADDRESS_BITS = 24
"""Room for 64 MiB, more than any device has on chip."""

CONTROL, STATUS, RESUME = range(3)
"""Addresses of the registers."""

HOLD = 1
"""Bit of CONTROL: no input is taken."""

IDLE, RESTORING, REFUSED = 1, 2, 4
"""Bits of STATUS: all is done and the port is open; states are being restored; a write came while it was not open."""

WRITE, WAIT, READ = range(3)
"""Kinds of operations."""


_STATE = Table({"layer": NAME, "part": Choice(("y", "c")), "size": SIZE, "block_size": Int(1, 64), "blocks": SIZE,
                "streams": Int(1, WORD), "width": Int(1, 62)})
CONFIGURATION = Table({"windows": Listing(Table(
    {"name": NAME, "first": Int(0, (1 << ADDRESS_BITS) - 1), "words": Int(1, 1 << ADDRESS_BITS),
     "width": Int(1, 1 << 16), "state": Null(_STATE)}, open=True))}, open=True)
"""The rules of a manifest's entry."""


class Operation(NamedTuple):
    """WRITE ``value``; WAIT until what is read, under ``mask``, is ``value``; READ."""

    kind: int
    address: int
    value: int = 0
    mask: int = 0


@dataclass(frozen=True)
class StateShape:
    """A part of a layer's state: for each stream ``blocks`` blocks of ``block_size`` values of ``width`` bits.

    Parameters:
        part: "y", what comes out, or "c", the cell of an LSTM.
        size: how many of a stream's values are its vector; those behind are zero.
    """

    layer: str
    part: str
    size: int
    block_size: int
    blocks: int
    streams: int
    width: int


@dataclass(frozen=True)
class Window:
    """A memory: ``words`` words of ``width`` bits; word n is at ``first`` + n · ``stride``.

    Parameters:
        state: what it holds if it can be read; the contents of others belong to the network.
    """

    name: str
    first: int
    words: int
    width: int
    state: StateShape | None = None

    @property
    def parts(self) -> int:
        """Words of the port that make one of the memory."""
        return -(-self.width // WORD)

    @property
    def stride(self) -> int:
        return 1 << (self.parts - 1).bit_length()

    @property
    def size(self) -> int:
        """Addresses, a power of two; the first one is a multiple of it."""
        return self.stride << (self.words - 1).bit_length()

    def addresses(self) -> list[int]:
        return [self.first + n * self.stride + part for n in range(self.words) for part in range(self.parts)]

    def writes(self, words: Sequence[int]) -> Iterator[tuple[int, int]]:
        """(address, word) of the port for all words of the memory.

        Raises:
            Refusal: when they are not as many as the memory has.
        """
        if len(words) != self.words:
            raise Refusal(f"Memory {self.name!r} must be given its {self.words} words, not {len(words)}; make them for "
                          "a network of the same structure")
        for n, word in enumerate(words):
            for part in range(self.parts):
                yield self.first + n * self.stride + part, word >> (WORD * part) & ((1 << WORD) - 1)

    def joined(self, parts: Sequence[int]) -> list[int]:
        """The memory's words of what was read at `addresses`."""
        each = self.parts
        return [sum(int(part) << (WORD * i) for i, part in enumerate(parts[n * each:(n + 1) * each]))
                for n in range(self.words)]


@dataclass(frozen=True)
class Configuration:
    """The address map, and the protocol: `hold`, then any of the others, then `release`.

    A state is as `Network.resume` has it, with a row for each stream; a list of them, one for each layer.
    """

    windows: tuple[Window, ...]

    @property
    def states(self) -> list[Window]:
        return [window for window in self.windows if window.state is not None]

    def hold(self) -> list[Operation]:
        """Take no more input and wait until everything that was taken is done and its outputs have left."""
        return [Operation(WRITE, CONTROL, HOLD), Operation(WAIT, STATUS, IDLE, IDLE)]

    def release(self) -> list[Operation]:
        return [Operation(WAIT, STATUS, IDLE, IDLE | RESTORING | REFUSED), Operation(WRITE, CONTROL, 0)]

    def load(self, writes: Iterable[tuple[int, int]]) -> list[Operation]:
        return [Operation(WRITE, address, word) for address, word in writes]

    def restart(self, streams: int = 0) -> list[Operation]:
        """The next step of each stream goes on from the state in the memories where its bit is set, else from zero."""
        return [Operation(WRITE, RESUME, streams), Operation(WAIT, STATUS, IDLE, IDLE | RESTORING)]

    def restore(self, states: Sequence[Any]) -> list[Operation]:
        """Load the states of all layers, and go on from them with the next step of every stream.

        Raises:
            Refusal: when they are not those of the design.
        """
        if not self.states:
            raise Refusal("A design must have states to save and restore, but this one has a bidirectional layer, "
                          "which takes whole sequences, or no recurrent layer; run each sequence to its end")
        given = list(state_parts(states))
        if len(given) != len(self.states):
            raise Refusal(f"A state of this design must have {len(self.states)} parts, not {len(given)}; give what "
                          "Network.resume returned, a row for each stream")
        operations, streams = [], 1
        for window, vectors in zip(self.states, given, strict=True):
            assert window.state is not None
            operations += self.load(window.writes(_packed(window.state, vectors)))
            streams = window.state.streams
        return operations + self.restart((1 << streams) - 1)

    def save(self) -> list[Operation]:
        """Read the states of all layers; `saved` makes of it what `restore` takes."""
        return [Operation(READ, address) for window in self.states for address in window.addresses()]

    def saved(self, words: Sequence[int], states: Sequence[Any]) -> list[Any]:
        """The states that were read, nested as the given ones are (those of `Network.initial`)."""
        found, at = [], 0
        for window in self.states:
            assert window.state is not None
            end = at + len(window.addresses())
            found.append(_unpacked(window.state, window.joined(words[at:end])))
            at = end
        return _nested(states, iter(found))

    def writes(self, images: Mapping[str, Sequence[int]]) -> list[tuple[int, int]]:
        """(address, word) for the memories that belong to the network, from their words by name.

        Raises:
            Refusal: when they are not those of the design.
        """
        missing = [window.name for window in self.windows if window.state is None and window.name not in images]
        if missing:
            raise Refusal(f"Every memory of the network must be given its words, but {missing[0]!r} is not; make them "
                          "for a network of the same structure")
        return [pair for window in self.windows if window.state is None for pair in window.writes(images[window.name])]

    def as_json(self) -> Document:
        return {"prefix": "cfg", "address_bits": ADDRESS_BITS, "word_bits": WORD,
                "registers": {"control": CONTROL, "status": STATUS, "resume": RESUME},
                "windows": [asdict(window) | {"stride": window.stride} for window in self.windows]}

    @classmethod
    def from_json(cls, body: Mapping[str, Any], where: str | Path = "manifest.json") -> "Configuration":
        """The configuration that `as_json` gave.

        Parameters:
            where: it comes from.

        Raises:
            Refusal: when it breaks `CONFIGURATION`, or a window lies where none can, or does not hold its state.
        """
        require(CONFIGURATION, body, where)
        made = cls(tuple(
            Window(entry["name"], entry["first"], entry["words"], entry["width"],
                   None if entry["state"] is None else StateShape(**entry["state"])) for entry in body["windows"]))
        end = 0
        for window in sorted(made.windows, key=lambda window: window.first):
            state = window.state
            if window.first < max(end, RESUME + 1) or window.first % window.size or (
                    window.first + window.size > 1 << ADDRESS_BITS):
                raise Refusal(f"{where}: window {window.name!r} must begin at a multiple of its size {window.size}, "
                              f"behind the one before and within {ADDRESS_BITS} bits of address, not at "
                              f"{window.first}; {WAY_OUT}")
            if state is not None and not (state.size <= state.blocks * state.block_size and
                                          window.words == state.blocks * state.streams and
                                          window.width >= state.block_size * state.width):
                raise Refusal(f"{where}: window {window.name!r} must hold the state of its layer, but {window.words} "
                              f"words of {window.width} bits do not hold {state}; {WAY_OUT}")
            end = window.first + window.size
        return made


def state_parts(states: Any) -> Iterator[Integers]:
    """The vectors of nested states, in order."""
    if isinstance(states, np.ndarray):
        yield states
    elif states is not None:
        for state in states:
            yield from state_parts(state)


def _nested(like: Any, found: Iterator[Integers]) -> Any:
    if like is None:
        return None
    return next(found) if isinstance(like, np.ndarray) else type(like)(_nested(state, found) for state in like)


def _packed(shape: StateShape, vectors: Integers) -> list[int]:
    """Memory words of the vectors (streams, size), stream after stream, value 0 of a block in the low bits."""
    if vectors.shape != (shape.streams, shape.size):
        raise Refusal(f"The state {shape.part} of layer {shape.layer!r} must have the shape "
                      f"{(shape.streams, shape.size)}, a row for each stream, not {vectors.shape}; give what "
                      "Network.resume returned")
    rows = np.zeros((shape.streams, shape.blocks * shape.block_size), np.int64)
    rows[:, :shape.size] = vectors
    mask = (1 << shape.width) - 1
    return [sum((value & mask) << (shape.width * j) for j, value in enumerate(block))
            for block in rows.reshape(-1, shape.block_size).tolist()]


def _unpacked(shape: StateShape, words: Sequence[int]) -> Integers:
    half, mask = 1 << (shape.width - 1), (1 << shape.width) - 1
    values = [[((word >> (shape.width * j) & mask) ^ half) - half for j in range(shape.block_size)] for word in words]
    return np.array(values, np.int64).reshape(shape.streams, -1)[:, :shape.size]
