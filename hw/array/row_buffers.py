"""Behind the chains: rows of the products are kept by gate until their whole block is there.

Every gate has a memory of its own, cut into banks where several chains carry rows of it, so that each memory is
written by one chain only. Two steps fit: while one is read, the next one may come.
"""
from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.array.issue_order import RowPlaces
from circulant.hw.array.output_pipeline import chain_output
from circulant.hw.array.program import Program
from circulant.hw.emit.profile import profile_of
from circulant.hw.emit.target import Platform
from circulant.hw.stream.pipeline import steps, when

__all__ = ["FETCH", "RowBuffers", "rows_latency"]

FETCH = 1
"""Cycles from ``fetch`` to the rows."""


def rows_latency(levels: int) -> int:
    """Cycles from the last row of a block to where the block can be fetched: none where the levels of logic allow two
    steps between two registers, so that a row is forwarded which is written as it is read."""
    return int(steps(levels) == 1)


class RowBuffers(wiring.Component):
    """The rows of all matrices of one stage; where ``gives`` of its array says so, several blocks are fetched at once.

    Parameters:
        program: the passes.
        stage: whose matrices are kept.

    Members:
        i: rows of each chain, see `chain_output`.
        fetch: read the next block, in a cycle with ``ready``.
        block: number of the block to fetch next, or of the blocks that are side by side.
        waiting: whole blocks that came and were not fetched.
        ready: a whole block waits.
        rows: for each gate the k values of the block that was fetched last, from the cycle after ``fetch`` on; of
            blocks side by side one behind the other.
    """

    def __init__(self, program: Program, *, stage: int) -> None:
        self._program = program
        self._chosen = [(n, matrix) for n, matrix in enumerate(program.matrices, program.place.matrices)
                        if matrix.stage == stage]
        product = self._chosen[0][1].product
        self._row = data.ArrayLayout(signed(product.output.width), product.block_size)
        self._gives = program.shape.gives
        self.blocks = -(-max(matrix.blocks for _, matrix in self._chosen) // self._gives)
        fetched = data.ArrayLayout(signed(product.output.width), self._gives * product.block_size)
        super().__init__({
            "i": In(chain_output(program.whole)).array(program.shape.chains),
            "fetch": In(1), "block": Out(range(max(2, self.blocks))),
            "waiting": Out(range(2 * self.blocks + 1)), "ready": Out(1),
            "rows": Out(data.StructLayout({kind: fetched for _, matrix in self._chosen for kind in matrix.kinds}))})

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        # Whole blocks that wait: those that come in this cycle, less one that is fetched. Blocks that are side by side
        # come in one cycle, so that the first of them counts for all.
        chains = self.i
        second = Signal()
        gates = next(matrix.gates for _, matrix in self._chosen if matrix.completes)
        firsts = [chain for n, chain in enumerate(chains) if n // gates % self._gives == 0]
        complete = Signal(len(firsts))
        m.d.comb += [
            bit.eq(chain.completes & Cat(chain.matrix == number for number, _ in self._chosen).any())
            for bit, chain in zip(complete, firsts, strict=True)]
        counts = Array(number.bit_count() for number in range(1 << len(firsts)))
        arriving = not rows_latency(self._program.shape.levels)
        m.d.sync += self.waiting.eq(self.waiting + counts[complete] - self.fetch)
        if arriving:
            m.d.comb += self.ready.eq(complete.any() | (self.waiting != 0))
        else:
            m.d.sync += self.ready.eq(complete.any() | Mux(self.fetch, self.waiting > 1, self.waiting != 0))

        # The block to fetch next; steps in turn use the halves of the memories.
        last_block = Signal()
        m.d.comb += last_block.eq(self.block == self.blocks - 1)
        with m.If(self.fetch):
            m.d.sync += self.block.eq(Mux(last_block, 0, self.block + 1))
            with m.If(last_block):
                m.d.sync += second.eq(~second)

        # The memories of each gate, a bank for each chain that carries rows of it.
        for number, matrix in self._chosen:
            places = matrix.places(self._program.shape)
            banks, depth = places.banks, places.depth
            at, address = self._block_place(m, places, matrix.kinds[0])
            for kind, name in enumerate(matrix.kinds):
                values, at_once = [], False
                for bank in range(banks):
                    chain = chains[(bank * matrix.gates + matrix.first_gate + kind) % len(chains)]
                    m.submodules[f"{name}_{bank}"] = mem = memory.Memory(shape=self._row, depth=2 * depth, init=[])
                    write = mem.write_port()
                    at_once = profile_of(platform).place(2 * depth, len(write.data)) == "distributed"
                    read = mem.read_port(domain="comb" if at_once else "sync")
                    m.d.comb += [
                        write.en.eq(chain.valid & (chain.matrix == number) & (chain.kind == kind)),
                        write.addr.eq(Mux(chain.second, depth, 0) + chain.address),
                        *(write.data[j].eq(value) for j, value in enumerate(chain.data)),
                        *([] if at_once else [read.en.eq(self.fetch)]),
                        read.addr.eq(Mux(second, depth, 0) + address),
                    ]
                    word, meets = Value.cast(read.data), write.en & (write.addr == read.addr)
                    row, come = Value.cast(write.data), f"{name}_{bank}_row"
                    if at_once and arriving:
                        word = Mux(meets, row, word)
                    elif arriving:
                        forwards, forwarded = (when(m, each, len(each), kept=True, name=f"{come}_{what}",
                                                    enable=self.fetch) for each, what in (
                                                        (meets, "forwards"), (row, "forwarded")))
                        word = Mux(forwards, forwarded, word)
                    values.append(word)
                if self._gives > 1:
                    values = [Cat(*values[n:n + self._gives]) for n in range(0, banks, self._gives)]
                # One register behind the banks where they are read at once, else one in each of them.
                bank = when(m, at, range(max(2, len(values))), kept=not at_once, name=f"bank_{name}",
                            enable=self.fetch)
                chosen = Array(values)[bank] if len(values) > 1 else values[0]
                m.d.comb += self.rows[name].eq(when(m, chosen, len(values[0]), kept=at_once, name=f"{name}_row",
                                                    enable=self.fetch))
        return m

    def _block_place(self, m: Module, places: RowPlaces, name: str) -> tuple[Value, Value]:
        """The bank and the address of the block to fetch next: bits of its number, or where each pass begins with the
        first bank, counters."""
        if places.even:
            return self.block, self.block >> ((places.banks // self._gives).bit_length() - 1)
        bank, address, inside = (Signal(range(max(2, count)), name=f"{name}_{what}") for what, count in (
            ("bank", places.banks), ("address", places.depth), ("inside", places.passed)))
        ends, whole = self.block == self.blocks - 1, inside == places.passed - 1
        row = (bank == places.banks - 1) | whole
        with m.If(self.fetch):
            m.d.sync += [
                bank.eq(Mux(ends | row, 0, bank + 1)),
                inside.eq(Mux(ends | whole, 0, inside + 1)),
                address.eq(Mux(ends, 0, address + row)),
            ]
        return bank, address
