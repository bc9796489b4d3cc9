"""The test bench of `test_bus_top.py`, which cocotb runs beside the simulator: a host on the bus, its streams."""
import json
import os
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, Timer
from cocotbext.axi import AxiLiteBus, AxiLiteMaster

BASE = 0x1000


class Host:
    """Words on the bus; every answer with its response."""

    def __init__(self, dut):
        self._master = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axi"), dut.s_axi_aclk, dut.s_axi_aresetn,
                                     reset_active_level=False)

    async def read(self, address):
        found = await self._master.read(address, 4)
        return int.from_bytes(found.data, "little"), int(found.resp)

    async def word(self, address):
        found, response = await self.read(address)
        assert response == 0, f"{address:#x} is refused"
        return found

    async def write(self, address, word, size=4):
        return int((await self._master.write(address, word.to_bytes(4, "little")[:size])).resp)

    async def play(self, operations):
        """Operations of `circulant.sim.configuration`; returns what was read."""
        found = []
        for kind, address, value, mask in operations:
            if kind == 0:
                assert await self.write(BASE + 4 * address, value) == 0
            elif kind == 1:
                while await self.word(BASE + 4 * address) & mask != value:
                    pass
            else:
                found.append(await self.word(BASE + 4 * address))
        return found


class Streams:
    """Both streams: what is sent, and everything that comes."""

    def __init__(self, dut):
        self._dut, self.came = dut, []
        dut.s_axis_tvalid.value, dut.m_axis_tready.value = 0, 1

    async def send(self, beats):
        """Beats (last, data), each until it is taken; signals change at falling edges."""
        dut = self._dut
        await FallingEdge(dut.clk)
        for last, data in beats:
            dut.s_axis_tdata.value, dut.s_axis_tlast.value, dut.s_axis_tvalid.value = int(data, 16), last, 1
            taken = False
            while not taken:
                await Timer(1, "ns")
                taken = bool(dut.s_axis_tready.value)
                await FallingEdge(dut.clk)
        dut.s_axis_tvalid.value = 0

    async def collect(self):
        dut = self._dut
        while True:
            await FallingEdge(dut.clk)
            await Timer(1, "ns")
            if dut.m_axis_tvalid.value and dut.m_axis_tready.value:
                self.came.append((int(dut.m_axis_tlast.value), int(dut.m_axis_tdata.value)))

    async def outputs(self, count):
        """The beats that come until there are so many, in the end all there were."""
        while len(self.came) < count:
            await FallingEdge(self._dut.clk)
        await Timer(300, "ns")
        found, self.came = self.came, []
        return found


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def host(dut):
    job = json.loads(Path(os.environ["CIRCULANT_BUS_JOB"]).read_text())
    found = {}
    cocotb.start_soon(Clock(dut.clk, 10, unit="ns").start())
    cocotb.start_soon(Clock(dut.s_axi_aclk, job["bus_ps"], unit="ps").start())
    streams = Streams(dut)
    dut.rst.value, dut.s_axi_aresetn.value = 1, 0
    on_bus = Host(dut)
    await Timer(200, "ns")
    await FallingEdge(dut.clk)
    dut.rst.value, dut.s_axi_aresetn.value = 0, 1
    await Timer(100, "ns")
    cocotb.start_soon(streams.collect())

    # Who it is, what it refuses.
    found["id"] = [await on_bus.word(4 * n) for n in range(10)]
    found["refused"] = [(await on_bus.read(0x40))[1], (await on_bus.read(0xFFC))[1], await on_bus.write(0x00, 1),
                        await on_bus.write(0x3C, 1, size=2), await on_bus.write(BASE, 1, size=1)]
    found["errors"] = [await on_bus.word(0x2C), await on_bus.write(0x2C, 4), await on_bus.word(0x2C)]

    # A sequence; the same after a reset in the middle of another one.
    await streams.send(job["own"]["given"])
    found["own"] = await streams.outputs(job["count"])
    half = job["own"]["given"][:len(job["own"]["given"]) // 2]
    found["idle"] = await on_bus.word(0x28)
    await streams.send(half)
    found["busy"] = await on_bus.word(0x28)
    await on_bus.write(0x3C, 1)
    await Timer(300, "ns")
    found["after_reset"] = await on_bus.word(0x28)
    streams.came.clear()
    await streams.send(job["own"]["given"])
    found["again"] = await streams.outputs(job["count"])

    # Another network through the bus, and a state in the middle of a sequence.
    await on_bus.play(job["load"])
    await streams.send(job["other"]["given"])
    found["other"] = await streams.outputs(job["count"])
    await streams.send(half)
    found["state"] = await on_bus.play(job["save"])
    found["sequences"] = await on_bus.word(0x38)
    first = await on_bus.word(0x30)
    found["cycles"] = [first, await on_bus.word(0x34), await on_bus.word(0x30)]

    # A wrong end, and a reset of the core's clock alone of one cycle.
    await streams.send([(1, job["own"]["given"][0][1])])
    found["malformed"] = await on_bus.word(0x2C)
    await FallingEdge(dut.clk)
    dut.rst.value = 1
    await FallingEdge(dut.clk)
    dut.rst.value = 0
    found["cleared"] = [await on_bus.word(0x2C), await on_bus.word(0x38)]
    Path(job["into"]).write_text(json.dumps(found))
