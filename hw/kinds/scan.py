"""The state of a scan: a memory of blocks, read for each block that comes and written when what follows is known."""
from collections.abc import Callable, Sequence

from amaranth.hdl import Module, Mux, Signal, Value, signed
from amaranth.lib import memory, stream

from circulant.hw.array.parts import Memory, Parts, queue_memory
from circulant.hw.plan.ladders import Ladder, ladder, layer_entry, layer_multiplications, useful
from circulant.hw.plan.shared.controls import Piped, Waits
from circulant.hw.plan.stream_plan import ValuesPlan, values_entry
from circulant.hw.stream.pipeline import LEVELS, Queue, block, delay
from circulant.hw.unit import Site
from circulant.sim.design import LayerEntry
from circulant.sim.kinds.scan import Scan
from circulant.sim.refusal import Refusal

__all__ = ["ScanControl", "State", "require_fixed", "with_a_state"]


class State:
    """State, queue and control of a scan.

    Parameters:
        k: values of a block.
        latency: cycles from a block that comes to the state behind it, of which the first one reads.
    """

    def __init__(self, layer: Scan, *, k: int, latency: int) -> None:
        self._layer, self._k, self._latency, self._beats = layer, k, latency, -(-layer.inputs // k)
        self.queue = Queue(block(k, layer.output_format.width), depth=latency + 3, prompt=True)

    @property
    def parts(self) -> Parts:
        return Parts([Memory(1, self._k * self._layer.output_format.width, self._beats), queue_memory(self.queue)])

    def add(self, m: Module, sources: Sequence[stream.Interface],
            follow: Callable[[int, Sequence[Value]], Value]) -> Value:
        """Add the logic; returns the number of the block in its vector, for memories that are read with the state.

        Parameters:
            sources: streams of blocks, of each of which one is taken at a time.
            follow: from the number of a value in the block, and the states a cycle after the block was taken, to the
                state behind it, ``latency − 2`` cycles later.
        """
        layer, k, beats, queue, latency = self._layer, self._k, self._beats, self.queue, self._latency
        m.submodules.queue = queue
        m.submodules.states = states = memory.Memory(
            shape=k * layer.output_format.width, depth=max(2, beats), init=[])
        read = states.read_port()
        write = states.write_port()

        # A block is taken when the queue has room for all under way, and the state behind the same block of the step
        # before is there: steps of fewer blocks than ``latency`` wait.
        promised = Signal(range(queue.depth + 1))
        beat = Signal(range(max(2, beats)))
        waits = Signal(range(max(2, latency)))
        ends = beat == beats - 1
        moves = Signal()
        valid: Value = sources[0].valid
        for source in sources[1:]:
            valid = valid & source.valid
        m.d.comb += [moves.eq(valid & (promised < queue.depth) & (waits == 0)),
                     *(source.ready.eq(moves) for source in sources)]
        m.d.sync += promised.eq(promised + moves - (queue.o.valid & queue.o.ready))
        with m.If(waits != 0):
            m.d.sync += waits.eq(waits - 1)
        with m.If(moves):
            m.d.sync += beat.eq(Mux(ends, 0, beat + 1))
            if beats < latency:
                with m.If(ends):
                    m.d.sync += waits.eq(latency - beats)

        # The state, zero in the first step of a sequence.
        begins = Signal(init=1)
        last = sources[0].payload.last
        with m.If(moves & ends):
            m.d.sync += begins.eq(last)
        m.d.comb += [read.addr.eq(beat), read.en.eq(moves)]
        first = delay(m, begins, 1, name="first")
        made, width = [], layer.output_format.width
        before = [Signal(signed(width), name=f"state_{j}") for j in range(k)]
        for j, state in enumerate(before):
            m.d.comb += state.eq(Mux(first, 0, read.data.word_select(j, width)))
            value = follow(j, before)
            behind = (beats - 1) * k + j >= layer.inputs
            made.append(Mux(delay(m, ends, latency - 1, name=f"behind_{j}"), 0, value) if behind else value)

        # It is written, and leaves.
        there = delay(m, moves, latency - 1, name="there", reset_less=False)
        m.d.comb += [write.en.eq(there), write.addr.eq(delay(m, beat, latency - 1, name="place")),
                     *(write.data.word_select(j, width).eq(value) for j, value in enumerate(made)),
                     queue.i.valid.eq(there), queue.i.payload.last.eq(delay(m, last, latency - 1, name="last")),
                     *(queue.i.payload.data[j].eq(value) for j, value in enumerate(made))]
        return beat


class ScanControl:
    """The handshakes of a scan, see `circulant.hw.plan.shared.controls.Control`.

    Parameters:
        k, latency: as of `State`.
        depths: words of the queues in front of it.
    """

    def __init__(self, layer: Scan, *, k: int, latency: int, depths: Sequence[int] = ()) -> None:
        self._queues, self._scanned = [Waits(depth) for depth in depths], Piped(latency - 1, latency + 3)
        self._beats, self._beat, self._left, self._rest = -(-layer.inputs // k), 0, 0, latency

    @property
    def offers(self) -> bool:
        return self._scanned.offers

    @property
    def takes(self) -> Sequence[bool]:
        return [each.room for each in self._queues] or (self._scanned.room and not self._left,)

    def edge(self, shown: Sequence[bool], leaves: bool) -> None:
        there = all(each.offers for each in self._queues) if self._queues else shown[0]
        moves = there and self._scanned.room and not self._left
        for each, come in zip(self._queues, shown, strict=False):
            each.move(come and each.room, moves)
        self._scanned.edge((moves,), leaves)
        self._left = max(0, self._left - 1)
        if moves:
            self._beat = (self._beat + 1) % self._beats
            self._left = self._left if self._beat else max(0, self._rest - self._beats)

    def state(self) -> tuple[object, ...]:
        return self._beat, self._left, *self._scanned.state(), *(each.state() for each in self._queues)


def require_fixed(layer: Scan, site: Site) -> None:
    """
    Raises:
        Refusal: when the design is reloadable.
    """
    if site.config is not None:
        raise Refusal(f"Layer {layer.name!r} keeps a state that a reloadable design cannot exchange; leave "
                      "hardware.reloadable out")


def with_a_state(kind: type[Scan], latency: int, products: int = 1) -> None:
    """Register the plans of a scan, which takes some values of a step in a cycle, each with as many multipliers."""
    def those(layer: Scan, *, streams: int, count: int, levels: int = LEVELS) -> Ladder:
        if streams > 1:
            raise Refusal(f"Layer {layer.name!r} keeps the state of one sequence, but {streams} are interleaved; set "
                          "hardware.streams to 1")
        sizes = [1 << n for n in range(products - 1, (layer.inputs - 1).bit_length() + 1)]
        return Ladder([(each,) for each in useful([
            ValuesPlan(size, max(latency, -(-layer.inputs // size)), size * products) for size in sizes])])

    def each(layer: Scan, count: int = 1, plan: ValuesPlan | None = None) -> int:
        return layer.inputs * products * count

    def entry(layer: Scan, plan: ValuesPlan) -> LayerEntry:
        waits = plan.cycles > -(-layer.inputs // plan.elements)
        return values_entry(layer, plan, "latency: each step waits for the state of the one before" if waits
                            else "some values in each cycle")

    ladder.register(kind, those)
    layer_multiplications.register(kind, each)
    layer_entry.register(kind, entry)
