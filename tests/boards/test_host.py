"""The host's driver against the circuit itself, which Verilator serves behind a pseudo-terminal."""
import os
import random
import threading
from contextlib import closing

import numpy as np
import pytest

from circulant.boards.host import Device, SilentDevice
from circulant.boards.link.protocol import FLAG, Hello, Operation, Unframer, frame
from circulant.boards.simulated import served
from circulant.hw import generate
from circulant.hw.reload_words import writes
from circulant.sim.configuration import state_parts
from circulant.sim.quantize.quantize import quantize
from circulant.sim.quantize.quantize_like import quantize_like
from circulant.sim.refusal import Refusal, ToolError
from tests.sim import samples


@pytest.fixture(scope="module")
def design(tmp_path_factory):
    model = samples.model(4, 8, 3, seed=1)
    made = generate(quantize(model, samples.data(model)), multipliers=9, reloadable=True, objective="throughput")
    return made.network, made.write(tmp_path_factory.mktemp("host") / "design"), made


@pytest.fixture(scope="module")
def port(design):
    with served(design[1]) as name:
        yield name


def vectors(network, count=5, steps=4):
    return network.vectors(np.random.default_rng(3).normal(0, 1, (count, steps, network.flow.size)))


def test_a_simulated_device_is_opened_by_the_folder_of_its_design(design):
    network, folder, _ = design
    given = vectors(network, 2)
    with Device.simulated(folder) as device:
        assert [device.infer_integers(x).tolist() for x in given.inputs] == given.outputs.tolist()
    with pytest.raises(Refusal, match="manifest"), Device.simulated(folder.parent):
        pass


class Noisy:
    """A line that loses, doubles and changes bytes, both ways."""

    def __init__(self, line, seed, rate=0.004):
        self._line, self._rng, self._rate, self.wrong = line, random.Random(seed), rate, 0

    def _disturbed(self, data):
        for byte in data:
            fate = self._rng.random() / self._rate
            self.wrong += fate < 3
            yield from () if fate < 1 else (byte, byte) if fate < 2 else (byte ^ 1 << self._rng.randrange(8),) \
                if fate < 3 else (byte,)

    def read(self, size=1):
        return bytes(self._disturbed(self._line.read(size)))

    def write(self, data):
        return self._line.write(bytes(self._disturbed(data)))

    def close(self):
        self._line.close()


def opened(port):
    serial = pytest.importorskip("serial")
    return serial.Serial(port, 1_000_000, timeout=0.01, exclusive=True)


def test_a_split_played_through_the_circuit_gives_what_the_golden_model_gives(design, port):
    network, folder, _ = design
    made = vectors(network)
    with Device.open(port, folder, seconds=10) as device:
        for x, y in zip(made.inputs, made.outputs, strict=True):
            np.testing.assert_array_equal(device.infer_integers(x), y)
        assert device.hello().sequences >= len(made)
        assert device.repeated == 0


def test_noise_and_lost_and_doubled_bytes_lose_nothing(design, port):
    network, folder, _ = design
    made, line = vectors(network, 12), Noisy(opened(port), seed=1)
    device = Device(line, folder, seconds=0.5, tries=40)
    before = device.hello().sequences
    for x, y in zip(made.inputs, made.outputs, strict=True):
        np.testing.assert_array_equal(device.infer_integers(x), y)
    assert device.hello().sequences - before == len(made), "each sequence went through once"
    assert line.wrong > 5 and device.repeated > 0
    device.close()


@pytest.mark.parametrize("share", [0.01, 0.03])
def test_a_line_that_disturbs_one_byte_in_a_hundred_or_more(design, port, share):
    """With the tries that are usual: as long as something gets through, it counts, and frames become shorter.

    How many bytes cross the line depends on the machine's pace, so sequences go on until enough were disturbed."""
    network, folder, _ = design
    made = vectors(network, 4, 12)
    with closing(Noisy(opened(port), seed=2, rate=share / 3)) as line:
        device = Device(line, folder, seconds=0.1)
        before, sent = device.hello().sequences, 0
        while sent < len(made) or line.wrong <= 10 or device.repeated <= 8:
            assert sent < 200, f"{line.wrong} bytes disturbed and {device.repeated} frames repeated"
            x, y = made.inputs[sent % len(made)], made.outputs[sent % len(made)]
            np.testing.assert_array_equal(device.infer_integers(x), y)
            sent += 1
        assert device.hello().sequences - before == sent, "each sequence went through once"
        _, state = network.resume(made.inputs[:1, :4], network.initial(1))
        device.restore_state(state)
        kept = device.read_state(network.initial(1))
        assert [part.tolist() for part in state_parts(kept)] == [part.tolist() for part in state_parts(state)]


def test_real_numbers_are_quantized_as_the_network_does(design, port):
    network, folder, _ = design
    x = np.random.default_rng(5).normal(0, 1, (1, 4, network.flow.size))
    expected = network.vectors(x).outputs[0] / 2.0 ** network.output_format.frac
    with Device.open(port, folder, seconds=10) as device:
        np.testing.assert_array_equal(device.infer(x[0]), expected)


def test_a_sequence_goes_on_from_a_state(design, port):
    network, folder, _ = design
    made = vectors(network, 1, 6)
    _, state = network.resume(made.inputs[:, :4], network.initial(1))
    with Device.open(port, folder, seconds=10) as device:
        device.restore_state(state)
        kept = device.read_state(network.initial(1))
        assert [part.tolist() for part in state_parts(kept)] == [part.tolist() for part in state_parts(state)]
        np.testing.assert_array_equal(device.infer_integers(made.inputs[0, 4:]), made.outputs[0])


def test_other_weights_are_loaded(design, port):
    network, folder, made = design
    other = quantize_like(samples.model(4, 8, 3, scale=0.3, seed=9), network)
    words = writes(made, other)
    given = vectors(other)
    with Device.open(port, folder, seconds=10) as device:
        device.load_weights(words)
        for x, y in zip(given.inputs, given.outputs, strict=True):
            np.testing.assert_array_equal(device.infer_integers(x), y)
        device.load_weights(writes(made, network))


class Told:
    """A line behind which a device answers as it is told; without answers it is silent."""

    def __init__(self, network="", version=1):
        self._finder, self._held, self._hello = Unframer(), b"", bytes([version]) + bytes.fromhex(network)[:8]

    def write(self, data):
        for request in self._finder.feed(data):
            if len(self._hello) > 1:
                self._held += frame(request[:2] + b"\0" + (self._hello + bytes(13) if request[1] == 0 else b""))
        return len(data)

    def read(self, size=1):
        found, self._held = self._held[:size], self._held[size:]
        return found

    def close(self):
        pass


def test_another_network_is_refused(design):
    with pytest.raises(Refusal, match=r"^The device must hold the network [0-9a-f]{16} of .*, but it says "
                                      r"abababababababab; load the bitstream of this design"):
        Device(Told("ab" * 32), design[1])


def test_another_protocol_is_refused(design):
    with pytest.raises(Refusal, match=r"^A device must speak version 1 of the protocol, not 9; build its bitstream"):
        Device(Told(design[0].hash, version=9), design[1])


def test_a_silent_device_is_told_after_all_tries(design):
    with pytest.raises(SilentDevice, match=r"^A device must answer within 3 × 0\.01 s, but nothing came; check that "
                                           r"the board is powered"):
        Device(Told(), design[1], seconds=0.01, tries=3)


class Garbled(Told):
    """A device whose line doubles the last byte of everything."""

    def read(self, size=1):
        found = super().read(size)
        return found[:-1] + b"\0" + found[-1:] if found else found


def test_what_comes_broken_is_told_with_its_count(design):
    with pytest.raises(SilentDevice, match=r"^A device must answer within 48 × 0\.01 s, but what came was broken; "
                                           r"check that the board is powered, configured and at this port and baud"):
        Device(Garbled(design[0].hash), design[1], seconds=0.01, tries=3)


class Answers(Told):
    """A device that gives an answer of its own to an operation, or whose port fails at it."""

    def __init__(self, network, operation, answer):
        super().__init__(network)
        self._operation, self._answer = operation, answer

    def write(self, data):
        for request in Unframer().feed(data):
            if request[1] == self._operation:
                if isinstance(self._answer, Exception):
                    raise self._answer
                self._held += frame(request[:2] + self._answer)
                return len(data)
        return super().write(data)


@pytest.mark.parametrize(("operation", "answer", "words"), [
    (Operation.HELLO, bytes(24),
     r"A device must greet with 22 bytes, but this one greets with 23; build its bitstream again"),
    (Operation.HELLO, OSError("no port"),
     r"A device must stay at its port, but the port fails \(no port\); plug it in, and run the same command again"),
    (Operation.LAST, OSError("no port"), r"A device must stay at its port, but the port fails \(no port\); .*"),
    (Operation.LAST, bytes([32]) + bytes(100),
     r"A device must take 32 bytes and give \d+ at the most, but it took 32 and gave 100; build its bitstream again"),
    (Operation.LAST, bytes([33]), r"A device must take 32 bytes and give \d+ at the most, but it took 33 and gave 0.*"),
    (Operation.READ, bytes(8), r"A device must give \d+ bytes for \d+ words, but it gave 7; build its bitstream again"),
], ids=["greeting", "unplugged while it greets", "unplugged while it plays", "more bytes", "more taken", "words"])
def test_a_port_that_fails_and_answers_that_are_none(design, operation, answer, words):
    def used():
        device = Device(Answers(design[0].hash, operation, answer), design[1])
        if operation == Operation.READ:
            device.read_state(design[0].initial(1))
        device.infer_integers(np.zeros((4, 4), np.int64))

    with pytest.raises(ToolError, match=rf"^{words}$"):
        used()


def test_a_device_that_is_unplugged_while_it_greets(design):
    """A real port, whose other side goes."""
    pytest.importorskip("serial")
    master, slave = os.openpty()
    threading.Timer(0.2, os.close, (master,)).start()
    with pytest.raises(ToolError, match=r"^A device must stay at its port, but the port fails \(.*\); plug it in, and "
                                        r"run the same command again$"):
        Device.open(os.ttyname(slave), design[1])
    os.close(slave)


def test_a_port_that_is_missing_is_refused(design, tmp_path):
    pytest.importorskip("serial")
    with pytest.raises(Refusal, match=r"^The port .*/none must be a serial port that nobody else has open, but"):
        Device.open(str(tmp_path / "none"), design[1])


def test_a_port_that_is_busy_is_refused(design):
    pytest.importorskip("serial")
    master, slave = os.openpty()
    taken = opened(os.ttyname(slave))
    with pytest.raises(Refusal, match=r"nobody else has open, but it cannot be opened"):
        Device.open(os.ttyname(slave), design[1])
    taken.close()
    os.close(master)
    os.close(slave)


def test_an_input_of_another_size_is_refused(design):
    device = Device(Told(design[0].hash), design[1])
    with pytest.raises(Refusal, match=r"^The input of this device must be vectors of 4 values, not an array of shape "
                                      r"\(3,\)"):
        device.infer(np.zeros(3))


def test_the_host_finds_frames_among_anything():
    rng, finder = random.Random(2), Unframer()
    contents = [rng.randbytes(rng.randrange(1, 60)) for _ in range(200)]
    stream = b"".join(frame(each) + rng.randbytes(rng.randrange(9)).replace(bytes([FLAG]), b"") for each in contents)
    assert list(finder.feed(stream)) == contents


def test_a_greeting_of_another_size_is_refused():
    with pytest.raises(ValueError, match=r"^A greeting must have 22 bytes, not 3$"):
        Hello.parse(bytes(3))
    assert Operation.HELLO == 0
