"""The counter over a program: an issue per cycle, once its data is there and the drain will be free."""
from collections.abc import Sequence

from amaranth.hdl import Cat, Const, Module, Mux, ShapeLike, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.arith.decoder import Watch, watched
from circulant.hw.array.issue import issues_of
from circulant.hw.array.program import AHEAD, MAIN, SECOND, Program
from circulant.hw.emit.image import Image
from circulant.hw.emit.target import Platform, Rom

__all__ = ["Sequencer", "command", "program_image", "program_word", "work"]


def command(program: Program, depth: int) -> data.StructLayout:
    """Which command, where the vector that it reads begins, and whether its recurrent part counts as zero; where either
    of two can, whether it leads its step."""
    return data.StructLayout({"command": range(3), "base": range(depth), "zero": 1,
                              **({"leads": 1} if program.either else {})})


def work() -> wiring.Signature:
    """Interface from a `Sequencer` to what gives it commands; for its members see there."""
    return wiring.Signature({"command": Out(range(SECOND + 1)), "done": Out(1), "second": In(SECOND + 1)})


def program_word(program: Program) -> data.StructLayout:
    """An issue as the memory holds it."""
    issues = [issue for issues in program.sequences for issue in issues]
    return data.StructLayout({
        "number": range(max(2, len(program.whole.passes))),
        "slot": range(max(2, program.whole.slots)),
        "group": range(max(2, *(issue.group + 1 for issue in issues), 2)),
        "need": range(max(2, *(issue.need + 1 for issue in issues), 2)),
        "first": 1, "ends": 1, "done": 1, **dict.fromkeys(program.marks, 1),
        **({"weight": range(max(2, program.whole.cycles))} if program.turned else {}),
    })


def program_image(program: Program, image: str) -> Image:
    """The words of a step, sequence after sequence."""
    layout, words = program_word(program), []
    for issues, addresses in zip(program.sequences, program.addresses, strict=True):
        for n, (issue, address) in enumerate(zip(issues, addresses, strict=True)):
            word = layout.const({
                "number": issue.number + program.place.passes,
                "slot": program.passes[issue.number].slot + program.place.slots, "group": issue.group,
                "need": issue.need, "first": issue.first, "ends": issue.ends, "done": n == len(issues) - 1,
                **{mark: getattr(issue, mark) for mark in program.marks},
                **({"weight": address + program.place.cycles} if program.turned else {})})
            words.append(int(Value.cast(word).value))
    return Image(words, layout.size, image).coded(program.shape.protection)


class Sequencer(wiring.Component):
    """Issues in the order of the weight memories, without a gap between commands whose data is there.

    Parameters:
        program: the issues.
        depth: addresses of a bank.
        most: blocks of a vector that can have come at the most.
        image: name of the memory that holds the program.

    Members:
        go: stream of commands; one without issues must not come.
        second: for each command, whether its step is every second one.
        have: see `circulant.hw.array.banks.Banks`.
        command: the command at work: 0 AHEAD, 1 MAIN, 2 SECOND.
        zero: the recurrent part counts as zero for the command at work.
        group: number of the group of columns of this cycle.
        address: address in the banks of the group of columns of this cycle.
        issue: for the array, see `circulant.hw.array.issue.issue_signature`.
        done: the issue of this cycle ends the command.
        leads: where the command that follows reads both vectors: the command at work leads its step.
        grant: of a shared array: the issue is taken in this cycle.
        free: of a shared array: an issue of the next cycle that ends a pass will find the drain free.
        faults: of a protected memory, see `circulant.hw.arith.decoder.FAULTS`.
    """

    def __init__(self, program: Program, *, depth: int, most: int, image: str) -> None:
        self._program, self._image = program, image
        self._word = program_word(program)
        layout = command(program, depth)
        super().__init__({
            "go": In(stream.Signature(layout)),
            "have": In(data.ArrayLayout(range(most + 1), program.counts)),
            **work().members,
            "zero": Out(1),
            "address": Out(range(depth)), "group": Out(self._word.members["group"]),
            "issue": Out(issues_of(program.whole)),
            **({"leads": Out(1)} if program.turned else {}),
            **({} if program.whole is program else {"grant": In(1), "free": In(1)}),
            **watched(program.shape.protection),
        })

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        program, issue, given = self._program, self.issue, self.go.payload
        fold = program.shape.fold

        # The command at work, and what happens in this cycle.
        active = Signal()
        clear = Signal()
        base = Signal.like(self.address, reset_less=True)
        leads = Signal()
        phase_ends = Signal()
        moves = Signal()
        accepts = Signal()
        granted = Const(1) if program.whole is program else self.grant
        chosen = self._sequence(m, given)
        watch = Watch(m, platform, program.shape.protection)
        word, next_word = self._fetch(m, watch, chosen, accepts, moves)
        watch.tell(self)

        # The issue of this cycle, and the next command where the last one ends.
        m.d.comb += [
            issue.valid.eq(active & ((issue.phase != 0) | clear)),
            phase_ends.eq(issue.phase == fold - 1),
            moves.eq(issue.valid & phase_ends & granted),
            issue.ends.eq(moves & self._if_last(word, leads)),
            self.done.eq(moves & word.done),
            self.go.ready.eq(~active | self.done),
            accepts.eq(self.go.valid & self.go.ready),
            self.address.eq(base + word.group),
            issue.number.eq(word.number), self.group.eq(word.group), issue.first.eq(self._if_leading(word, leads)),
            issue.slot.eq(word.slot),
        ]
        self._mark_rows(m, word, leads)
        if program.turned:  # Several words have the same weights.
            m.d.comb += [issue.weight.eq(word.weight), self.leads.eq(leads)]
        else:
            self._count_weights(m, chosen, accepts, moves)

        # Whether the next issue may go is known a cycle ahead, of each word that it may be.
        first_clear, next_clear, word_clear = self._look_ahead(m, active, chosen, (next_word, word), leads)
        m.d.sync += clear.eq(Mux(accepts, first_clear, Mux(moves, next_clear, word_clear)))

        # The phase of a fold.
        if fold > 1:
            with m.If(issue.valid & granted):
                m.d.sync += issue.phase.eq(Mux(phase_ends, 0, issue.phase + 1))

        # The command at work begins and ends.
        with m.If(self.done):
            m.d.sync += active.eq(0)
        with m.If(accepts):
            m.d.sync += [active.eq(1), base.eq(given.base), *([leads.eq(given.leads)] if program.either else [])]
        self._note_command(m, accepts)
        return m

    def _look_ahead(self, m: Module, active: Value, chosen: Value, words: Sequence[data.View],
                    leads: Value) -> tuple[Value, Value, Value]:
        """Whether the first word of the command that comes, the next word, or the one at work can be issued: its blocks
        are there, and if it ends a pass, its sums will find the drain empty."""
        drained = self._drained(m)
        first_clear = Signal()
        next_clear = Signal()
        word_clear = Signal()
        m.d.comb += [
            first_clear.eq(self._can_begin(active, chosen) & (drained | ~self._first_ends(chosen))),
            *(is_clear.eq(self._enough(m, word.need, name=name) & (drained | ~self._if_last(word, leads)))
              for is_clear, word, name in zip((next_clear, word_clear), words, ("next", "word"), strict=True)),
        ]
        return first_clear, next_clear, word_clear

    def _fetch(self, m: Module, watch: Watch, chosen: Value, accepts: Value, moves: Value
               ) -> tuple[data.View, data.View]:
        """The word at work and the one behind it, in registers. The memory reads the one behind that, so that no
        decision waits for a memory; the first two words of a command are known."""
        program, image = self._program, program_image(self._program, self._image)
        words = [word & (1 << self._word.size) - 1 for word in image.words]
        m.submodules.rom = rom = Rom(**image._asdict(), scrubbed=watch.scrubs)
        word, next_word = (Signal(self._word, reset_less=True, name=name) for name in ("word", "next_word"))
        fetch_address = Signal(range(max(2, len(words))) if program.turned else self.issue.weight.shape(),
                               reset_less=True)

        # The first words of the command that comes, and the addresses of those behind them.
        starts = [program.start(n) for n in range(len(program.sequences))]
        places = [[min(start + n, len(words) - 1) for start in starts] for n in range(4)]
        firsts, seconds = (self._of(chosen, [words[place] for place in places[n]], self._word.size) for n in (0, 1))
        thirds, fourths = (self._of(chosen, places[n], fetch_address.shape()) for n in (2, 3))

        # All of them move on together.
        m.d.comb += [rom.en.eq(accepts | moves), rom.addr.eq(Mux(accepts, thirds, fetch_address))]
        read = watch.read(rom, self._word.size, name="program", when=watch.later(  # Behind the last word is none.
            rom.en & (rom.addr < len(words)), 1, name="counts"))
        with m.If(rom.en):
            m.d.sync += [
                fetch_address.eq(Mux(accepts, fourths, fetch_address + 1)),
                Value.cast(next_word).eq(Mux(accepts, seconds, read)),
                Value.cast(word).eq(Mux(accepts, firsts, next_word)),
            ]
        return word, next_word

    def _count_weights(self, m: Module, chosen: Value, accepts: Value, moves: Value) -> None:
        """Count the address of the weights, from where those of a command begin."""
        program, weight = self._program, self.issue.weight
        words = sum(map(len, program.sequences))
        starts = [min(program.start(n), words - 1) + program.place.cycles for n in range(len(program.sequences))]
        next_weight = Signal.like(weight)
        m.d.comb += next_weight.eq(Mux(accepts, self._of(chosen, starts, weight.shape()), weight + moves))
        m.d.sync += weight.eq(next_weight)

    def _mark_rows(self, m: Module, word: data.View, leads: Value) -> None:
        """Say which rows an issue concerns: those whose sums go on, those that share lanes, those of a second step."""
        program, issue = self._program, self.issue
        if "joins" in program.marks:
            m.d.comb += [issue.goes_on.eq(word.joins & ~leads), issue.holds.eq(word.joins & leads)]
        if program.parted_at:
            groups = program.inputs // program.shape.columns
            m.d.comb += [issue.head.eq(word.group <= groups), issue.tail.eq(word.group < groups)]
        if program.joined:
            turned = ((word.slot >= program.place.slots + program.joined)
                      & (word.slot < program.place.slots + 2 * program.joined))
            with m.If(turned & self.second.bit_select(self.command, 1)):
                m.d.comb += issue.slot.eq(word.slot - program.joined)

    def _first_ends(self, chosen: Value) -> Value:
        """Whether the first word of the command that comes ends a pass."""
        program = self._program
        ending = self._of(chosen, [int(bool(issues) and issues[0].ends) for issues in program.sequences], 1)
        if "alone" not in program.marks:
            return ending
        alone = self._of(chosen, [int(not issues or issues[0].alone) for issues in program.commands], 1)
        return ending & (alone | ~self.go.payload.leads)

    def _note_command(self, m: Module, accepts: Value) -> None:
        """Keep what is asked of the command at work, as far as it can be another one."""
        program, given = self._program, self.go.payload
        with m.If(accepts):
            if program.commands[MAIN]:
                m.d.sync += self.zero.eq(given.zero)
            if len(program.given) > 1:
                m.d.sync += self.command.eq(given.command)
        if len(program.given) == 1:
            m.d.comb += self.command.eq(program.given[0])

    def _drained(self, m: Module) -> Value:
        """Whether an issue of the next cycle that ends a pass will find the drain free, which the rows of the last pass
        leave one by one; an issue takes ``fold`` cycles."""
        program, ends = self._program, self.issue.ends
        fold, slots = program.shape.fold, program.shape.slots
        if program.whole is not program:
            return self.free
        if slots <= fold + 1:
            return ~ends | (slots <= fold)
        draining = Signal(range(slots))
        with m.If(draining != 0):
            m.d.sync += draining.eq(draining - 1)
        with m.If(ends):
            m.d.sync += draining.eq(slots - 1)
        drained = Signal()
        m.d.comb += drained.eq(~ends & (draining <= fold))
        return drained

    def _sequence(self, m: Module, given: data.View) -> Value:
        """The number of the sequence of a command that comes."""
        if not self._program.turned:
            return given.command
        chosen = Signal(range(len(self._program.sequences)))
        m.d.comb += chosen.eq(given.command)
        for other, (command, leads) in enumerate(self._program.turned, SECOND + 1):
            with m.If((given.command == command) & (given.leads == int(leads))):
                m.d.comb += chosen.eq(other)
        return chosen

    def _of(self, chosen: Value, values: Sequence[int | Value], shape: ShapeLike) -> Value:
        """The value of the sequence that is chosen among those that have issues."""
        numbers = [n for n, issues in enumerate(self._program.sequences) if issues]
        found, *others = (Const(value, shape) if isinstance(value, int) else value
                          for value in (values[n] for n in reversed(numbers)))
        for n, value in zip(numbers[-2::-1], others, strict=True):
            found = Mux(chosen == n, value, found)
        return found

    def _if_leading(self, word: data.View, leads: Value) -> Value:
        """Whether a word begins its pass: unless that is alone, only in the command that leads."""
        return word.first & (word.alone | leads) if "alone" in self._program.marks else word.first

    def _if_last(self, word: data.View, leads: Value) -> Value:
        """Whether a word ends its pass: unless that is alone, only in the command that does not lead."""
        return word.ends & (word.alone | ~leads) if "alone" in self._program.marks else word.ends

    def _enough(self, m: Module, need: Value, *, name: str) -> Value:
        """Whether the command at work has the blocks that a word of some name needs."""
        if not any(issue.need for issues in self._program.sequences for issue in issues):
            return Const(1)
        vectors = ("state", "second", "input")[:len(self.have)]
        first, second, *inputs = (Signal(name=f"{name}_has_{vector}") for vector in vectors)
        m.d.comb += [each.eq(_at_least(have, need))
                     for each, have in zip((first, second, *inputs), self.have, strict=True)]
        own = Mux(self.command == SECOND, second, self.zero | first | (need == 0))
        return Mux(self.command == AHEAD, inputs[0], own) if inputs else own

    def _can_begin(self, active: Value, chosen: Value) -> Value:
        """The same for the first word of the command that comes, the first one of a ``chosen`` sequence.

        The blocks of a vector that is read to its end in this cycle still count, so that a command for the same vector
        waits for the next one.
        """
        needs = [issues[0].need if issues else 0 for issues in self._program.sequences]
        zero = Const(0), self.go.payload.zero, Const(0)
        enough: list[Value] = []
        for command, need in zip(self._program.readers, needs, strict=True):
            vector = self._program.waits[command]
            if vector is None or not need:
                enough.append(Const(1))
                continue
            come = (self.have[vector] >= need) & ~(active & (self.command == command))
            enough.append(zero[command] | come)
        return self._of(chosen, enough, 1)


def _at_least(x: Value, y: Value) -> Value:
    """x >= y of unsigned numbers, three bits in a look-up table, because a tool makes a chain of it, bit after bit."""
    bits = max(len(x), len(y))
    pairs = list(zip(Cat(x, Const(0, bits))[:bits], Cat(y, Const(0, bits))[:bits], strict=True))
    total: Value = Const(1)
    for at in range(0, bits, 3):
        greater, passes = Const(0), Const(1)
        for mine, its in pairs[at:at + 3]:
            greater, passes = mine & ~its | (mine | ~its) & greater, (mine | ~its) & passes
        total = greater | passes & total
    return total
