"""A bidirectional layer: two recurrent layers at work at the same time, the second one a sequence behind the first.

    i ─┬──────────────► forward ───────────► queue ─► join ─► o
       └─► (reverse) ─► backward ─► (reverse) ─────────┘

The backward layer begins when the last step of a sequence has come; by then the forward layer has begun with the next
one. What it returns for every step is turned round again, and the forward layer's outputs wait for it.
"""
from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.arith.decoder import tell, watches
from circulant.hw.array.parts import Memory, Parts
from circulant.hw.array.plans import PairPlan
from circulant.hw.array.shared_array import array_port
from circulant.hw.emit.image import Image
from circulant.hw.emit.target import Platform
from circulant.hw.kinds.recurrent import RecurrentLayer
from circulant.hw.plan.ladders import (
    Ladder,
    Rung,
    ladder,
    layer_entry,
    layer_multiplications,
    side_by_side_ladder,
    useful,
)
from circulant.hw.plan.layer_plan import candidates, exact
from circulant.hw.plan.shared.directions import SLACK
from circulant.hw.stream.join import Join, fork
from circulant.hw.stream.pipeline import LEVELS, block, connect
from circulant.hw.stream.reverse import Reverse
from circulant.hw.stream.storage import DeepQueue
from circulant.hw.stream.width_converter import WidthConverter
from circulant.hw.unit import Site, loadable, unit
from circulant.sim import figures
from circulant.sim.design import LayerEntry
from circulant.sim.golden.bidirectional import Bidirectional
from circulant.sim.refusal import Refusal

__all__ = ["BidirectionalLayer"]

class BidirectionalLayer(wiring.Component):
    """Sequences in, outputs of both directions side by side out; equals `sim.golden.bidirectional.Bidirectional`.

    Sequences of equal lengths follow each other as fast as the slower one of the two layers takes them. Where they
    differ much, a layer may wait, but not for ever: what holds up the input is a sequence that is already whole.

    Parameters:
        layer: the golden layer.
        forward, backward: its two directions, of one stream each.
        steps: of a sequence at the most; a longer one has to be cut before, see `circulant.hw.stream.reverse.Limit`.

    Members:
        i: stream of blocks of x, of the greater block size of the two.
        o: stream of blocks of the outputs, of that block size too, for the last or for every step.
        array_forward, array_backward: where the array is shared, see `array_port`.
        faults: of protected memories, see `circulant.hw.arith.decoder.FAULTS`.
    """

    def __init__(self, layer: Bidirectional, *, forward: RecurrentLayer, backward: RecurrentLayer, steps: int) -> None:
        self._layer, self._steps = layer, steps
        self._directions = {"forward": forward, "backward": backward}
        self._k = {name: unit.i.payload.shape().members["data"].length for name, unit in self._directions.items()}
        self._most = k = max(self._k.values())
        self._arrays = {f"array_{name}": unit for name, unit in self._directions.items()
                        if unit.program.whole is not unit.program}
        super().__init__({"i": In(stream.Signature(block(k, layer.input_format.width))),
                          "o": Out(stream.Signature(block(k, layer.output_format.width))),
                          **{name: Out(array_port(unit.program.whole)) for name, unit in self._arrays.items()},
                          **watches(self._directions.values())})

    @property
    def parts(self) -> Parts:
        """The parts of both directions, of what turns sequences round, and of the queue of those that wait."""
        layer, k, steps = self._layer, self._most, self._steps
        own = [Memory(1, k * layer.input_format.width, 2 * steps * -(-layer.inputs // k))]
        if layer.returns == "sequence":
            width = k * layer.output_format.width
            own += [Memory(1, width + 1, (2 * steps + SLACK) * -(-layer.forward.outputs // k)),
                    Memory(1, width, 2 * steps * -(-layer.backward.outputs // k))]
        return sum((each.parts for each in self._directions.values()), Parts(own))

    @property
    def images(self) -> list[Image]:
        return [image for each in self._directions.values() for image in each.images]

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        layer, k, steps = self._layer, self._most, self._steps

        # The input to both directions, turned round for the backward one.
        m.submodules.reversed_input = turned = Reverse(
            self.i.payload.shape(), blocks=-(-layer.inputs // k), steps=steps)
        m.submodules.forward, m.submodules.backward = self._directions.values()
        tell(m, self, *self._directions.values())
        fork(m, wiring.flipped(self.i), [self._into(m, "forward"), turned.i], name="i")
        connect(m, turned.o, self._into(m, "backward"))
        for name, own in self._arrays.items():
            wiring.connect(m, own.array, wiring.flipped(getattr(self, name)))

        # Their outputs: every step's turned round again, while those of the forward layer wait.
        first, second = self._out_of(m, "forward"), self._out_of(m, "backward")
        if layer.returns == "sequence":
            shape, blocks = self.o.payload.shape(), -(-layer.forward.outputs // k)
            m.submodules.waiting = waiting = DeepQueue(shape, depth=(2 * steps + SLACK) * blocks)
            m.submodules.reversed_output = again = Reverse(
                shape, blocks=-(-layer.backward.outputs // k), steps=steps)
            connect(m, first, waiting.i)
            connect(m, second, again.i)
            first, second = waiting.o, again.o

        # Side by side.
        m.submodules.join = join = Join(
            sizes=(layer.forward.outputs, layer.backward.outputs), width=layer.output_format.width, k=k)
        connect(m, first, join.first)
        connect(m, second, join.second)
        connect(m, join.o, wiring.flipped(self.o))
        return m

    def _into(self, m: Module, direction: str) -> stream.Interface:
        """The input of a direction, in blocks of the layer's input."""
        unit, layer = self._directions[direction], self._layer
        return self._reblocked(m, f"{direction}_input", layer.inputs, width=layer.input_format.width,
                               k_in=self._most, k_out=self._k[direction], sink=unit.i)

    def _out_of(self, m: Module, direction: str) -> stream.Interface:
        """The output of a direction, in blocks of the layer's output."""
        unit, layer = self._directions[direction], self._layer.directions[direction]
        return self._reblocked(m, f"{direction}_output", layer.outputs, width=layer.output_format.width,
                               k_in=self._k[direction], k_out=self._most, source=unit.o)

    def _reblocked(self, m: Module, name: str, size: int, width: int, k_in: int, k_out: int, *,
                   source: stream.Interface | None = None,
                   sink: stream.Interface | None = None) -> stream.Interface:
        if k_in == k_out:
            return source or sink
        m.submodules[name] = width_converter = WidthConverter(size=size, width=width, k_in=k_in, k_out=k_out)
        if sink is not None:
            connect(m, width_converter.o, sink)
            return width_converter.i
        connect(m, source, width_converter.i)
        return width_converter.o


@unit.register
def _(layer: Bidirectional, plan: PairPlan, site: Site) -> BidirectionalLayer:
    assert site.steps is not None
    forward, backward = unit(layer.forward, plan.forward, site), unit(layer.backward, plan.backward, site)
    assert isinstance(forward, RecurrentLayer) and isinstance(backward, RecurrentLayer)
    return BidirectionalLayer(layer, forward=forward, backward=backward, steps=site.steps)


@loadable.register
def _(layer: Bidirectional) -> bool:
    return True


@ladder.register
def _(layer: Bidirectional, *, streams: int, count: int, levels: int = LEVELS) -> Ladder:
    if streams > 1:
        raise Refusal(f"Sequences can only be interleaved if all layers run forward, but layer {layer.name!r} is "
                      f"bidirectional; set hardware.streams to 1, not {streams}")
    found = [list(candidates(each, streams, levels)) for each in layer.directions.values()]
    blocks = -(-layer.outputs // max(each.gates.block_size for each in layer.directions.values()))

    def settle(rung: Rung, spare: int) -> PairPlan:
        forward, backward = (exact(each, plans, chosen.multipliers + spare // 2) for each, plans, chosen in zip(
            layer.directions.values(), found, rung, strict=True))
        return PairPlan(forward, backward, blocks)

    return Ladder(side_by_side_ladder([useful(each) for each in found]), settle)


@layer_multiplications.register
def _(layer: Bidirectional, count: int = 1, plan: PairPlan | None = None) -> int:
    return sum(map(layer_multiplications, layer.directions.values()))


@layer_entry.register
def _(layer: Bidirectional, plan: PairPlan) -> LayerEntry:
    forward, backward = (layer_entry(each, getattr(plan, name)) for name, each in layer.directions.items())
    floor = figures.floor(layer_multiplications(layer), plan.multipliers)
    if plan.forward.sharing is not None:  # Both directions have the whole array.
        floor = forward["floor"] + backward["floor"]
    return {"name": layer.name, "kind": layer.kind, "cycles": plan.cycles, "floor": floor, "forward": forward,
            "backward": backward}
