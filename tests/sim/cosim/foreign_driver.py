"""A cocotb test that knows nothing of this project: frames go in and come out through cocotbext-axi, with pauses."""
import random
from pathlib import Path

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles
from cocotbext.axi import AxiStreamBus, AxiStreamSink, AxiStreamSource


def pauses(seed):
    """Whether to pause, cycle by cycle: in spells of seldom, often and never."""
    drawn = random.Random(seed)
    while True:
        odds = drawn.choice((0.0, 0.2, 0.5, 0.9))
        yield from (drawn.random() < odds for _ in range(drawn.randrange(200)))


@cocotb.test()
async def frames(dut):
    """Each frame of ``sent.npz`` in its turn; those that come are written to ``received.npz``."""
    cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
    source = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis"), dut.clk, dut.rst)
    sink = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis"), dut.clk, dut.rst)
    source.set_pause_generator(pauses(1))
    sink.set_pause_generator(pauses(2))
    dut.rst.value = 1
    await ClockCycles(dut.clk, 4)
    dut.rst.value = 0
    with np.load("sent.npz") as sent:
        for name in sent.files:
            await source.send(sent[name].tobytes())
        received = [bytes((await sink.recv()).tdata) for _ in sent.files]
    await ClockCycles(dut.clk, 200)
    assert sink.empty()
    np.savez(Path("received.npz"), *(np.frombuffer(frame, np.uint8) for frame in received))
