"""A design behind a UART: what every board holds, and what a simulated device is."""
from collections.abc import Mapping
from typing import Any

from amaranth.hdl import ClockSignal, Const, Instance, Module, ResetSignal, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from circulant.boards.link.server import Server
from circulant.boards.link.uart import UartReceiver, UartTransmitter
from circulant.hw.emit.target import Platform
from circulant.hw.stream.pipeline import connect
from circulant.sim import design

__all__ = ["LinkedDesign"]


class LinkedDesign(wiring.Component):
    """UART, `Server`, and an instance of the design's top.

    Parameters:
        manifest: of the design.
        divisor: clock cycles of a bit of the UART.

    Members:
        rx: line from the host's UART.
        tx: line to the host's UART.
    """

    def __init__(self, manifest: Mapping[str, Any], *, divisor: int) -> None:
        design.require_single(manifest, "A bitstream with a link to a host")
        self._ports = design.ports(manifest)
        self._top, self._divisor = manifest["top"], divisor
        self._clock, self._reset = manifest["clock"], manifest["reset"]
        self._ends = manifest["input"]["prefix"], manifest["output"]["prefix"]
        inputs, outputs = (self._ports[f"{end}_tdata"]["bits"] for end in self._ends)
        self._server = Server(inputs=inputs, outputs=outputs, network=manifest["network"],
                              configures="configuration" in manifest)
        super().__init__({"rx": In(1, init=1), "tx": Out(1, init=1)})

    @property
    def outputs(self) -> list[str]:
        """Outputs of the design's top."""
        return [name for name, port in self._ports.items() if port["direction"] == "out"]

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        m.submodules.receiver = receiver = UartReceiver(self._divisor)
        m.submodules.transmitter = transmitter = UartTransmitter(self._divisor)
        m.submodules.server = server = self._server
        connect(m, receiver.o, server.i)
        connect(m, server.o, transmitter.i)
        m.d.comb += [receiver.rx.eq(self.rx), self.tx.eq(transmitter.tx)]

        # The design starts anew with the device, and when the host asks for it.
        reset = Signal(init=1)
        flags = {name: Signal(name=name) for name in ("overflow", "malformed")}
        m.d.sync += reset.eq(server.reset)
        joined = flags | {f"{end}_t{signal}": getattr(server, f"{own}_{signal}") for end, own in
                          zip(self._ends, "sm", strict=True) for signal in ("data", "valid", "ready", "last")}
        joined |= {name: getattr(server, name) for name in self._ports if name.startswith("cfg_")}
        m.submodules.design = Instance(
            self._top, **{f"i_{self._clock}": ClockSignal(), f"i_{self._reset}": reset | ResetSignal()},
            **{f"{port['direction'][0]}_{name}": joined[name] for name, port in self._ports.items() if name in joined})
        m.d.comb += server.flags.eq(sum((flags[name] << n for n, name in enumerate(flags)), Const(0)))
        return m
