"""A board from the host's side: sequences go to it over a serial port, and what its circuit makes of them comes back.

A request is repeated until its answer comes, and carried out once (`circulant.boards.link.protocol`); so a line that
loses, doubles or changes bytes costs time and no result. The more it disturbs, the shorter are the frames.
"""
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from circulant.boards.link.protocol import (
    GREETING,
    HASH,
    PAYLOAD,
    UNKNOWN,
    VERSION,
    Hello,
    Operation,
    Unframer,
    frame,
)
from circulant.boards.simulated import served
from circulant.sim import configuration, design
from circulant.sim.arith.fixed import Format, Integers
from circulant.sim.configuration import Configuration
from circulant.sim.cosim.manifest import Manifest
from circulant.sim.refusal import Refusal, ToolError

__all__ = ["BAUD", "Device", "SilentDevice"]

BAUD = 1_000_000
WORDS = 48
"""Words of the configuration port in a request, at the most."""

FIRST, LEAST = 32, 8
"""Bytes of input in a request, and of output in an answer: in the first one, and on a line that disturbs most."""

NOISY = 16
"""Times as many tries of a request on a line that disturbs, as long as something gets through."""

QUIET = 20
"""Parts of the time of an answer: a line that is quiet for one, after something broken came, brings no more of it."""

WAITS = 1000
"""Polls for outputs that do not come, before a device counts as stuck."""


class SilentDevice(ToolError):
    """A device that does not answer, or whose circuit stands still."""


class Line(Protocol):
    """A serial port, as pyserial has it: ``read`` returns what came within the port's timeout."""

    def read(self, size: int = 1) -> bytes: ...

    def write(self, data: bytes) -> int | None: ...

    def close(self) -> None: ...


class Device:
    """A board with a design.

    Parameters:
        line: the serial port, whose ``timeout`` is short.
        folder: of the design, with its ``manifest.json``.
        seconds: that an answer may take before its request is repeated.
        tries: of a request; `NOISY` times as many once something has come broken or late.

    Raises:
        Refusal: when the device holds another network or speaks another version of the protocol, or the design
            interleaves sequences.
        SilentDevice: when nothing answers.
        ToolError: when the port fails, or the answers are not those of the protocol; also of all methods.

    Members:
        repeated: requests that were sent again.
    """

    def __init__(self, line: Line, folder: str | Path, *, seconds: float = 1.0, tries: int = 8) -> None:
        self._line, self._seconds, self._tries = line, seconds, tries
        self._finder, self._number, self._size, self._disturbs = Unframer(), 0, FIRST, False
        self.repeated = 0
        self._manifest = manifest = Manifest.load(folder)
        if manifest.streams != 1:
            raise Refusal(f"A design on a board must take one sequence at a time, not {manifest.streams} in turn; "
                          "generate it with hardware.streams=1")
        body = design.read(folder)
        design.require_single(body, "A host over a serial line")
        self._formats = [Format(body[port]["format"]["width"], body[port]["format"]["frac"])
                         for port in ("input", "output")]
        hello = self.hello()
        if hello.version != VERSION:
            raise Refusal(f"A device must speak version {VERSION} of the protocol, not {hello.version}; build its "
                          "bitstream again")
        if hello.network.hex() != manifest.network[:2 * HASH]:
            raise Refusal(f"The device must hold the network {manifest.network[:2 * HASH]} of {folder}, but it says "
                          f"{hello.network.hex()}; load the bitstream of this design, or name the folder of that one")
        self._ask(Operation.RESET)

    @classmethod
    def open(cls, port: str, folder: str | Path, *, baud: int = BAUD, seconds: float = 1.0) -> Self:
        """The device at a serial port, such as ``/dev/ttyUSB0``.

        Raises:
            Refusal: when pyserial or the port is missing, or another program has it; as `Device`.
            SilentDevice: when nothing answers.
        """
        try:
            import serial
        except ModuleNotFoundError:
            raise Refusal("A board needs pyserial, which is not installed; run: pip install 'circulant[boards]'"
                          ) from None
        try:
            line = serial.Serial(port, baud, timeout=0.01, write_timeout=seconds, exclusive=True)
        except (serial.SerialException, ValueError, OSError) as error:
            raise Refusal(f"The port {port} must be a serial port that nobody else has open, but it cannot be opened "
                          f"({error}); see `python -m serial.tools.list_ports` for the ports of this machine") from None
        try:
            return cls(line, folder, seconds=seconds)
        except BaseException:
            line.close()
            raise

    @classmethod
    @contextmanager
    def simulated(cls, run: str | Path, *, seconds: float = 60.0) -> Iterator[Self]:
        """The device of a run folder, or of the folder of a design, simulated by Verilator behind the same protocol,
        until the block ends.

        Raises:
            Refusal: when Verilator, pyserial or the design is missing; as `Device`.
            ToolError: when the Verilog cannot be compiled.
        """
        folder = Path(run) / "hardware" if (Path(run) / "hardware").is_dir() else Path(run)
        design.read(folder)
        with served(folder) as port, cls.open(port, folder, seconds=seconds) as device:
            yield device

    def close(self) -> None:
        """Give the port back."""
        with suppress(OSError):  # Of a port that is gone.
            self._line.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def hello(self) -> Hello:
        """Identity and counters of the device."""
        greeting = self._ask(Operation.HELLO)[1:]
        if len(greeting) != GREETING:
            raise ToolError(f"A device must greet with {GREETING} bytes, but this one greets with {len(greeting)}; "
                            "build its bitstream again")
        return Hello.parse(greeting)

    def infer(self, x: Any) -> NDArray[np.float64]:
        """The outputs for a sequence (T, inputs), an image or a vector of real numbers: (outputs,), or (T, outputs) of
        a network with outputs at each step.

        Raises:
            Refusal: when ``x`` has another size, or holds what is no finite number.
            SilentDevice: when the device stops answering.
        """
        given, gives = self._formats
        return self.infer_integers(given.quantize(x)) / 2.0 ** gives.frac

    def infer_integers(self, x: Integers) -> Integers:
        """The same in integers of the network's input and output formats."""
        manifest = self._manifest
        into, out = manifest.input, manifest.output
        values = np.asarray(x, np.int64)
        if not values.size or values.size % into.elements:
            raise Refusal(f"The input of this device must be vectors of {into.elements} values, not an array of shape "
                          f"{values.shape}; see its manifest.json")
        vectors = values.reshape(-1, into.elements)
        wanted = (len(vectors) if manifest.per_step else 1) * out.beats * out.beat_bytes
        answer = self._play(into.pack(vectors).tobytes(), wanted)
        beats = np.frombuffer(answer, np.uint8).reshape(-1, out.beats, out.beat_bytes)
        found = out.unpack(beats)[:, :out.elements]
        return found if manifest.per_step else found[0]

    def read_state(self, like: Any) -> Any:
        """The states of all layers, nested as ``like``: those of `Network.initial`.

        Raises:
            Refusal: when the design has no configuration port.
        """
        config = self._config()
        self._perform(config.hold())
        words = self._perform(config.save())
        self._perform(config.release())
        return config.saved(words, like)

    def restore_state(self, states: Sequence[Any]) -> None:
        """Go on from states that `read_state` gave.

        Raises:
            Refusal: when the design has no configuration port, or the states are not its own.
        """
        config = self._config()
        self._perform([*config.hold(), *config.restore(states), *config.release()])

    def load_weights(self, writes: Iterable[tuple[int, int]]) -> None:
        """Load another network of the same structure: (address, word) as `circulant.hw.reload_words` makes them.

        Raises:
            Refusal: when the design has no configuration port.
        """
        config = self._config()
        self._perform([*config.hold(), *config.load(writes), *config.restart(), *config.release()])

    def _config(self) -> Configuration:
        return self._manifest.require_configuration()

    def _perform(self, operations: Sequence[configuration.Operation]) -> list[int]:
        """Carry out operations of the configuration port in order, neighbours together; the words that were read."""
        words: list[int] = []
        for kind, run in _runs(operations):
            while run:
                size = min(WORDS, max(1, self._size // 4))
                first, some, run = run[0], run[:size], run[size:]
                if kind == configuration.WRITE:
                    self._ask(Operation.WRITE, first.address.to_bytes(3, "little") + b"".join(
                        each.value.to_bytes(4, "little") for each in some))
                elif kind == configuration.READ:
                    words += self._read(first.address, len(some))
                else:
                    self._until(partial(self._holds, first))
        return words

    def _holds(self, want: configuration.Operation) -> bool:
        """Whether a word has the bits that are waited for."""
        return self._read(want.address, 1)[0] & want.mask == want.value

    def _read(self, address: int, count: int) -> list[int]:
        data = self._ask(Operation.READ, address.to_bytes(3, "little") + bytes([count]))[1:]
        if len(data) != 4 * count:
            raise ToolError(f"A device must give {4 * count} bytes for {count} words, but it gave {len(data)}; build "
                            "its bitstream again")
        return [int.from_bytes(data[4 * n:4 * n + 4], "little") for n in range(count)]

    def _until(self, true: Callable[[], bool]) -> None:
        for _ in range(WAITS):
            if true():
                return
        raise SilentDevice("The circuit must become idle, but it stays busy; is the input of a sequence incomplete?")

    def _play(self, data: bytes, wanted: int) -> bytes:
        """Send the beats of a sequence and collect ``wanted`` bytes of what comes out."""
        taken, answer, waits = 0, b"", 0
        while taken < len(data) or len(answer) < wanted:
            part = data[taken:taken + self._size]
            ends = taken + len(part) == len(data) and bool(part)
            want = min(self._size, wanted - len(answer)) if ends or not part else 0
            found = self._ask(Operation.LAST if ends else Operation.TRANSFER, bytes([want]) + part)
            if found[0] > len(part) or len(found) - 1 > want:
                raise ToolError(f"A device must take {len(part)} bytes and give {want} at the most, but it took "
                                f"{found[0]} and gave {len(found) - 1}; build its bitstream again")
            taken, answer = taken + found[0], answer + found[1:]
            waits = 0 if found[0] or found[1:] else waits + 1
            if waits > WAITS:
                raise SilentDevice(f"The circuit must give {wanted} bytes, but it stands still after {len(answer)}; "
                                   "reset it by opening it again")
        return answer

    def _ask(self, operation: Operation, data: bytes = b"") -> bytes:
        """The status and the data of an answer."""
        self._number = (self._number + 1) % 256
        head, tried = bytes([self._number, operation]), 0
        request = frame(head + data)
        while tried < self._tries * (NOISY if self._disturbs else 1):
            try:
                answer = self._answered(head, request)
            except OSError as error:
                raise ToolError(f"A device must stay at its port, but the port fails ({error}); plug it in, and run "
                                "the same command again") from None
            if answer:
                self._disturbs |= tried > 0
                self._size = self._size if tried else min(PAYLOAD, self._size * 3 // 2)
                if answer[0] == UNKNOWN:
                    raise Refusal(f"A device must know the operation {operation.name}, but this one does not; generate "
                                  "its design with hardware.reloadable=true")
                return answer
            tried += 1
            self.repeated += 1
            self._size = max(LEAST, self._size // 2)
        said = "what came was broken" if self._disturbs else "nothing came"
        raise SilentDevice(f"A device must answer within {tried} × {self._seconds:g} s, but {said}; check that the "
                           "board is powered, configured and at this port and baud rate")

    def _answered(self, head: bytes, request: bytes) -> bytes:
        """The status and the data of the answer to one try of a request; empty where none comes."""
        self._line.write(request)
        came, since = False, time.monotonic()
        end = since + self._seconds
        while (now := time.monotonic()) < end and not (came and now - since > self._seconds / QUIET):
            if data := self._line.read(512):
                came, since = True, now
            for answer in self._finder.feed(data):
                if answer[:2] == head and len(answer) > 2:
                    return answer[2:]
        self._disturbs |= came
        return b""


def _runs(operations: Sequence[configuration.Operation]) -> Iterable[tuple[int, list[configuration.Operation]]]:
    """Operations of one kind at addresses that follow each other; those that wait are alone."""
    held: list[configuration.Operation] = []
    for each in operations:
        follows = held and each.kind == held[-1].kind != configuration.WAIT and each.address == held[-1].address + 1
        if held and not follows:
            yield held[0].kind, held
            held = []
        held.append(each)
    if held:
        yield held[0].kind, held
