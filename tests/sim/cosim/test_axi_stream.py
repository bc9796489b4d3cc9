from types import SimpleNamespace
from typing import Any

import pytest

from circulant.sim.cosim.axi_stream import Fault, Monitor, Patience, Port, Sink, Source


class Signal(SimpleNamespace):
    def __len__(self) -> int:
        return 8


def port(**values: int) -> Any:
    return Port(*(Signal(value=values.get(name, 0)) for name in ("data", "valid", "ready", "last")))


def test_source_keeps_a_beat_until_it_is_taken() -> None:
    p = port()
    source = Source(p, [(1, 0), (2, 1)], wait=lambda: 0, limit=2)
    moved = []
    for cycle, ready in enumerate((1, 0, 0, 1, 1, 1)):
        p.ready.value = ready
        moved.append((source.edge(cycle), p.valid.value, p.data.value if p.valid.value else None, p.last.value))
    assert moved == [(False, 1, 1, 0), (False, 1, 1, 0), (False, 1, 1, 0), (True, 1, 2, 1), (True, 0, None, 1),
                     (False, 0, None, 1)]
    assert source.accepted == [3, 4]


def test_source_shows_inverted_data_while_it_offers_nothing() -> None:
    p = port(ready=1)
    source = Source(p, [(0x0F, 1)], wait=lambda: 2, limit=1)
    seen = [(p.valid.value, p.data.value, p.last.value)]
    for cycle in range(3):
        source.edge(cycle)
        seen.append((p.valid.value, p.data.value, p.last.value))
    assert seen == [(0, 0xF0, 0)] * 3 + [(1, 0x0F, 1)]


def test_source_waits_at_its_limit() -> None:
    p = port(ready=1)
    source = Source(p, [(1, 0), (2, 1)], wait=lambda: 0, limit=1)
    for cycle in range(5):
        source.edge(cycle)
    assert (source.accepted, p.valid.value) == ([1], 0)
    source.limit = 2
    for cycle in range(5, 8):
        source.edge(cycle)
    assert source.accepted == [1, 6]


def test_sink_pauses_as_drawn() -> None:
    p = port()
    draws = iter([0, 2, 0, 1, 9])
    sink = Sink(p, pause=lambda: next(draws))
    ready = [p.ready.value]
    for _ in range(6):
        sink.edge()
        ready.append(p.ready.value)
    assert ready == [1, 0, 0, 1, 1, 0, 1]


def test_sink_that_waits_for_valid_takes_one_beat_at_a_time() -> None:
    p = port()
    sink = Sink(p, pause=lambda: 0, until_valid=True)
    ready = []
    for valid in (0, 0, 1, 1, 1, 0):
        p.valid.value = valid
        sink.edge()
        ready.append(p.ready.value)
    assert ready == [0, 0, 1, 0, 1, 0]


def test_monitor_records_beats_that_are_taken() -> None:
    p = port()
    monitor = Monitor(p)
    for cycle, (valid, ready, data, last) in enumerate([(0, 1, 9, 0), (1, 0, 5, 0), (1, 1, 5, 0), (1, 1, 6, 1)]):
        p.valid.value, p.ready.value, p.data.value, p.last.value = valid, ready, data, last
        assert monitor.edge(cycle) == bool(valid and ready)
        assert monitor.waiting == bool(valid and not ready)
    assert (monitor.cycles, monitor.data, monitor.last) == ([2, 3], [5, 6], [0, 1])


@pytest.mark.parametrize(("change", "kind"), [
    ({"valid": 0}, "withdrawn"), ({"data": 6}, "changed"), ({"last": 1}, "changed")])
def test_monitor_sees_a_waiting_beat_change(change: dict[str, int], kind: str) -> None:
    p = port(valid=1, data=5)
    monitor = Monitor(p)
    monitor.edge(1)
    for name, value in change.items():
        getattr(p, name).value = value
    with pytest.raises(Fault) as fault:
        monitor.edge(2)
    assert (fault.value.kind, fault.value.cycle) == (kind, 2)


def test_patience_ends_after_cycles_in_a_row_without_a_beat() -> None:
    patience = Patience(3)
    for cycle in range(20):
        patience.edge(cycle, cycle % 4 == 0)
    with pytest.raises(Fault) as fault:
        patience.edge(20, False)
    assert (fault.value.kind, fault.value.cycle) == ("stuck", 20)
