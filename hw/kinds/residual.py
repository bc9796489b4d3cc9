"""The sum of two branches: what the faster one gives waits until the other one has come.

How much may wait follows from the layers alone. An output pixel of a branch needs so many pixels of its input, those
that its windows see; when the other branch has had as many, it has given so many outputs at the most, and all that the
sum has not taken wait. A queue that holds them never keeps a pixel back that the slower branch needs: there is no
deadlock. It holds as many more as come while an output is on its way through the units of the other branch, which is
what their latencies add up to, so that nothing stalls.
"""
from collections.abc import Sequence
from functools import singledispatch

import numpy as np
from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.arith.decoder import tell, watches
from circulant.hw.array.parts import Memory, Parts
from circulant.hw.array.plans import ResidualPlan
from circulant.hw.emit.image import Image
from circulant.hw.emit.target import Platform
from circulant.hw.kinds.elementwise import DEPTH, combined
from circulant.hw.plan.ladders import Ladder, ladder, layer_entry, layer_multiplications, side_by_side_ladder
from circulant.hw.stream.join import fork
from circulant.hw.stream.link import into, link, values
from circulant.hw.stream.pipeline import LEVELS, PROMPT, block
from circulant.hw.stream.storage import DeepQueue
from circulant.hw.unit import FLYING, SLACK, Site, Timed, Unit, unit
from circulant.hw.unit import chain as units_of
from circulant.sim.arith.fixed import Integers
from circulant.sim.design import LayerEntry
from circulant.sim.figures import floor
from circulant.sim.golden.residual import Residual
from circulant.sim.golden.stages import Stage, flows
from circulant.sim.shape.layer import Windowed
from circulant.sim.shape.window import Flow, Grid

__all__ = ["ResidualLayer", "needed", "waiting"]

def needed(layers: Sequence[Stage], grid: Grid) -> Integers:
    """For each output pixel of a chain, in their order, how many pixels of its input must have come."""
    count = np.arange(1, grid[0] * grid[1] + 1)
    for layer in layers:
        last = last_seen(layer)
        count = np.maximum.accumulate(count if last is None else count[last])
    return count


@singledispatch
def last_seen(layer: Stage | Windowed) -> Integers | None:
    """For each output pixel of a layer the number of the last input pixel that it needs; None where it is the same."""
    return None


@last_seen.register
def _(layer: Windowed) -> Integers:
    seen = []
    for axis, outputs in enumerate(layer.output_grid):
        last = np.arange(outputs) * layer.window.stride[axis] + layer.window.extent[axis] - 1
        seen.append(np.clip(last - layer.window.padding[axis], -1, layer.grid[axis] - 1))
    # What sees nothing but padding above an image needs its first pixel; beside it, the lines above.
    rows, columns = seen[0][:, None], seen[1]
    return np.maximum(np.where(rows < 0, 0, rows * layer.grid[1] + columns), 0).reshape(-1)


@last_seen.register
def _(layer: Residual) -> Integers | None:
    if layer.grid is None:
        return None
    body, shortcut = (needed(chain, layer.grid) for chain in layer.branches.values())
    return np.maximum(body, shortcut) - 1


def waiting(layer: Residual) -> tuple[int, int]:
    """Output pixels of the body, and of the shortcut, that wait for the other one at the most; of vectors, all that the
    layers of the other one may have under way."""
    if layer.grid is None:
        return 1 + FLYING * len(layer.shortcut), 1 + FLYING * len(layer.body)
    body, shortcut = (needed(chain, layer.grid) for chain in layer.branches.values())
    before = np.arange(len(body))

    def ahead(mine: Integers, other: Integers) -> int:
        return int((np.searchsorted(mine, other, side="right") - before).max())

    return ahead(body, shortcut), ahead(shortcut, body)


class ResidualLayer(wiring.Component):
    """Images in, images out, or vectors; equals `sim.golden.residual.Residual`.

    Parameters:
        layer: the golden layer.
        k: values of a block that comes.
        body, shortcut: units of the branches, whose latencies say how much may wait.

    Members:
        i: stream of blocks of pixels.
        o: the same of the sum, in the blocks of the body, or where it has none of the shortcut.
        faults: of protected memories, see `circulant.hw.arith.decoder.FAULTS`.
    """

    def __init__(self, layer: Residual, *, k: int, body: Sequence[Unit], shortcut: Sequence[Unit]) -> None:
        self._layer, self._units = layer, (list(body), list(shortcut))
        self._k_in = k
        self._k = min((values(units[-1].o) if units else k for units in self._units),
                      key=lambda size: (size >= layer.outputs, size))
        super().__init__({"i": In(stream.Signature(block(k, layer.input_format.width))),
                          "o": Out(stream.Signature(block(self._k, layer.output_format.width))),
                          **watches(each for units in self._units for each in units)})

    @property
    def depths(self) -> tuple[int, int]:
        """Blocks that the queues behind the branches hold."""
        beats = -(-self._layer.outputs // self._k)
        behind_body, behind_shortcut = (each + DeepQueue.latency + beats for each in self._latencies)
        body, shortcut = waiting(self._layer)
        return body * beats + behind_shortcut, shortcut * beats + behind_body

    @property
    def _latencies(self) -> list[int]:
        """Cycles through the units of each branch. Between two of them the last block of a pixel follows the first."""
        found = []
        for chain, units in zip(self._layer.branches.values(), self._units, strict=True):
            blocks = [-(-layer.outputs // min(values(before.o), values(after.i)))
                      for layer, before, after in zip(chain, units, units[1:], strict=False)]
            found.append(sum(map(_through, units)) + sum(count - 1 for count in blocks))
        return found

    @property
    def latency(self) -> int:
        """Cycles from the last block of all that an output pixel needs to its first block, when nothing waits: the
        longer branch, its queue, the sum's queue."""
        return max(self._latencies) + DeepQueue.latency + PROMPT

    @property
    def parts(self) -> Parts:
        """Its own, and those of the units of both branches."""
        waits = [Memory(1, self._k * form.width + 1, depth)
                 for form, depth in zip(self._layer.formats, self.depths, strict=True)]
        own = Parts([*waits, Memory(1, self._k * self._layer.output_format.width + 1, DEPTH - 1)])
        return sum((unit.parts for units in self._units for unit in units), own)

    @property
    def images(self) -> list[Image]:
        return [image for units in self._units for unit in units for image in unit.images]

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        layer, k = self._layer, self._k
        tell(m, self, *(each for units in self._units for each in units))

        # Both branches, each with a queue that holds what waits for the other one.
        ends = []
        sinks = []
        for (name, chain), units, form, depth in zip(
                layer.branches.items(), self._units, layer.formats, self.depths, strict=True):
            size, width = layer.outputs, form.width
            entry = stream.Signature(self.i.payload.shape()).create(path=(f"{name}_in",))
            m.submodules[f"{name}_waits"] = queue = DeepQueue(block(k, width), depth=depth)
            if units:
                link(m, chain, units)
                into(m, entry, units[0].i, size=layer.inputs, width=layer.input_format.width, name=f"{name}_in")
            into(m, units[-1].o if units else entry, queue.i, size=size, width=width, name=f"{name}_out")
            ends.append(queue.o)
            sinks.append(entry)
        fork(m, wiring.flipped(self.i), sinks, name="branch")

        frac = max(form.frac for form in layer.formats)
        combined(m, ends, self.o, layer=layer, frac=frac, shifts=[frac - form.frac for form in layer.formats])
        return m


def _through(unit: Unit) -> int:
    return unit.latency if isinstance(unit, Timed) else SLACK


@unit.register
def _(layer: Residual, plan: ResidualPlan, site: Site) -> ResidualLayer:
    flow = Flow(layer.inputs, layer.grid, sequence=layer.grid is None and not site.single)
    body, shortcut = (units_of(chain, plans, Site(k=site.k), flow)
                      for chain, plans in ((layer.body, plan.body), (layer.shortcut, plan.shortcut)))
    return ResidualLayer(layer, k=site.k, body=body, shortcut=shortcut)


def _counts(layer: Residual) -> list[list[int]]:
    """For each layer of both branches the pixels of an image that come."""
    return [[flow.pixels for flow in flows(Flow(layer.inputs, layer.grid), chain)[:-1]]
            for chain in layer.branches.values()]


@ladder.register
def _(layer: Residual, *, streams: int, count: int, levels: int = LEVELS) -> Ladder:
    inner = [[rung[0] for rung in ladder(each, streams=streams, count=come).rungs]
             for chain, counts in zip(layer.branches.values(), _counts(layer), strict=True)
             for each, come in zip(chain, counts, strict=True)]
    body = len(layer.body)
    return Ladder([(ResidualPlan(rung[:body], rung[body:], streams),) for rung in side_by_side_ladder(inner)])


@layer_multiplications.register
def _(layer: Residual, count: int = 1, plan: ResidualPlan | None = None) -> int:
    return sum(layer_multiplications(each, come)
               for chain, counts in zip(layer.branches.values(), _counts(layer), strict=True)
               for each, come in zip(chain, counts, strict=True))


@layer_entry.register
def _(layer: Residual, plan: ResidualPlan) -> LayerEntry:
    body, shortcut = waiting(layer)
    return {"name": layer.name, "kind": layer.kind, "cycles": plan.cycles,
            "floor": floor(layer_multiplications(layer), plan.multipliers), "multipliers": plan.multipliers,
            "waiting": {"body": body, "shortcut": shortcut},
            "body": [*map(layer_entry, layer.body, plan.body)],
            "shortcut": [*map(layer_entry, layer.shortcut, plan.shortcut)]}
