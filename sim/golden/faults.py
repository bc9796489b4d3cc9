"""Wrong bits in the memories of a network: flipped, or stuck at a value, and the network that computes with them.

A word of a memory holds the numbers that a circuit reads together: of weights the spectrum of a block, of biases a
block of rows. The first number is in the low bits, each in two's complement, as in the images of
`circulant.hw.array.lanes`. So any wrong bit leaves a number of the memory's format, and golden computes with just what
the circuit reads.
"""
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from circulant.sim.arith.circulant import JointProduct
from circulant.sim.arith.codes import Code, check_protection
from circulant.sim.arith.fixed import Integers
from circulant.sim.kinds.registry import layer_as_json, layer_from_json
from circulant.sim.passes.bases import layer_arrays
from circulant.sim.refusal import Refusal, nearest
from circulant.sim.shape.graph import Node

if TYPE_CHECKING:
    from circulant.sim.golden.network import Network

__all__ = ["KINDS", "Fault", "FaultMemory", "check_rate", "draw", "faulted", "memories", "placed"]

KINDS = ("flip", "stuck-at-0", "stuck-at-1")


@dataclass(frozen=True, order=True)
class Fault:
    """A wrong bit of a memory.

    Parameters:
        memory: its name, as `memories` lists it, such as ``gru.input_product.weights``.
        word: of the blocks of a matrix (p, q) that number i · q + j; of biases the block row.
        bit: of the word, number · width + bit of it.
        kind: one of `KINDS`.
    """

    memory: str
    word: int
    bit: int
    kind: str = "flip"

    def __str__(self) -> str:
        return f"{self.memory}[{self.word}].{self.bit} {self.kind}"


@dataclass(frozen=True)
class FaultMemory:
    """The shape of a memory: its words, the numbers in each, and their bits.

    Parameters:
        array: the name of the integers in ``weights.npz``.
    """

    array: str
    words: int
    numbers: int
    width: int

    @property
    def word_bits(self) -> int:
        return self.numbers * self.width

    @property
    def bits(self) -> int:
        return self.words * self.word_bits


def memories(network: "Network") -> dict[str, FaultMemory]:
    """The memories of a network that can have faults, by name: spectra of each matrix, and biases."""
    found: dict[str, FaultMemory] = {}
    for layer in network.layers:
        later = [id(part) for value in vars(layer).values() if isinstance(value, JointProduct)
                 for part in value.parts[1:]]  # Their sum has one bias, that of the first.
        for role, product in layer.products.items():
            *blocks, k = product.weights.shape
            each = [FaultMemory(f"{layer.name}.{role}.weights", int(np.prod(blocks)), k, product.weight.width)]
            if id(product) not in later:
                each.append(FaultMemory(f"{layer.name}.{role}.bias", len(product.bias) // k, k, product.output.width))
            found |= {memory.array: memory for memory in each}
    return found


def chosen(network: "Network", names: Sequence[str] | None) -> dict[str, FaultMemory]:
    """The memories of these names or parts of names; those of weights without any.

    Raises:
        Refusal: when a name is that of no memory.
    """
    every = memories(network)
    found: dict[str, FaultMemory] = {}
    for name in ("weights",) if names is None else names:
        some = {full: memory for full, memory in every.items()
                if f".{name}." in f".{full}."}
        if not some:
            raise Refusal(f"A memory with faults must be one of {', '.join(every)}, or a part of such a name, not "
                          f"{name!r}{nearest(name, every)}")
        found |= some
    return {full: memory for full, memory in every.items() if full in found}


def check_rate(rate: float) -> float:
    """
    Raises:
        Refusal: when a bit error rate is none.
    """
    if not 0 <= rate <= 1:
        raise Refusal(f"A bit error rate must be a number from 0 to 1, not {rate!r}; 0.001 is one bit of a thousand")
    return float(rate)


def check_kind(kind: str) -> str:
    """
    Raises:
        Refusal: when there is no such fault.
    """
    if kind not in KINDS:
        raise Refusal(f"A fault must be one of {', '.join(KINDS)}, not {kind!r}{nearest(kind, KINDS)}")
    return kind


def draw(network: "Network", *, rate: float | None = None, count: int | None = None, seed: int = 0,
         memories: Sequence[str] | None = None, kind: str = "flip", protection: str = "none") -> tuple[Fault, ...]:
    """Different bits of some memories at random: each of them with the probability ``rate``, or ``count`` of all.

    Parameters:
        protection: of the memories, whose words then have check bits that can be wrong, too; what their decoder does
            not put right is given.

    Raises:
        Refusal: as `chosen`, when rate, kind or protection is none, when not just one of rate and count is given, or
            there are not as many bits.
    """
    among = chosen(network, memories)
    if check_protection(protection) != "none" and kind != "flip":
        raise Refusal(f"Faults of protected memories must be flips, not {kind!r}: whether a stuck bit is wrong depends "
                      "on its word; give kind 'flip'")
    codes = [Code(memory.word_bits, protection) for memory in among.values()]
    sizes = np.array([memory.words * code.bits for memory, code in zip(among.values(), codes, strict=True)])
    total, rng = int(sizes.sum()), np.random.default_rng(seed)
    if (rate is None) == (count is None):
        raise Refusal(f"Faults must be drawn at a rate or by their count, not with rate {rate!r} and count {count!r}; "
                      "give one of them")
    if count is None:
        assert rate is not None
        count = int(rng.binomial(total, check_rate(rate)))
    if not 0 <= count <= total:
        raise Refusal(f"The faults to draw must be from 0 to {total:,}, the bits of {', '.join(among)}, not {count}")
    check_kind(kind)
    bits = np.sort(rng.choice(total, count, replace=False, shuffle=False))
    starts, names = np.cumsum(sizes) - sizes, list(among)
    at = np.searchsorted(starts, bits, side="right") - 1
    if protection != "none":
        return tuple(fault for n, (name, memory) in enumerate(among.items())
                     for fault in _left(name, memory, codes[n], bits[at == n] - starts[n]))
    return tuple(Fault(names[n], *divmod(int(bit - starts[n]), among[names[n]].word_bits), kind)
                 for n, bit in zip(at.tolist(), bits.tolist(), strict=True))


def _left(name: str, memory: FaultMemory, code: Code, bits: Integers) -> Iterator[Fault]:
    """The faults that the decoder of a memory leaves, of flips of its words with their check bits. It does to a word
    what it does to the wrong bits alone."""
    wrong = np.zeros((memory.words, code.bits), bool)
    wrong.ravel()[bits] = True
    for word, bit in np.argwhere(code.decode(wrong).data).tolist():
        yield Fault(name, word, bit)


def placed(network: "Network", faults: Iterable[Fault]) -> Iterator[tuple[FaultMemory, list[Fault]]]:
    """Faults by memory.

    Raises:
        Refusal: when a memory, a word or a bit does not exist, or a bit has two faults.
    """
    every = memories(network)
    groups: dict[str, list[Fault]] = {}
    seen = set()
    for fault in faults:
        memory = every.get(fault.memory)
        if memory is None:
            raise Refusal(f"A memory with faults must be one of {', '.join(every)}, not {fault.memory!r}"
                          f"{nearest(fault.memory, every)}")
        if not (0 <= fault.word < memory.words and 0 <= fault.bit < memory.word_bits):
            raise Refusal(f"A fault in {fault.memory} must be in one of its words 0 to {memory.words - 1} and bits 0 "
                          f"to {memory.word_bits - 1}, not in bit {fault.bit} of word {fault.word}")
        check_kind(fault.kind)
        place = fault.memory, fault.word, fault.bit
        if place in seen:
            raise Refusal(f"A bit must have one fault, but bit {fault.bit} of word {fault.word} of {fault.memory} has "
                          "two; name it once")
        seen.add(place)
        groups.setdefault(fault.memory, []).append(fault)
    return ((every[name], group) for name, group in groups.items())


def wrong(array: Integers, memory: FaultMemory, faults: Sequence[Fault]) -> Integers:
    """The integers of a memory as a circuit reads them."""
    raw = array.reshape(memory.words, memory.numbers) & ((1 << memory.width) - 1)
    apply = {"flip": np.bitwise_xor, "stuck-at-1": np.bitwise_or}
    for kind in dict.fromkeys(fault.kind for fault in faults):
        some = [fault for fault in faults if fault.kind == kind]
        number, bit = np.divmod([fault.bit for fault in some], memory.width)
        where: Any
        where, mask = ([fault.word for fault in some], number), np.left_shift(1, bit)
        if kind == "stuck-at-0":
            np.bitwise_and.at(raw, where, ~mask)
        else:
            apply[kind].at(raw, where, mask)
    sign = 1 << (memory.width - 1)
    return ((raw ^ sign) - sign).reshape(array.shape)


def faulted(network: "Network", faults: Iterable[Fault]) -> Mapping[str, Node]:
    """The nodes of a network whose memories have faults, by name.

    Raises:
        Refusal: as `placed`.
    """
    changed: dict[str, tuple[FaultMemory, list[Fault]]] = {
        memory.array: (memory, group) for memory, group in placed(network, faults)}
    found: dict[str, Node] = {}
    for node in network.nodes:
        layer: Any = node.layer
        arrays = {name: array if name not in changed else wrong(array, *changed[name])
                  for name, array in layer_arrays(layer).items()}
        if changed.keys() & arrays.keys():
            found[node.name] = Node(layer_from_json(layer_as_json(layer), arrays), node.sources)
    return found
