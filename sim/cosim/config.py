"""The host at the configuration port: plays operations, and nothing else happens meanwhile."""
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from circulant.sim.configuration import CONTROL, HOLD, READ, WAIT, WRITE
from circulant.sim.cosim.axi_stream import Fault

__all__ = ["Config"]


class Config:
    """
    Members:
        held: no input may be taken.

    Parameters:
        signals: names of the port's signals by what they are.
        step: waits for the next rising edge and returns its cycle.
        patience: cycles after which an answer is missing.
    """

    def __init__(self, dut: Any, signals: Mapping[str, str], step: Callable[[], Awaitable[int]], patience: int) -> None:
        self._ports = {name: getattr(dut, signal) for name, signal in signals.items()}
        self._step, self._patience = step, patience
        self.held = False
        self._drive(we=0, re=0, addr=0, wdata=0)

    async def play(self, operations: Iterable[Sequence[int]]) -> list[int]:
        """Returns the words that were read.

        Raises:
            Fault: when an answer is missing, or not the one that is waited for.
        """
        words = []
        for kind, address, value, mask in operations:
            if kind == WRITE:
                self._drive(we=1, addr=address, wdata=value)
                await self._step()
                self._drive(we=0)
                if address == CONTROL:
                    self.held = bool(value & HOLD)
            elif kind == READ:
                words.append(await self._get(address))
            elif kind == WAIT:
                for left in reversed(range(self._patience)):
                    if await self._get(address) & mask == value:
                        break
                    if not left:
                        raise Fault("deaf", await self._step())
        return words

    async def _get(self, address: int) -> int:
        self._drive(re=1, addr=address)
        await self._step()
        self._drive(re=0)
        for _ in range(self._patience):
            cycle = await self._step()
            if int(self._ports["rvalid"].value):
                return int(self._ports["rdata"].value)
        raise Fault("deaf", cycle)

    def _drive(self, **values: int) -> None:
        for name, value in values.items():
            self._ports[name].value = value
