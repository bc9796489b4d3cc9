"""Where the bits of a network's memories lie in the images of its design, so that a circuit has the faults that golden
has.

The places are read off the images themselves, of networks with other numbers: bit t of each bit's number stands at its
place in the t-th of them. So they hold for any kind of layer, schedule and block size, and whatever the images hold
besides copies of bits is found.
"""
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from circulant.hw.array.plans import LayerPlan, PairPlan, with_ports, with_protection
from circulant.hw.plan.shared.groups import STEPS
from circulant.hw.planner import Plan, plan
from circulant.hw.stream.pipeline import LEVELS
from circulant.hw.top import contents, images
from circulant.sim.arith.codes import Bits, Code
from circulant.sim.design import hashes, read
from circulant.sim.golden.faults import Fault, FaultMemory, placed
from circulant.sim.golden.network import Network
from circulant.sim.kinds.registry import layer_as_json, layer_from_json
from circulant.sim.passes.bases import layer_arrays
from circulant.sim.refusal import Refusal
from circulant.sim.shape.graph import Node

__all__ = ["Place", "Sites", "sites", "sites_of"]

CHECKS = 3
"""Networks of random numbers in whose images each bit must stand at its place."""


@dataclass(frozen=True, order=True)
class Place:
    """A bit of a memory image: its file, the word, and the bit of it."""

    image: str
    word: int
    bit: int


@dataclass(frozen=True, eq=False)
class Sites:
    """
    Parameters:
        network: whose bits they are.
        images: the texts of the design's memories by file name.
        numbers: for each image, (words, bits from the lowest): the number of the network's bit there, 0 where there is
            none of it.
        starts: the number of the first bit of each memory.
        codes: of protected memories, by file name; their check bits hold nothing of the network.
    """

    network: Network
    images: Mapping[str, str]
    numbers: Mapping[str, NDArray[np.int64]]
    starts: Mapping[str, int]
    codes: Mapping[str, Code] = field(default_factory=dict)

    def at(self, place: Place) -> Fault:
        """The flip of a network's bit that a flip of an image's bit is.

        Raises:
            Refusal: when there is no such bit, or golden cannot follow its flip alone.
        """
        number = self._require(place)
        if not number:
            raise Refusal(f"Bit {place.bit} of word {place.word} of {place.image} holds no weight and no bias, so "
                          "golden has no such fault; play it in the simulator only")
        if (count := len(self._places(number))) > 1:
            raise Refusal(f"Bit {place.bit} of word {place.word} of {place.image} is one of {count} copies of a bit, "
                          "so golden cannot follow its flip alone; flip all of them")
        return self._fault(number)

    def _fault(self, number: int) -> Fault:
        memory, start = max(((name, at) for name, at in self.starts.items() if at <= number), key=lambda each: each[1])
        return Fault(memory, *divmod(number - start, self.network.memories[memory].word_bits))

    def places(self, fault: Fault) -> list[Place]:
        """All copies of a network's bit.

        Raises:
            Refusal: when the network has no such bit, or the images do not hold it.
        """
        list(placed(self.network, [fault]))
        found = self._places(self._number(fault))
        if not found:
            raise self._absent(fault)
        return found

    def _absent(self, fault: Fault) -> Refusal:
        return Refusal(f"The images of a design must hold the bit of a fault, but none holds bit {fault.bit} of word "
                       f"{fault.word} of {fault.memory}; give it to the golden model alone")

    def _number(self, fault: Fault) -> int:
        return self.starts[fault.memory] + fault.word * self.network.memories[fault.memory].word_bits + fault.bit

    def _places(self, number: int) -> list[Place]:
        return [Place(image, int(word), int(bit)) for image, found in self.numbers.items()
                for word, bit in np.argwhere(found == number)]

    def faulted(self, faults: Sequence[Fault]) -> dict[str, str]:
        """The texts of the images that these faults change, by file name.

        Raises:
            Refusal: as `Network.with_faults` and `places`.
        """
        list(placed(self.network, faults))
        kinds = {self._number(fault): fault.kind for fault in faults}
        wanted, texts, hits = np.array(sorted(kinds)), {}, set[int]()
        for image, numbers in self.numbers.items():
            hit = np.argwhere(np.isin(numbers, wanted))
            if len(hit):
                bits = _bits(self.images[image])
                for word, bit in hit.tolist():
                    number = int(numbers[word, bit])
                    kind = kinds[number]
                    hits.add(number)
                    bits[word, bit] = not bits[word, bit] if kind == "flip" else kind == "stuck-at-1"
                texts[image] = _text(bits, len(self.images[image].split("\n", 1)[0]))
        if lost := [fault for fault in faults if self._number(fault) not in hits]:
            raise self._absent(lost[0])
        return texts

    def bits(self, image: str) -> Bits:
        """The words of an image (words, bits from the lowest), with its check bits, if any."""
        bits = _bits(self.images[image])
        return bits[:, :self.codes[image].bits] if image in self.codes else bits

    def remaining(self, texts: Mapping[str, str]) -> list[Fault]:
        """The faults that decoders of protected memories leave of wrong bits in images: golden with these computes
        what the circuit does.

        Parameters:
            texts: of images with wrong bits, by file name, as `faulted` and `flipped` give them.

        Raises:
            Refusal: when a bit is left that golden does not have, or one of several copies alone.
        """
        numbers: set[int] = set()
        for image, text in texts.items():
            wrong = _bits(text) ^ _bits(self.images[image])
            if code := self.codes.get(image):  # Its decoder does to a word what it does to the wrong bits alone.
                wrong[:, :code.width], wrong[:, code.width:] = code.decode(wrong[:, :code.bits]).data, False
            for word, bit in np.argwhere(wrong).tolist():
                place = Place(image, word, bit)
                number = self._require(place)
                if not number:
                    self.at(place)
                numbers.add(number)
        return [self._fault(number) for number in sorted(numbers)]

    def flipped(self, places: Sequence[Place]) -> dict[str, str]:
        """The texts of the images that flips of their bits change, whatever these hold.

        Raises:
            Refusal: when there is no such bit, or it is named twice.
        """
        found: dict[str, Bits] = {}
        if len(set(places)) != len(places):
            raise Refusal(f"Each bit of an image must be named once, not {len(places) - len(set(places))} twice")
        for place in places:
            self._require(place)
            bits = found.setdefault(place.image, _bits(self.images[place.image]))
            bits[place.word, place.bit] ^= True
        return {image: _text(bits, len(self.images[image].split("\n", 1)[0])) for image, bits in found.items()}

    def _require(self, place: Place) -> int:
        """The number of the network's bit at a place."""
        found = self.numbers.get(place.image)
        if found is None or not (0 <= place.word < found.shape[0] and 0 <= place.bit < found.shape[1]):
            raise Refusal(f"A bit of an image must be in one of {', '.join(self.numbers)}, and in one of its words, "
                          f"not bit {place.bit} of word {place.word} of {place.image}")
        return int(found[place.word, place.bit])

    @property
    def held(self) -> dict[str, int]:
        """How many bits of the images are a bit of the network that has no other copy; one of several copies; neither:
        what programs, tables and idle lanes hold."""
        every = np.concatenate([found.ravel() for found in self.numbers.values()])
        _, counts = np.unique(every[every > 0], return_counts=True)
        return {"single": int((counts == 1).sum()), "copies": int(counts[counts > 1].sum()),
                "other": int((every == 0).sum())}


def sites(network: Network, plans: Sequence[Plan], protection: str = "none") -> Sites:
    """
    Parameters:
        plans: of the design, as `circulant.hw.design.generate` made it with them, without its protection.
        protection: of its memories.

    Raises:
        Refusal: when images hold anything that depends on weights or biases but copies of their bits, or multipliers
            were made for these very weights.
    """
    if any(each.shape.ports is not None for one in plans for each in _engines(one)):
        raise Refusal("Faults of a design need multipliers that take any weights, but two products in a DSP block suit "
                      "these weights alone; set hardware.dsp_packing to 'none'")
    memories, starts, total = network.memories, {}, 1
    for name, memory in memories.items():
        starts[name], total = total, total + memory.bits
    own, found = images(network, plans), {}
    found = {image: np.zeros(_bits(text).shape, np.int64) for image, text in own.items()}

    def render(each: Bits) -> dict[str, Bits]:
        other = _with(network, {name: each[start:start + memories[name].bits] for name, start in starts.items()})
        return {image: _bits(text) for image, text in images(other, plans_of(plans, other)).items()}

    for t in range(total.bit_length()):
        for image, bits in render(np.arange(total) >> t & 1 > 0).items():
            found[image] |= bits.astype(np.int64) << t
    # What is always 0 or 1 there has the number 0 or one that is too high.
    found = {image: np.where(number < total, number, 0) for image, number in found.items()}
    rng, first, wrong = np.random.default_rng(0), {image: _bits(text) for image, text in own.items()}, set[str]()
    for _ in range(CHECKS):
        each = rng.integers(2, size=total) > 0
        made = render(each)
        wrong |= {image for image, number in found.items()
                  if (made[image] != np.where(number > 0, each[number], first[image])).any()}
    if wrong:
        raise Refusal(f"Memory images must hold bits of weights and biases as they are, but {', '.join(sorted(wrong))} "
                      "holds numbers made of them; golden cannot follow faults there")
    if protection == "none":
        return Sites(network, own, found, starts)
    plain = {each.file: each.width for each in contents(network, plans)}
    guarded = contents(network, with_protection(plans, protection))
    codes = {each.file: Code(plain[each.file], protection) for each in guarded if each.width > plain[each.file]}
    coded = {each.file: each.text for each in guarded}
    for image in codes:
        more = np.size(_bits(coded[image]), 1) - np.size(found[image], 1)
        found[image] = np.pad(found[image], ((0, 0), (0, more)))
    return Sites(network, coded, found, starts, codes)


def sites_of(folder: str | Path, network: Network, *, multipliers: int, streams: int = 1,
             levels: int = LEVELS) -> Sites:
    """`sites` of the design in a folder, which was made from ``network``.

    Parameters:
        multipliers, streams, levels: as it was generated with.

    Raises:
        Refusal: as `sites`, and when the design was generated with others, or a file is missing or damaged.
    """
    manifest = read(folder)
    plans = plan(network, multipliers, streams=streams, levels=levels, objective=manifest["objective"],
                 reloadable="configuration" in manifest, beat_blocks=manifest.get("beat_blocks", 1),
                 latency=manifest.get("latency_asked", 0), max_steps=manifest["max_steps"] or STEPS)
    if "dsp_packing" in manifest:
        plans = with_ports(plans, manifest["dsp_packing"])
    found = sites(network, plans, manifest.get("protection", "none"))
    given = {name: text.encode() for name, text in found.images.items()}
    if manifest["network"] != network.hash or hashes(given) != {name: manifest["files"][name]
                                                                for name in manifest["images"]}:
        raise Refusal(f"{folder} must hold the design of network {network.name!r} with {multipliers} multipliers and "
                      f"{streams} streams, but it is another one; generate it again")
    return found


def plans_of(plans: Sequence[Plan], network: Network) -> list[Plan]:
    """The plans with the layers of another network of the same structure and names, wherever they know layers."""
    layers = {layer.name: layer for layer in (*network.layers, *network.stages)}
    made: dict[int, Any] = {}

    def other(value: Any) -> Any:
        if id(value) not in made:
            made[id(value)] = anew(value)
        return made[id(value)]

    def anew(value: Any) -> Any:
        if hasattr(value, "kind") and getattr(value, "name", None) in layers:
            return layers[value.name]
        if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
            return type(value)(map(other, value))
        if not is_dataclass(value) or isinstance(value, type):
            return value
        was = {each.name: getattr(value, each.name) for each in fields(value) if each.init}
        changed = {name: now for name, old in was.items() if (now := other(old)) is not old}
        return replace(value, **changed) if any(now != was[name] for name, now in changed.items()) else value

    return list(map(other, plans))


def _engines(each: Plan) -> list[LayerPlan]:
    """The plans of the arrays of a layer."""
    if isinstance(each, PairPlan):
        return [each.forward, each.backward]
    return [each] if isinstance(each, LayerPlan) else []


def _with(network: Network, bits: Mapping[str, Bits]) -> Network:
    """The network whose memories hold these bits, word by word from the lowest."""
    nodes = []
    for node in network.nodes:
        arrays = {name: _numbers(bits[name], network.memories[name]).reshape(array.shape) if name in bits else array
                  for name, array in layer_arrays(node.layer).items()}
        nodes.append(Node(layer_from_json(layer_as_json(node.layer), arrays), node.sources))
    return replace(network, nodes=tuple(nodes))


def _numbers(bits: Bits, memory: FaultMemory) -> NDArray[np.int64]:
    """Two's complement numbers of a memory's bits."""
    values = bits.reshape(-1, memory.width).astype(np.int64) << np.arange(memory.width)
    values[:, -1] *= -1
    return np.asarray(values.sum(1))


def _bits(text: str) -> Bits:
    """(words, bits from the lowest) of the text of an image."""
    lines = text.split()
    digits = len(lines[0]) + len(lines[0]) % 2
    raw = np.frombuffer(bytes.fromhex("".join(line.rjust(digits, "0") for line in lines)), np.uint8)
    return np.unpackbits(raw.reshape(len(lines), -1)[:, ::-1], axis=1, bitorder="little").astype(bool)


def _text(bits: Iterable[Bits], digits: int) -> str:
    """The text of an image with so many digits in a line."""
    raw = np.packbits(np.asarray(bits), axis=1, bitorder="little")[:, ::-1]
    return "".join(f"{row.tobytes().hex()[-digits:]}\n" for row in raw)
