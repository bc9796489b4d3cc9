"""Parts of units: memories, and products of two variables. Each unit states its own, `circulant.hw.resources`
adds them up."""
from dataclasses import dataclass, field, fields, replace
from typing import NamedTuple

from amaranth.hdl import Shape

from circulant.hw.array.bank_shape import BankShape
from circulant.hw.array.lanes import array_images, row_shape
from circulant.hw.array.output_pipeline import chain_width
from circulant.hw.array.program import Program
from circulant.hw.array.row_pair import pair_forms
from circulant.hw.array.sequencer import program_image, program_word
from circulant.hw.emit.image import Image
from circulant.hw.emit.profile import GENERIC, Piece, Profile
from circulant.hw.stream.pipeline import Queue
from circulant.sim.arith.codes import Code
from circulant.sim.arith.multiplier import EXACT

__all__ = ["Approximate", "Decoders", "Memory", "Parts", "Product", "Shared", "Transform", "array_parts",
           "engine_images", "engine_parts", "guarded", "queue_memory"]


class Memory(NamedTuple):
    """Some memories of one shape."""

    copies: int
    width: int
    depth: int
    writable: bool = True
    asynchronous: bool = False
    loadable: bool = False

    @property
    def bits(self) -> int:
        return self.copies * self.width * self.depth

    def place(self, profile: Profile = GENERIC) -> str:
        """Where they lie in a family; what can be loaded and would lie in logic lies where it can be written."""
        fixed = profile.place(self.depth, self.width, writable=False)
        if self.loadable and not self.writable and fixed == "block":
            return fixed
        return profile.place(self.depth, self.width, writable=self.writable or self.loadable,
                             asynchronous=self.asynchronous)

    def pieces(self, profile: Profile = GENERIC) -> tuple[Piece, ...]:
        """The pieces of one of them in a family; one that can be loaded is whole."""
        if self.loadable and not self.writable:
            return (Piece(self.depth, self.width, self.place(profile)),)
        return profile.pieces(self.depth, self.width, writable=self.writable, asynchronous=self.asynchronous)


class Product(NamedTuple):
    """Some products of two variables, with their operands' bits."""

    copies: int
    a: int
    b: int


class Approximate(NamedTuple):
    """Some approximate products in logic, with their operands' bits and their multiplier."""

    copies: int
    a: int
    b: int
    multiplier: str


class Transform(NamedTuple):
    """Some pipelines of a transform of ``k`` values, whose spectra have so many bits a value."""

    copies: int
    k: int
    width: int


class Decoders(NamedTuple):
    """Some decoders of words of so many bits, check bits apart, by a protection."""

    copies: int
    width: int
    protection: str


class Shared(NamedTuple):
    """An array that layers share: how many they are, and the bits of the spectra that each gives it in a cycle."""

    layers: int
    width: int


@dataclass(frozen=True)
class Parts:
    """Memories and products of a unit, its transforms, multipliers that make two products each, arrays that layers
    share, decoders of protected memories, approximate products in logic."""

    memories: list[Memory] = field(default_factory=list)
    products: list[Product] = field(default_factory=list)
    transforms: list[Transform] = field(default_factory=list)
    pairs: list[Product] = field(default_factory=list)
    shared: list[Shared] = field(default_factory=list)
    decoders: list[Decoders] = field(default_factory=list)
    approximate: list[Approximate] = field(default_factory=list)

    def __add__(self, other: "Parts") -> "Parts":
        return Parts(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))

    @property
    def loadable(self) -> "Parts":
        """The same with every image behind a configuration port."""
        return replace(self, memories=[each._replace(loadable=True) for each in self.memories])


def guarded(memories: list[Memory], protection: str) -> Parts:
    """Memories with the check bits of a protection, given without them, and their decoders."""
    if protection == "none":
        return Parts(memories)
    return Parts([each._replace(width=Code(each.width, protection).bits, loadable=protection == "scrub")
                  for each in memories],
                 decoders=[Decoders(each.copies, each.width, protection) for each in memories])


def array_parts(program: Program, *, loadable: bool = False) -> Parts:
    """The parts of a `circulant.hw.array.lanes.LaneArray`: weights, biases and routes, sums; the lanes' products; the
    chains' transforms.

    Parameters:
        loadable: of a design in which they may be reloaded.
    """
    shape, row, k = program.shape, row_shape(program), program.matrices[0].product.block_size
    found = []
    if row.slots * row.fold > 1:
        found.append(Memory(shape.rows, row.multipliers * row.sum_width, row.slots * row.fold, asynchronous=True))
    leaving_width = max(matrix.product.product.width for matrix in program.matrices)
    forms = pair_forms(program, row, loadable=loadable).forms or [None] * row.multipliers
    pairs = len(shape.couples) * shape.columns
    products = [Product(shape.lanes - (2 * pairs if form else 0), a, b)
                for form, (a, b) in zip(forms, row.widths, strict=True)]
    made = guarded([Memory(shape.lanes, k * row.weight_width, program.cycles, writable=False),
                    Memory(shape.chains, chain_width(program), len(program.passes) * shape.slots, writable=False)],
                   shape.protection)
    products, exact = [each for each in products if each.copies], row.multiplier == EXACT
    made += Parts(found, products if exact else [],
                 [Transform(shape.chains, k, leaving_width)],
                 [Product(pairs, form.word, form.data) for form in forms if form],
                 approximate=[] if exact else [Approximate(*each, row.multiplier) for each in products])
    return made.loadable if loadable else made


def engine_parts(program: Program, banks: BankShape, *, loadable: bool) -> Parts:
    """The parts of a `circulant.hw.array.engine.Engine` and of its `RowBuffers`: the array, the banks, the rows, the
    program, which is fixed even where images are ``loadable``."""
    found = array_parts(program, loadable=loadable) if program.whole is program else Parts()
    k = program.matrices[0].product.block_size
    found.memories.append(Memory(program.shape.columns, k * banks.width, banks.depth))
    found.transforms.append(Transform(banks.aside, k, banks.x.spectrum.width))
    if banks.h is not None:
        found.transforms.append(Transform(banks.own, k, banks.h.spectrum.width))
    for matrix in program.matrices:
        places = matrix.places(program.shape)
        found.memories.append(
            Memory(len(matrix.kinds) * places.banks, k * matrix.product.output.width, 2 * places.depth))
    words = Memory(1, program_word(program).size, sum(map(len, program.sequences)), writable=False)
    return (found.loadable if loadable else found) + guarded([words], program.shape.protection)


def engine_images(name: str, program: Program) -> list[Image]:
    """The memories with given contents of a `circulant.hw.array.engine.Engine`."""
    own = array_images(name, program) if program.whole is program else []
    return [*own, program_image(program, f"{name}_program")]


def queue_memory(queue: Queue) -> Memory:
    """The memory of a `circulant.hw.stream.pipeline.Queue`."""
    return Memory(1, Shape.cast(queue.o.payload.shape()).width, queue.depth - 1)
