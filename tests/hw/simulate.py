"""Simulations as pure functions: a component and what goes into it, cycle by cycle or as a stream; what comes out.

Around a component stand agents, generators: in each cycle one yields the values that it drives, by the path of a port
("i.valid"), and is sent what all ports showed at the end of that cycle. What is not driven anew stays.
"""
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from amaranth.hdl import Cat, ClockDomain, Module, Shape, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In
from amaranth.sim import Simulator
from hypothesis import settings

from tests.hw.circuit import Circuit

RESET = "reset"
"""Path of the reset of the clock domain, beside those of the ports."""

SETTLED = 50
"""Silent cycles in which what is too much of an output has to show itself."""

Ports = Mapping[str, Any]
Agent = Generator[Ports, Ports, None]


def encode(shape: Any, value: Any) -> int:
    """The bits of a number, of a list with a value per element, or of a dict with a value per field."""
    if isinstance(shape, data.ArrayLayout):
        assert len(value) == shape.length, f"{shape.length} values make this payload, not {len(value)}"
        width = Shape.cast(shape.elem_shape).width
        return sum(encode(shape.elem_shape, element) << (width * j) for j, element in enumerate(value))
    if isinstance(shape, data.StructLayout):
        assert value.keys() == shape.members.keys(), f"{list(shape.members)} make this payload, not {list(value)}"
        return sum(encode(field.shape, value[name]) << field.offset for name, field in shape)
    shape = Shape.cast(shape)
    least = -(1 << shape.width - 1) if shape.signed else 0
    assert least <= value < least + (1 << shape.width), f"{value} is no number of {shape!r}"
    return int(value) & ((1 << shape.width) - 1)


def decode(shape: Any, bits: int) -> Any:
    """What `encode` made ``bits`` of."""
    if isinstance(shape, data.ArrayLayout):
        width = Shape.cast(shape.elem_shape).width
        return [decode(shape.elem_shape, bits >> (width * j)) for j in range(shape.length)]
    if isinstance(shape, data.StructLayout):
        return {name: decode(field.shape, bits >> field.offset) for name, field in shape}
    shape = Shape.cast(shape)
    bits &= (1 << shape.width) - 1
    return bits - (1 << shape.width) if shape.signed and bits >> (shape.width - 1) else bits


class _Simulation:
    """A component, compiled; runs any number of times, each time from its initial state."""

    def __init__(self, dut: wiring.Component) -> None:
        m = Module()
        m.domains.sync = domain = ClockDomain()
        m.submodules.dut = dut
        every = {".".join(map(str, path)): (member, Value.cast(port))
                 for path, member, port in dut.signature.flatten(dut)}
        ports = {path: found for path, found in every.items() if len(found[1])}
        self._driven = {path: value for path, (member, value) in ports.items() if member.flow is In}
        self._driven |= {RESET: domain.rst}
        self._shapes = {path: member.shape for path, (member, _) in every.items()} | {RESET: 1}
        self._values = {path: value for path, (_, value) in ports.items()}
        self._last: dict[str, tuple[int, Any]] = {}
        self._ran = False
        self._start(m, domain)

    def run(self, agents: Sequence[Agent]) -> None:
        """Simulate among agents until each of them has returned."""
        raise NotImplementedError

    def _start(self, m: Module, domain: ClockDomain) -> None:
        raise NotImplementedError

    def _cycles(self, agents: Sequence[Agent]) -> Generator[dict[str, int], Sequence[int], None]:
        """Bits to drive in each cycle; is sent the bits of all ports at its end."""
        drives = [next(agent) for agent in agents]
        while agents:
            words = {path: encode(self._shapes[path], value) for drive in drives for path, value in drive.items()}
            bits = yield {path: word for path, word in words.items() if path in self._driven}
            shown = {path: self._decoded(path, each) for path, each in zip(self._values, bits, strict=True)}
            running, agents, drives = agents, [], []
            for agent in running:
                try:
                    drives.append(agent.send(shown))
                    agents.append(agent)
                except StopIteration:
                    pass

    def _decoded(self, path: str, bits: int) -> Any:
        """Most ports show what they showed before."""
        if self._last.get(path, (None,))[0] != bits:
            self._last[path] = bits, decode(self._shapes[path], bits)
        return self._last[path][1]


class Fast(_Simulation):
    """A component as a Python program."""

    def _start(self, m: Module, domain: ClockDomain) -> None:
        values = self._values | self._driven
        self._circuit = Circuit(m, domain, list(values.values()))
        self._places = {path: place for place, path in enumerate(values)}

    def run(self, agents: Sequence[Agent]) -> None:
        circuit = self._circuit
        circuit.reset()
        cycles = self._cycles(agents)
        try:
            driven = next(cycles)
            while True:
                for path, bits in driven.items():
                    circuit.set(self._places[path], bits)
                circuit.settle()
                bits = [circuit.get(self._places[path]) for path in self._values]
                circuit.tick()
                driven = cycles.send(bits)
        except StopIteration:
            pass


class Amaranths(_Simulation):
    """A component in Amaranth's simulator."""

    def _start(self, m: Module, domain: ClockDomain) -> None:
        self._agents: Sequence[Agent] = ()
        self._simulator = Simulator(m)
        self._simulator.add_clock(1e-6)
        self._simulator.add_testbench(self._bench)

    def run(self, agents: Sequence[Agent]) -> None:
        if self._ran:
            self._simulator.reset()
        self._agents, self._ran = agents, True
        self._simulator.run()

    async def _bench(self, ctx: Any) -> None:
        cycles = self._cycles(self._agents)
        try:
            driven = next(cycles)
            while True:
                if driven:  # in one assignment, since the circuit settles after each
                    target, bits = Cat(self._driven[path] for path in driven), 0
                    for path, value in reversed(driven.items()):
                        bits = bits << len(self._driven[path]) | value
                    ctx.set(target, bits)
                _, _, *shown = await ctx.tick().sample(*map(Value.as_unsigned, self._values.values()))
                driven = cycles.send(shown)
        except StopIteration:
            pass


@lru_cache(maxsize=8)  # A component that is simulated again is not compiled again.
def _simulation(dut: wiring.Component) -> _Simulation:
    return (Amaranths if settings.get_current_profile_name() == "soak" else Fast)(dut)


def run(dut: wiring.Component, *agents: Agent) -> None:
    """Simulate ``dut`` among ``agents``, from its initial state until each of them has returned."""
    _simulation(dut).run(agents)


def trace(dut: wiring.Component, columns: Mapping[str, Sequence[Any]], *, extra: int = 0) -> dict[str, list[Any]]:
    """What each port shows in each cycle while the inputs take the values of ``columns``, and ``extra`` cycles more."""
    shown: list[Ports] = []
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]

    def agent() -> Agent:
        for drive in [*rows, *[{}] * extra]:
            ports = yield drive
            shown.append(ports)

    run(dut, agent())
    return {path: [ports[path] for ports in shown] for path in shown[0]}


@dataclass
class Transfers:
    """What passed through a stream, and in which cycles; ``done`` when its source has nothing left."""

    payloads: list[Any] = field(default_factory=list)
    cycles: list[int] = field(default_factory=list)
    done: bool = False


def source(path: str, payloads: Sequence[Any], passed: Transfers, *, stall: float = 0.0, seed: int = 0) -> Agent:
    """Offers ``payloads`` to a stream, one after the other, and in a share ``stall`` of the cycles none (but junk)."""
    rng, cycle = np.random.default_rng((seed, 1)), 0
    for payload in payloads:
        while rng.random() < stall:
            yield {f"{path}.valid": 0, f"{path}.payload": payloads[rng.integers(len(payloads))]}
            cycle += 1
        shown = yield {f"{path}.valid": 1, f"{path}.payload": payload}
        while not shown[f"{path}.ready"]:
            shown = yield {}
            cycle += 1
        passed.payloads.append(payload)
        passed.cycles.append(cycle)
        cycle += 1
    passed.done = True
    yield {f"{path}.valid": 0}


def sink(path: str, passed: Transfers, sources: Sequence[Transfers], *,
         stall: float = 0.0, seed: int = 0, quiet: int = 100, count: int | None = None) -> Agent:
    """Takes what a stream offers, in a share ``stall`` of the cycles nothing; returns after ``quiet`` silent cycles.

    Behind ``count`` payloads `SETTLED` silent cycles are enough, except in a soak: an idle circuit is simulated no
    faster than a busy one.

    Raises:
        AssertionError: when an offer that was not taken changes, or when silence comes before the sources are done.
    """
    rng, cycle, silent, offered, progress = np.random.default_rng((seed, 2)), 0, 0, None, 0
    settled = quiet if settings.get_current_profile_name() == "soak" else min(quiet, SETTLED)
    while silent < (quiet if count is None or len(passed.payloads) < count else settled):
        ready = bool(rng.random() >= stall)
        shown = yield {f"{path}.ready": ready}
        offer = shown[f"{path}.payload"] if shown[f"{path}.valid"] else None
        assert offered in (None, offer), (
            f"{path} must keep what it offered until it is taken, {offered}, not show {offer}")
        if offer is not None and ready:
            passed.payloads.append(offer)
            passed.cycles.append(cycle)
        offered = None if ready else offer
        before, progress = progress, len(passed.payloads) + sum(len(came.payloads) for came in sources)
        silent, cycle = (silent + 1 if progress == before else 0), cycle + 1
    assert all(came.done for came in sources), (
        f"Deadlock: {[len(came.payloads) for came in sources]} payloads were accepted and {len(passed.payloads)} given")


def restarted(first: Agent, second: Agent, *, at: int, idle: Ports) -> Agent:
    """``first`` for ``at`` cycles, a cycle of reset with ``idle`` inputs, then ``second``."""
    drive = next(first)
    for _ in range(at):
        shown = yield drive
        try:
            drive = first.send(shown)
        except StopIteration:
            first = _nothing()
            drive = next(first)
    yield {**idle, RESET: 1}
    drive = {**next(second), RESET: 0}
    while True:
        shown = yield drive
        try:
            drive = second.send(shown)
        except StopIteration:
            return


def _nothing() -> Agent:
    while True:
        yield {}


def stream(dut: wiring.Component, payloads: Sequence[Any], *, stall_i: float = 0.0, stall_o: float = 0.0, seed: int = 0,
           reset_at: int | None = None, quiet: int = 100, count: int | None = None) -> list[Any]:
    """What stream ``o`` gives for ``payloads`` at stream ``i``, which stand still in shares of the cycles.

    With ``reset_at`` all begins anew after so many cycles, and only what comes then is returned. ``quiet`` has to be
    longer than ``dut`` ever thinks; where ``count`` payloads have come, it has thought.
    """
    return transfers(dut, payloads, stall_i=stall_i, stall_o=stall_o, seed=seed, reset_at=reset_at, quiet=quiet,
                     count=count)[1].payloads


def cycles(dut: wiring.Component, payloads: Sequence[Any], *, quiet: int = 100,
           count: int | None = None) -> tuple[list[int], list[int]]:
    """The cycles in which the payloads enter ``dut``, and those in which its own leave, when nothing stalls."""
    came, went = transfers(dut, payloads, quiet=quiet, count=count)
    return came.cycles, went.cycles


def transfers(dut: wiring.Component, payloads: Sequence[Any], *, stall_i: float = 0.0, stall_o: float = 0.0,
              seed: int = 0, reset_at: int | None = None, quiet: int = 100,
              count: int | None = None) -> tuple[Transfers, Transfers]:
    """What passes through streams ``i`` and ``o``, as in `stream`, and when."""
    def agents() -> tuple[Transfers, Transfers, Agent, Agent]:
        came, went = Transfers(), Transfers()
        return (came, went, source("i", payloads, came, stall=stall_i, seed=seed),
                sink("o", went, [came], stall=stall_o, seed=seed, quiet=quiet, count=count))

    came, went, feed, drain = agents()
    if reset_at is not None:
        (_, _, first_feed, first_drain), (came, went, feed, drain) = (came, went, feed, drain), agents()
        feed = restarted(first_feed, feed, at=reset_at, idle={"i.valid": 0})
        drain = restarted(first_drain, drain, at=reset_at, idle={"o.ready": 0})
    run(dut, feed, drain)
    return came, went
