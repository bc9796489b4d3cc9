"""The spectral engine: vectors in, rows of pre-activations out. Every layer is one of these and what it does with rows.

    i ───► banks ───► array ───► chains ───► o[0], o[1], …
    own ─►  ▲          ▲
            └ sequencer┘◄ dispatch

Nothing in it waits for anything but a step's input at its start and room for its output; what comes when follows from
the program.
"""
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from circulant.hw.arith.decoder import tell, watched
from circulant.hw.array.bank_shape import BankShape
from circulant.hw.array.banks import Banks
from circulant.hw.array.dispatch import Dispatch, under_way
from circulant.hw.array.either_dispatch import EitherDispatch
from circulant.hw.array.lanes import LaneArray
from circulant.hw.array.output_pipeline import chain_output
from circulant.hw.array.program import AHEAD, MAIN, SECOND, Program
from circulant.hw.array.row_buffers import RowBuffers
from circulant.hw.array.sequencer import Sequencer, work
from circulant.hw.array.shared_array import array_port
from circulant.hw.emit.target import Platform
from circulant.hw.reload.config import Config
from circulant.hw.stream.pipeline import Bundle, connect

__all__ = ["Engine"]


class Engine(wiring.Component):
    """Banks, array, and what makes them work.

    Parameters:
        name: of the layer; names the memory images.
        program: the issues of a step, and the array.
        banks: the vectors.
        blocks: of a step's output.
        room: blocks of output that there is room for behind the layer.
        config: the port of a reloadable design; None otherwise.

    Members:
        i: stream of blocks of x; a step takes as many as the inputs fill, the last one of a sequence is marked.
        own: see `Banks`.
        o: rows of each chain, see `chain_output`.
        array: where the array is shared, see `array_port`.
        faults: of protected memories, see `circulant.hw.arith.decoder.FAULTS`.
        steps, fetched, ends, skipped, leaves, busy, turn, resuming, restart, resume: see `Dispatch`.
    """

    def __init__(self, *, name: str, program: Program, banks: BankShape, blocks: int, room: int,
                 config: Config | None = None) -> None:
        self._name, self._program, self._config = name, program, config
        reloadable = config is not None
        self._banks = Banks(banks, reloadable=reloadable)
        self._under_way = under_way(banks.streams, blocks=blocks, room=room, reloadable=reloadable)
        kind = EitherDispatch if program.either else Dispatch
        self._dispatch = kind(program, banks=banks, blocks=blocks, room=room, reloadable=reloadable)
        super().__init__({
            "i": self._banks.signature.members["i"],
            "own": self._banks.signature.members["own"],
            "o": Out(chain_output(program.whole)).array(program.shape.chains),
            **({"array": Out(array_port(program.whole))} if program.whole is not program else {}),
            **self._under_way.members,
            **watched(program.shape.protection),
        })

    def rows(self, m: Module, *, stage: int) -> RowBuffers:
        """Memories for the rows of a stage, connected; not yet a submodule."""
        rows = RowBuffers(self._program, stage=stage)
        for chain, taken in zip(self.o, rows.i, strict=True):
            wiring.connect(m, chain, taken)
        return rows

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        program, banks, dispatch, shape = self._program, self._banks, self._dispatch, self._banks.shape
        m.submodules.banks, m.submodules.dispatch = banks, dispatch
        array, chains = self._array(m)
        m.submodules.sequencer = sequencer = Sequencer(
            program, depth=max(2, shape.depth), most=shape.most, image=f"{self._name}_program")

        tell(m, self, sequencer, array)

        # Vectors in, commands, issues, rows out.
        connect(m, wiring.flipped(self.i), banks.i)
        wiring.connect(m, wiring.flipped(self.own), banks.own)
        wiring.connect(m, dispatch.go, sequencer.go)
        wiring.connect(m, sequencer.issue, array.issue)
        for chain, given in zip(chains, self.o, strict=True):
            wiring.connect(m, chain, wiring.flipped(given))

        # What each of them knows of the others: inputs that wait, commands that end, steps under way.
        for giver, taker, signature in ((banks, dispatch, shape.waiting), (sequencer, dispatch, work())):
            wiring.connect(m, Bundle(giver, signature), Bundle(taker, signature.flip()))
        wiring.connect(m, Bundle(dispatch, self._under_way), Bundle(self, self._under_way.flip()))
        m.d.comb += [
            sequencer.have.eq(banks.have), banks.address.eq(sequencer.address), banks.group.eq(sequencer.group),
            *(array.spectra[c][j].eq(banks.spectra[c][j]) for c in range(shape.columns) for j in range(shape.k)),
            array.second.eq(dispatch.second.bit_select(sequencer.command, 1)),
        ]
        if program.whole is not program:
            m.d.comb += [sequencer.grant.eq(array.grant), sequencer.free.eq(array.free)]
        if isinstance(dispatch, EitherDispatch):
            m.d.comb += dispatch.state.eq(banks.have[0] >= shape.h_blocks)
        if self._config is not None:
            self._config.working.append(self.busy)
            m.d.comb += [banks.restart.eq(self.restart), dispatch.hold.eq(self._config.hold),
                         dispatch.undo.eq(self._config.settles)]
            if isinstance(dispatch, EitherDispatch):
                m.d.comb += [dispatch.came.eq(banks.have[2] != 0), banks.again.eq(dispatch.again)]
        self._end_readings(m, sequencer)
        return m

    def _array(self, m: Module) -> tuple[wiring.PureInterface, list[wiring.PureInterface]]:
        """The array, or the port to a shared one, and its chains."""
        if self._program.whole is self._program:
            m.submodules.array = array = LaneArray(name=self._name, program=self._program, config=self._config)
            return array, list(array.o)
        port = wiring.flipped(self.array)
        return port, [getattr(port, f"o_{c}") for c in range(self._program.shape.chains)]

    def _end_readings(self, m: Module, sequencer: Sequencer) -> None:
        """Tell the banks which vectors the command at work reads, and when it has read them to their end."""
        banks, last = self._banks, self._program.last_reader
        ends = {command: sequencer.done & (sequencer.command == command) for command in range(3)}
        if last is not None:
            input_ends, zero = ends[last], sequencer.zero & (sequencer.command == MAIN)
            if banks.shape.h is not None and banks.shape.head % banks.shape.columns:
                zero |= sequencer.command == AHEAD  # Rows of the input alone end where the state begins.
        else:  # The command that follows reads both vectors.
            input_ends, zero = sequencer.done & (sequencer.command != SECOND) & ~sequencer.leads, (
                sequencer.zero & (sequencer.command != SECOND))
        m.d.comb += [banks.zero.eq(zero), banks.done_input.eq(input_ends),
                     banks.done_h.eq(ends[MAIN] & ~sequencer.zero), banks.done_second.eq(ends[SECOND])]
