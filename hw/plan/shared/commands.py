"""The counters of a layer's dispatch, cycle by cycle, in Python: which command its sequencer gets next. The names are
those of `circulant.hw.array.dispatch` and `circulant.hw.array.either_dispatch`."""
from collections.abc import Container

from circulant.hw.array.program import AHEAD, MAIN, SECOND, Program

__all__ = ["commands_of"]


class InTurn:
    """Order with a step of each stream in turn, whose whole input leads; see `Dispatch`."""

    def __init__(self, program: Program, *, streams: int, lasts: Container[int]) -> None:
        ahead, main, second = map(bool, program.commands)
        self._ahead, self._main, self._second = ahead, main, second
        self._starting, self._ending = AHEAD if ahead else MAIN, MAIN if main else AHEAD
        self._behind, self._streams = 1 if streams == 1 else 2, streams
        self._first = bool(program.joined) and streams > 1  # The second vector goes before the next input.
        self._begun = self._kept_zero = self._reading = False
        self._waiting, self.marked, self._lasts = 0, 0, lasts

    def pick(self, fits: bool, inputs: int) -> int:
        """The command that is offered, the most urgent one; -1 without one.

        Parameters:
            fits: there is room for all that comes of one more step.
            inputs: whole inputs that wait.
        """
        room, due = fits and inputs > self._reading, self._waiting >= self._behind
        if not self._ahead:
            starts = room and not due
            return SECOND if due else MAIN if starts else SECOND if self._waiting else -1
        starts = room and not self._begun
        if starts and not (self._first and due):
            return AHEAD
        if due and self._second:
            return SECOND
        if self._begun:
            return MAIN
        return SECOND if self._waiting else -1

    def leads(self, command: int) -> bool:
        """Whether a command leads its step."""
        return True

    def zero(self, command: int) -> bool:
        """Whether the recurrent part of a command's vector counts as zero."""
        return command == MAIN and (self._fresh if self._starting == MAIN else self._kept_zero)

    @property
    def _fresh(self) -> bool:
        """Whether the next step begins a sequence."""
        return self.marked < self._streams or self.marked - self._streams in self._lasts

    def edge(self, accepted: int, ended: int, *, state: bool, inputs: int, gone: bool) -> bool:
        """One cycle's registers; whether a step starts.

        Parameters:
            accepted, ended: commands of this cycle; -1 without one.
            state: the recurrent vector has come as a whole.
            gone: the result of a step has gone through the transform of the layer's own blocks.
        """
        starts = accepted == self._starting
        if ended == self._ending:
            self._reading = False
        if starts:
            self._reading = True
        if self._second:
            self._waiting += (accepted == MAIN) - (accepted == SECOND)
        if accepted == MAIN:
            self._begun = False
        if starts:
            self._kept_zero, self._begun = self._fresh, self._starting != self._ending
            self.marked += 1
        return starts

    def state(self) -> tuple[object, ...]:
        """All that what follows depends on, where no sequence ends."""
        return self._begun, self._kept_zero, self._reading, self._waiting, min(self.marked, self._streams)


class EitherWay:
    """Order in which what has come whole leads; see `EitherDispatch`. Its functions are those of `InTurn`."""

    def __init__(self, program: Program, *, lasts: Container[int]) -> None:
        self._joint, self._third = bool(program.commands[MAIN]), bool(program.commands[SECOND])
        self._last_reader, self._closes = program.last_reader, False
        self._whole, self._at_once = self._joint and not program.commands[AHEAD], False
        self._begun, self._due, self._kept_zero, self._waiting = False, AHEAD, False, 0
        self._reads, self._there = [False, False, False], False
        self._fresh, self._unmarked, self._zero_ready = True, False, True
        self._lasts, self.marked = lasts, 0

    def pick(self, fits: bool, inputs: int) -> int:
        fits, whole = fits and not self._begun, inputs > self._reads[AHEAD]
        self._at_once = self._whole and fits and whole and not self._waiting
        if self._whole and self._waiting:
            return SECOND
        if not self._joint:
            return AHEAD if fits else -1
        if fits and whole:
            return MAIN if self._at_once else AHEAD
        there = self._zero_ready if self._fresh else self._there and not self._reads[MAIN]
        if fits and there:
            return MAIN
        if self._waiting:
            return SECOND
        return self._due if self._begun else -1

    def leads(self, command: int) -> bool:
        return not self._begun and not self._at_once

    def zero(self, command: int) -> bool:
        return command == MAIN and (self._kept_zero if self._begun else self._fresh)

    def edge(self, accepted: int, ended: int, *, state: bool, inputs: int, gone: bool) -> bool:
        steps = accepted in (AHEAD, MAIN)
        starts, follows = steps and not self._begun, steps and (self._begun or self._at_once)
        self._there = state and not self._reads[MAIN]
        if ended >= 0 and (ended != AHEAD or self._last_reader is not None):
            self._reads[ended] = False
        if ended in (AHEAD, MAIN) and self._closes:
            self._reads[AHEAD] = False
        if accepted >= 0:
            self._reads[accepted], self._closes = True, follows
            self._reads[AHEAD] |= steps and self._at_once
        if self._third:
            self._waiting += follows - (accepted == SECOND)
        if starts:
            self._kept_zero, self._begun = self._fresh, self._joint and not self._at_once
            self._due = MAIN if accepted == AHEAD else AHEAD
        elif follows:
            self._begun = False
        if self._unmarked and inputs:
            self._unmarked, self._fresh = False, self.marked in self._lasts
            self.marked += 1
        self._unmarked = self._unmarked or starts
        self._zero_ready = (self._zero_ready or gone) and not starts
        return starts

    def state(self) -> tuple[object, ...]:
        return (self._closes, self._begun, self._due, self._kept_zero, self._waiting, *self._reads, self._there,
                self._fresh, self._unmarked, self._zero_ready)


def commands_of(program: Program, *, streams: int, lasts: Container[int]) -> InTurn | EitherWay:
    """The order of a program's commands; see `circulant.hw.array.plans.Sharing`.

    Parameters:
        lasts: the steps that end sequences, those of each stream counted.
    """
    if program.either:
        return EitherWay(program, lasts=lasts)
    return InTurn(program, streams=streams, lasts=lasts)
