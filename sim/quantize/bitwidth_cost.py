"""The cost of widths: memory for the weights, multipliers, and registers and adders on the way."""
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from circulant.sim.golden.network import Network
from circulant.sim.passes.bases import layer_bits, matrices
from circulant.sim.passes.bitwidths import Widths
from circulant.sim.refusal import Refusal

__all__ = ["CYCLONE_V", "DSPS", "GOWIN", "Cost", "Dsp", "CostModel", "tiles", "weight_bits",
           "weight_count"]

REGISTERS = 0.05
"""Share of the registers and adders; they cost little, but something."""


@dataclass(frozen=True)
class Dsp:
    """A multiplier of a device, and how many a product takes as Yosys makes it; measured, see docs/synthesis.md.

    The wider operand belongs to the wider port. One that is too wide is cut into parts from its low end.

    Parameters:
        wide, narrow: bits of its operands, signed.
        part: bits of every part of an operand but the highest, which has no sign.
        least: bits of both factors together from which on a product takes one; less is logic.
        narrowest: bits of a factor, or a part of one, of which fewer are logic.
        single: bits of a factor up to which a product takes one; two where it is wider. 0: always one.
    """

    wide: int
    narrow: int
    part: int
    least: int = 0
    narrowest: int = 2
    single: int = 0

    def blocks(self, a: int, b: int) -> int:
        """Multipliers of a product of a and b signed bits."""
        return sum((2 if self.single and max(x, y) > self.single else 1)
                   for x in self._parts(max(a, b), self.wide) for y in self._parts(min(a, b), self.narrow)
                   if x + y >= self.least and min(x, y) >= self.narrowest)

    def _parts(self, bits: int, port: int) -> list[int]:
        cuts = max(0, -(-(bits - port) // self.part))
        return [self.part] * cuts + [bits - cuts * self.part]


DSPS = {(27, 18): Dsp(27, 18, 17, 9), (25, 18): Dsp(25, 18, 17, 9), (18, 18): Dsp(18, 18, 18),
        (16, 16): Dsp(16, 16, 16, 11)}
"""By their ports: DSP48E2, DSP48E1, MULT18X18D, SB_MAC16."""

GOWIN = Dsp(18, 18, 18, narrowest=4)
"""MULT18X18 of a Gowin GW2A; of a MULT36X36, which Yosys takes for wider products, there are four."""

CYCLONE_V = Dsp(27, 27, 27, narrowest=4, single=18)
"""Half a DSP block of a Cyclone V: a product of 18 × 18 bits, or one of two that make 27 × 27 bits. Exact up to 28
bits; of wider operands it may be one too many."""


@dataclass(frozen=True)
class Cost:
    """The cost of a network, to be compared with another of the same shape.

    Parameters:
        memory: bits of the weights.
        multipliers: DSP blocks or, without their ports, bits of both factors multiplied: of all products of a step.
        registers: bits of the vectors, spectra, sums and rows of a step.
    """

    memory: float
    multipliers: float
    registers: float


@dataclass(frozen=True)
class _Matrix:
    path: str
    layer: str
    numbers: int
    products: int
    rows: int
    columns: int


class CostModel:
    """The cost of widths for one network, in parts of what its own formats cost.

    The weights of a layer are stored as wide as the widest of its matrices, as its array has one memory for each lane.

    Parameters:
        network: of the shape in question.
        memory_share: of the memory's part of the cost, the multipliers have the rest.
        ports: widths of the two factors of a DSP block; a wider product takes several. None where a product costs as
            much as its factors have bits.

    Raises:
        Refusal: when the share is not from 0 to 1.
    """

    def __init__(self, network: Network, start: Widths, *, memory_share: float = 0.5,
                 ports: tuple[int, int] | None = None) -> None:
        if not 0 <= memory_share <= 1:
            raise Refusal(f"memory_share must be from 0 to 1, not {memory_share!r}; the multipliers have the rest")
        self._share, self._ports = memory_share, ports
        self._matrices = [matrix for layer in network.layers for matrix in _matrices(layer)]
        self._start = self.bill(start)

    def bill(self, bits: Widths) -> Cost:
        memory = multipliers = registers = 0.0
        widest: dict[str, int] = {}
        for matrix in self._matrices:
            own = bits.of(matrix.path)
            widest[matrix.layer] = max(widest.get(matrix.layer, 0), own.weight_bits)
            multipliers += matrix.products * tiles(own.spectrum + 1, own.weight_bits + 1, self._ports)
            registers += matrix.columns * (own.spectrum + own.state + own.cell + own.twiddle_bits)
            registers += matrix.rows * (own.product + own.output)
        registers += bits.input * sum(matrix.columns for matrix in self._matrices[:1])
        memory = sum(float(matrix.numbers * widest[matrix.layer]) for matrix in self._matrices)
        return Cost(memory, multipliers, registers)

    def __call__(self, bits: Widths) -> float:
        """1 for the widths to start from."""
        now, then = self.bill(bits), self._start
        return (self._share * now.memory / then.memory + (1 - self._share) * now.multipliers / then.multipliers
                + REGISTERS * now.registers / then.registers) / (1 + REGISTERS)


def tiles(x: int, y: int, ports: tuple[int, int] | None) -> float:
    """DSP blocks of a product of ``x`` × ``y`` bits, with ``ports`` of `DSPS`; x · y without."""
    return float(x * y if ports is None else DSPS[ports].blocks(x, y))


def weight_bits(network: Network) -> int:
    """Bits of all weights as the circuit stores them: in a layer as wide as in the widest of its matrices, peepholes in
    a memory of their own. Gaps that a plan leaves in the memories are not counted; they depend on the multipliers."""
    return sum(layer_bits(layer) for layer in network.layers)


def weight_count(network: Network) -> int:
    """Numbers that stand in the weight memories, without peepholes."""
    return sum(_own_weights(layer) for layer in network.layers)


def dense_count(network: Network) -> int:
    """Numbers that the matrices would have if they were dense, padded to whole blocks."""
    return sum(product.weights.size * product.block_size for layer in network.layers
               for product in layer.products.values())


def _own_weights(layer: Any) -> int:
    scale = getattr(layer, "scale", None)
    return (0 if scale is None else scale.size) + sum(product.weights.size for product in layer.products.values())


def _matrices(layer: Any) -> Iterable[_Matrix]:
    """The matrices of a layer that is made of no other ones."""
    if (peephole := getattr(layer, "peephole", None)) is not None:
        yield _Matrix(f"{layer.name}.peephole", f"{layer.name}.peephole", peephole.size, products=peephole.size, rows=0,
                      columns=0)
    for path in matrices(layer):
        side = path.rpartition(".")[2]
        taken = [product for role, product in layer.products.items()
                 if role == side or (role.startswith("candidate_") and side == _vector(role))]
        yield _Matrix(path, layer.name, sum(each.weights.size for each in taken),
                      products=sum(each.multiplications for each in taken), rows=sum(each.rows for each in taken),
                      columns=taken[0].columns)


def _vector(role: str) -> str:
    """The matrix that a part of a GRU's candidate belongs to: that of x or that of h."""
    return {"candidate_input": "input_product", "candidate_recurrent": "recurrent_product"}[role]
