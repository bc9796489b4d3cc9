"""The two ends of AXI4-Stream, and a monitor between them; each is called once per rising edge of the clock.

At a rising edge all of them read what the circuit and they themselves drove before that edge; what they write is seen
after it. None knows the others, nor cocotb: a signal is anything with a ``value``.
"""
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Fault", "Monitor", "Patience", "Port", "Sink", "Source"]


class Fault(Exception):
    """A broken rule of the stream. ``kind`` is a key of `circulant.sim.cosim.judge.check.FAULTS`."""

    def __init__(self, kind: str, cycle: int) -> None:
        super().__init__(kind, cycle)
        self.kind = kind
        self.cycle = cycle


@dataclass(frozen=True)
class Port:
    """The four signals of a stream."""

    data: Any
    valid: Any
    ready: Any
    last: Any

    @classmethod
    def of(cls, dut: Any, prefix: str) -> "Port":
        return cls(*(getattr(dut, f"{prefix}_t{name}") for name in ("data", "valid", "ready", "last")))


class Source:
    """Drives data, valid and last. A beat that is offered stays until it is taken.

    While it offers nothing, the data are those of the next beat inverted: a circuit that takes them is found out.

    Parameters:
        beats: (data, last) of each.
        wait: draws the idle cycles before the next beat.
        limit: how many beats may be offered so far.

    Members:
        accepted: the cycle of each beat that was taken.
    """

    def __init__(self, port: Port, beats: Sequence[tuple[int, int]], *, wait: Callable[[], int], limit: int) -> None:
        self._port = port
        self._beats = beats
        self._wait = wait
        self._inverse = (1 << len(port.data)) - 1
        self._offering = False
        self._idle = wait()
        self.limit = limit
        self.accepted: list[int] = []
        self.stop()

    def edge(self, cycle: int) -> bool:
        """Whether a beat was taken at this edge."""
        moved = False
        if self._offering:
            if not int(self._port.ready.value):
                return False
            moved = True
            self.accepted.append(cycle)
            self._idle = self._wait()
        if self._idle == 0 and len(self.accepted) < self.limit:
            data, last = self._beats[len(self.accepted)]
            self._port.data.value = data
            self._port.last.value = last
            if not self._offering:
                self._port.valid.value = 1
                self._offering = True
        else:
            if self._idle:
                self._idle -= 1
            if self._offering:
                self.stop()
        return moved

    def stop(self) -> None:
        """Offer nothing."""
        data, last = self._beats[len(self.accepted)] if len(self.accepted) < len(self._beats) else (0, 0)
        self._port.valid.value = 0
        self._port.data.value = self._inverse ^ data
        self._port.last.value = 1 - last
        self._offering = False


class Sink:
    """Drives ready: in alternating spells of drawn length, or only once valid was seen.

    Parameters:
        pause: draws the cycles without ready before each cycle with ready; None: ready is never given.
        until_valid: the cycles without ready are counted from valid on.
    """

    def __init__(self, port: Port, *, pause: Callable[[], int] | None, until_valid: bool = False) -> None:
        self._port = port
        self._pause = pause
        self._until_valid = until_valid
        self._left = pause() if pause is not None else 0
        self._ready = pause is not None and not until_valid and self._left == 0
        port.ready.value = int(self._ready)

    def edge(self) -> None:
        if self._pause is None:
            return
        if self._ready:
            self._left = self._pause()
            ready = not self._until_valid and self._left == 0
        else:
            if self._left and (not self._until_valid or int(self._port.valid.value)):
                self._left -= 1
            ready = self._left == 0 and (not self._until_valid or bool(int(self._port.valid.value)))
        if ready != self._ready:
            self._port.ready.value = int(ready)
            self._ready = ready


class Patience:
    """Counts cycles in a row without a beat.

    Parameters:
        limit: how many of them there may be.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._quiet = 0

    def edge(self, cycle: int, moved: bool) -> None:
        """
        Raises:
            Fault: when no beat has moved for too long.
        """
        self._quiet = 0 if moved else self._quiet + 1
        if self._quiet > self._limit:
            raise Fault("stuck", cycle)


class Monitor:
    """Records every beat and sees that an offered one waits unchanged until it is taken.

    Members:
        cycles, data, last: of each beat.
        waiting: whether a beat is offered and not taken.
    """

    def __init__(self, port: Port) -> None:
        self._port = port
        self._held = (0, 0)
        self.waiting = False
        self.cycles: list[int] = []
        self.data: list[int] = []
        self.last: list[int] = []

    def edge(self, cycle: int) -> bool:
        """Whether a beat was taken at this edge.

        Raises:
            Fault: when an offered beat was withdrawn or changed.
        """
        port = self._port
        if not int(port.valid.value):
            if self.waiting:
                raise Fault("withdrawn", cycle)
            return False
        beat = (int(port.data.value), int(port.last.value))
        if self.waiting and beat != self._held:
            raise Fault("changed", cycle)
        if not int(port.ready.value):
            self._held = beat
            self.waiting = True
            return False
        self.waiting = False
        self.cycles.append(cycle)
        self.data.append(beat[0])
        self.last.append(beat[1])
        return True
