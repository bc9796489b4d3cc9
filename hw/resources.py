"""What a design takes of a device, from its plan alone: every memory, every product, hence block RAMs and DSP blocks.

Where a memory lies is not up to a tool: `target.ram_style` says it. How many block RAMs it fills there follows from
their geometry. Held to the Verilog by the tests, and to Yosys by ``python -m benchmarks synthesis``.
"""
import gc
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from amaranth.hdl import UnusedElaboratable

from circulant.hw.arith.activation import table_widths
from circulant.hw.array.banks import BankShape
from circulant.hw.array.layer_programs import layer_program
from circulant.hw.array.parts import Memory, Parts, Product, array_parts
from circulant.hw.array.sequencer import program_word
from circulant.hw.emit.inventory import Inventory
from circulant.hw.layers.bidirectional import SLACK
from circulant.hw.layers.cells import CandidateCell, Cell, GruCell, ResetCell, cells_of
from circulant.hw.layers.recurrent import bank_shape
from circulant.hw.layers.scale import ScaleLayer
from circulant.hw.plan.conv_plan import ScalePlan
from circulant.hw.plan.families import FAMILIES
from circulant.hw.plan.layer_plan import LayerPlan, PairPlan
from circulant.hw.plan.plan import Plan, repeats
from circulant.hw.top import Top
from circulant.sim.arith.activation import Pwl
from circulant.sim.golden.bidirectional import Bidirectional
from circulant.sim.golden.gru import Gru
from circulant.sim.golden.linear import Linear
from circulant.sim.golden.lstm import Lstm
from circulant.sim.golden.network import Layer, Network
from circulant.sim.golden.scale import Scale

__all__ = ["Prediction", "inventory", "memories", "parts", "predict", "products"]


@dataclass(frozen=True)
class Prediction:
    """DSP blocks and block RAMs, the latter in the unit of the data sheets: half a RAMB36 is a RAMB18."""

    dsps: int
    block_rams: float


def predict(network: Network, plans: Sequence[Plan], family: str, *, max_steps: int = 128,
            reloadable: bool = False) -> Prediction:
    """What a network takes of a device of a family, as ``generate`` makes it with ``plans`` and these options."""
    found = FAMILIES[family].demand(inventory(network, plans, max_steps=max_steps, reloadable=reloadable))
    return Prediction(found.dsps, found.block_rams)


def inventory(network: Network, plans: Sequence[Plan], *, max_steps: int = 128, reloadable: bool = False) -> Inventory:
    """The products and memories of `parts` as they are counted in a design; its logic is not foreseen."""
    made, found = parts(network, plans, max_steps=max_steps, reloadable=reloadable), Inventory()
    for count, a, b in made.products:
        found.products[max(a, b), min(a, b)] += count
    for memory in made.memories:
        if memory.copies:
            found.memories[memory.depth, memory.width, memory.style] += memory.copies
    return found


def parts(network: Network, plans: Sequence[Plan], *, max_steps: int = 128, reloadable: bool = False) -> Parts:
    """Every memory and every product of a network, as ``generate`` makes it with ``plans`` and these options.

    Raises:
        Refusal: as `circulant.hw.top.Top`, for a network over images.
    """
    found = Parts()
    keeps = reloadable and not any(isinstance(layer, Bidirectional) for layer in network.layers)
    over_images = network.flow.grid is not None
    given = _unit_parts(network, plans) if over_images else [None] * len(network.layers)
    steps = max(2, *repeats(network)) if over_images else max_steps
    for layer, plan, unit in zip(network.layers, plans, given, strict=True):
        if isinstance(layer, Linear | Gru | Lstm | Bidirectional):
            found += Parts(memories(layer, plan, max_steps=steps, reloadable=reloadable), products(layer, plan))
        elif isinstance(layer, Scale) and unit is None:
            assert isinstance(plan, ScalePlan)
            found += ScaleLayer(layer, elements=plan.elements).parts
        elif unit is not None:
            found += unit
        if keeps and isinstance(layer, Gru | Lstm):
            k = layer.gates.block_size
            kept = Memory(1, k * layer.output_format.width, plan.streams * -(-layer.outputs // k))
            found += Parts([kept])  # to be saved, and restored from
    return found


def _unit_parts(network: Network, plans: Sequence[Plan]) -> list[Parts | None]:
    """Of the units over images; None of those whose plan says it. Amaranth warns of units that nobody elaborates when
    they are collected, which therefore happens here."""
    collects = gc.isenabled()
    gc.disable()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnusedElaboratable)
            found = [getattr(unit, "parts", None) for unit in Top(network, plans).units]
            gc.collect(0)
        return found
    finally:
        if collects:
            gc.enable()


def memories(layer: Layer, plan: Plan, *, max_steps: int = 128, reloadable: bool = False) -> list[Memory]:
    """All memories of a recurrent or fully connected layer; ``max_steps`` counts where it is bidirectional.

    Parameters:
        reloadable: whether all images but the program can be written.
    """
    if isinstance(plan, PairPlan):
        assert isinstance(layer, Bidirectional)
        return [*memories(layer.forward, plan.forward, reloadable=reloadable),
                *memories(layer.backward, plan.backward, reloadable=reloadable), *_sequences(layer, max_steps)]
    assert isinstance(layer, Linear | Gru | Lstm) and isinstance(plan, LayerPlan)
    program = layer_program(layer, plan.shape, plan.spacing)
    k, shape = program.matrices[0].product.block_size, plan.shape
    banks = (BankShape(shape.columns, layer.product) if isinstance(layer, Linear)
             else bank_shape(layer, columns=shape.columns, streams=plan.streams))
    blocks, waiting = -(-layer.outputs // k), 1 if isinstance(layer, Linear) else plan.streams
    found = [
        *array_parts(program).memories,
        Memory(shape.columns, k * banks.width, banks.depth),
        Memory(1, k * layer.output_format.width + 1, max(3, (2 + waiting) * blocks) - 1),
    ]
    for matrix in program.matrices:
        cut = matrix.banks(shape.chains)
        found.append(Memory(len(matrix.kinds) * cut, k * matrix.product.output.width, 2 * -(-matrix.blocks // cut)))
    if isinstance(layer, Gru | Lstm):
        found += _pointwise(layer, plan)
    if reloadable:
        found = [each._replace(writable=each.writable or each.style == "logic") for each in found]
    return [*found, Memory(1, program_word(program).size, program.cycles, writable=False)]


def _sequences(layer: Bidirectional, steps: int) -> Iterator[Memory]:
    """What turns sequences round, and the queue of those that wait."""
    k = max(each.gates.block_size for each in layer.directions.values())
    yield Memory(1, k * layer.input_format.width, 2 * steps * -(-layer.inputs // k))
    if layer.returns == "sequence":
        width = k * layer.output_format.width
        yield Memory(1, width + 1, (2 * steps + SLACK) * -(-layer.forward.outputs // k))
        yield Memory(1, width, 2 * steps * -(-layer.backward.outputs // k))


def _pointwise(layer: Gru | Lstm, plan: LayerPlan) -> Iterator[Memory]:
    k = layer.gates.block_size
    blocks = -(-layer.hidden // k)
    for cell in cells_of(layer):
        for width in cell.memories(layer).values():
            yield Memory(1, k * width, plan.streams * blocks)
        for pwl in _activations(cell, layer):
            yield Memory(plan.elements, sum(table_widths(pwl)), len(pwl.slope), writable=False)
    if isinstance(layer, Lstm) and layer.peephole is not None:
        yield Memory(1, 3 * k * layer.peephole_format.width, blocks, writable=False)


def _activations(cell: type[Cell], layer: Gru | Lstm) -> list[Pwl]:
    if isinstance(layer, Lstm):
        return [layer.sigmoid] * 3 + [layer.tanh, layer.tanh_cell]
    return {GruCell: [layer.sigmoid] * 2 + [layer.tanh], ResetCell: [layer.sigmoid] * 2,
            CandidateCell: [layer.tanh]}[cell]


def products(layer: Layer, plan: Plan) -> list[Product]:
    """The products of two variables that a recurrent or fully connected layer makes in a cycle."""
    if isinstance(plan, PairPlan):
        assert isinstance(layer, Bidirectional)
        return [*products(layer.forward, plan.forward), *products(layer.backward, plan.backward)]
    assert isinstance(layer, Linear | Gru | Lstm) and isinstance(plan, LayerPlan)
    found = array_parts(layer_program(layer, plan.shape, plan.spacing)).products
    if not isinstance(layer, Gru | Lstm):
        return found
    pairs = [(pwl.slope_format.width, pwl.input_bits if pwl.method == "pwl" else pwl.cell_bits + 1)
             for cell in cells_of(layer) for pwl in _activations(cell, layer)]
    gate = layer.sigmoid.output.width
    if isinstance(layer, Lstm):
        cell = layer.cell.width
        pairs += [(gate, cell), (gate, gate), (gate, gate)]
        if layer.peephole is not None:
            pairs += [(layer.peephole_format.width, cell)] * 3
    else:
        pairs += [(gate, layer.pre_format.width if layer.reset == "after" else gate), (gate, gate + 1)]
    return found + [Product(plan.elements, a, b) for a, b in pairs]
