"""A host of a reloadable top: plays vectors and works at the configuration port, one after the other."""
from collections.abc import Sequence
from typing import Any

import numpy as np

from circulant.hw.top import Top, container_bits
from circulant.sim.configuration import READ, WAIT, WRITE, Operation
from circulant.sim.golden.network import Network
from tests.hw.simulate import run

DEADLINE = 20_000


class Host:
    """Acts that are simulated by `play`, all in one run from the initial state.

    Members:
        got: for each act of vectors the outputs (vectors, elements); for each one of operations the words read.
    """

    def __init__(self, network: Network, top: Top, *, stall: float = 0.0) -> None:
        self._top, self._stall = top, stall
        self._ports = ((network.input_format.width, network.flow.size, top.input_block),
                       (network.output_format.width, network.end.size, top.output_block))
        self._acts: list[Any] = []
        self.got: list[Any] = []

    def vectors(self, x: Any, expected: int, ends: Sequence[int] | bool) -> None:
        """Vectors (n, inputs) of which those with ``ends`` are the last of their sequence, and how many come out."""
        self._acts.append((np.asarray(x), expected, np.broadcast_to(ends, len(x))))

    def operations(self, operations: Sequence[Operation]) -> None:
        self._acts.append(list(operations))

    def play(self) -> list[Any]:
        self.got = []
        run(self._top, self._agent())
        return self.got

    def _agent(self) -> Any:
        rng = np.random.default_rng(0)
        yield {}
        for act in self._acts:
            yield from self._operate(act) if isinstance(act, list) else self._exchange(rng, *act)

    def _operate(self, operations: list[Operation]) -> Any:
        words = []
        for kind, address, value, mask in operations:
            if kind == WRITE:
                yield {"cfg_we": 1, "cfg_re": 0, "cfg_addr": address, "cfg_wdata": value}
                yield {"cfg_we": 0}
            while kind in (WAIT, READ):
                shown = yield {"cfg_re": 1, "cfg_addr": address}
                for _ in range(DEADLINE):
                    if shown["cfg_rvalid"]:
                        break
                    shown = yield {"cfg_re": 0}
                assert shown["cfg_rvalid"]
                if kind == READ:
                    words.append(shown["cfg_rdata"])
                    break
                if shown["cfg_rdata"] & mask == value:
                    break
        self.got.append(words)

    def _exchange(self, rng: np.random.Generator, x: Any, expected: int, ends: Any) -> Any:
        (width, size, k), (out_width, out_size, out_k) = self._ports
        sent = []
        for vector, last in zip(x.tolist(), ends, strict=True):
            beats = -(-size // k)
            padded = vector + [0] * (beats * k - size)
            for n in range(beats):
                bits, each = container_bits(width), padded[n * k:(n + 1) * k]
                word = sum((value & (1 << bits) - 1) << (bits * j) for j, value in enumerate(each))
                sent.append((word, int(last and n == beats - 1)))
        beats, values, at = -(-out_size // out_k), [], 0
        offering = False
        for _ in range(DEADLINE):
            offering = offering or (at < len(sent) and rng.random() >= self._stall)
            ready = int(rng.random() >= self._stall)
            drive = {"s_axis_tvalid": int(offering), "m_axis_tready": ready}
            if offering:
                drive |= {"s_axis_tdata": sent[at][0], "s_axis_tlast": sent[at][1]}
            shown = yield drive
            if offering and shown["s_axis_tready"]:
                at, offering = at + 1, False
            if ready and shown["m_axis_tvalid"]:
                bits = container_bits(out_width)
                word = shown["m_axis_tdata"]
                block = [word >> (bits * j) & (1 << bits) - 1 for j in range(out_k)]
                values += [value - (value >> (bits - 1) << bits) for value in block]
            if at == len(sent) and len(values) == expected * beats * out_k:
                break
        yield {"s_axis_tvalid": 0, "m_axis_tready": 0}
        got = np.array(values).reshape(-1, beats * out_k)
        assert not got[:, out_size:].any()
        self.got.append(got[:, :out_size])


def equal_to_golden(network: Network, top: Top) -> np.ndarray:
    """Plays two sequences of four steps with stalls, each output word equal to the golden model's; returns their
    inputs (2, 4, size)."""
    x = np.random.default_rng(1).integers(network.input_format.lo, network.input_format.hi + 1,
                                          (2, 4, network.flow.size))
    wanted = network.run_integers(x).reshape(-1, network.end.size)
    host = Host(network, top, stall=0.3)
    host.vectors(x.reshape(-1, network.flow.size), len(wanted), np.arange(8) % 4 == 3)
    (played,) = host.play()
    assert played.tolist() == wanted.tolist()
    return x
