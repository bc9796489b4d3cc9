"""The spectral engine: vectors in, rows of pre-activations out. Every layer is one of these and what it does with rows.

    i ───► banks ───► array ───► chains ───► o[0], o[1], …
    own ─►  ▲          ▲
            └ sequencer┘◄ dispatch

Nothing in it waits for anything but a step's input at its start and room for its output; what comes when follows from
the program.
"""
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.array.bank_shape import BankShape
from circulant.hw.array.banks import Banks
from circulant.hw.array.dispatch import Dispatch, reload_members, steps_layout
from circulant.hw.array.either_dispatch import EitherDispatch
from circulant.hw.array.lanes import LaneArray
from circulant.hw.array.output_pipeline import chain_output
from circulant.hw.array.program import MAIN, SECOND, Program
from circulant.hw.array.row_buffers import RowBuffers
from circulant.hw.array.sequencer import Sequencer
from circulant.hw.array.shared_array import array_port
from circulant.hw.emit.target import Platform
from circulant.hw.reload.config import Config
from circulant.hw.stream.pipeline import connect

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
        steps, fetched, ends, skipped, leaves, busy, turn, resuming, restart, resume: see `Dispatch`.
    """

    def __init__(self, *, name: str, program: Program, banks: BankShape, blocks: int, room: int,
                 config: Config | None = None) -> None:
        self._name, self._program, self._config = name, program, config
        reloadable = config is not None
        self._banks = Banks(banks, reloadable=reloadable)
        kind = EitherDispatch if program.either else Dispatch
        self._dispatch = kind(program, banks=banks, blocks=blocks, room=room, reloadable=reloadable)
        super().__init__({
            "i": self._banks.signature.members["i"],
            "own": self._banks.signature.members["own"],
            "o": Out(chain_output(program.whole)).array(program.shape.chains),
            **({"array": Out(array_port(program.whole))} if program.whole is not program else {}),
            "steps": Out(steps_layout(banks.streams, blocks=blocks, room=room)),
            "fetched": In(1), "ends": In(1), "skipped": In(1), "leaves": In(1),
            **(reload_members(banks.streams) if reloadable else {}),
        })

    def rows(self, m: Module, *, stage: int) -> RowBuffers:
        """Memories for the rows of a stage, connected; not yet a submodule."""
        rows = RowBuffers(self._program, stage=stage)
        for chain, taken in zip(self.o, rows.i, strict=True):
            wiring.connect(m, chain, taken)
        return rows

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        program, banks, dispatch = self._program, self._banks, self._dispatch
        shape = banks.shape
        m.submodules.banks, m.submodules.dispatch = banks, dispatch
        if program.whole is program:
            m.submodules.array = array = LaneArray(name=self._name, program=program, config=self._config)
            chains = list(array.o)
        else:
            array, chains = self.array, [getattr(self.array, f"o_{c}") for c in range(program.shape.chains)]
        m.submodules.sequencer = sequencer = Sequencer(
            program, depth=max(2, shape.depth), most=shape.most, image=f"{self._name}_program")

        # Streams and bundles: vectors in, commands, issues, rows out.
        connect(m, wiring.flipped(self.i), banks.i)
        wiring.connect(m, wiring.flipped(self.own), banks.own)
        wiring.connect(m, dispatch.go, sequencer.go)
        for name in sequencer.issue.signature.members:
            m.d.comb += getattr(array.issue, name).eq(getattr(sequencer.issue, name))
        for chain, given in zip(chains, self.o, strict=True):
            m.d.comb += [getattr(given, name).eq(getattr(chain, name)) for name in given.signature.members]
        if program.whole is not program:
            m.d.comb += [sequencer.grant.eq(array.grant), sequencer.free.eq(array.free)]

        # What each of them knows of the others: vectors that have come, columns to read, readings that end.
        ends = {command: sequencer.done & (sequencer.command == command) for command in range(3)}
        if program.last_reader is not None:
            input_ends, zero = ends[program.last_reader], sequencer.zero & (sequencer.command == MAIN)
        else:  # The command that follows reads both vectors.
            input_ends, zero = sequencer.done & (sequencer.command != SECOND) & ~sequencer.leads, (
                sequencer.zero & (sequencer.command != SECOND))
        m.d.comb += [
            dispatch.inputs.eq(banks.inputs), dispatch.last.eq(banks.last),
            dispatch.done.eq(sequencer.done), dispatch.command.eq(sequencer.command),
            dispatch.fetched.eq(self.fetched), dispatch.ends.eq(self.ends), dispatch.skipped.eq(self.skipped),
            dispatch.leaves.eq(self.leaves),
            self.steps.eq(dispatch.steps),
            sequencer.have.eq(banks.have), sequencer.second.eq(dispatch.second),
            banks.address.eq(sequencer.address), banks.group.eq(sequencer.group),
            banks.zero.eq(zero), banks.done_input.eq(input_ends),
            banks.done_h.eq(ends[MAIN] & ~sequencer.zero), banks.done_second.eq(ends[SECOND]),
            *(array.spectra[c][j].eq(banks.spectra[c][j]) for c in range(shape.columns) for j in range(shape.k)),
            array.second.eq(dispatch.second.bit_select(sequencer.command, 1)),
        ]

        # Whether a step can begin with its state.
        if isinstance(dispatch, EitherDispatch):
            m.d.comb += dispatch.state.eq(banks.have[0] >= shape.h_blocks)

        # The state of a reloadable design.
        if self._config is not None:
            m.d.comb += [
                self.busy.eq(dispatch.busy), self.turn.eq(dispatch.turn), self.resuming.eq(dispatch.resuming),
                dispatch.restart.eq(self.restart), dispatch.resume.eq(self.resume), banks.restart.eq(self.restart)]
        return m
