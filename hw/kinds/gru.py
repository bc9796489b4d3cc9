"""The cells of a GRU: one with the reset gate after the matrix, two with it before, between which the matrix is."""

from amaranth.hdl import Module, Signal, Value, signed

from circulant.hw.arith.activation import Activation, activation_latency
from circulant.hw.arith.fixed import round_shift, rounded_sum, saturate
from circulant.hw.array.layer_programs import matrices
from circulant.hw.array.program import Matrix, Part, parts
from circulant.hw.components.cell import Cell, cells_of, register, registers
from circulant.hw.emit.target import Platform
from circulant.hw.stream.pipeline import LEVELS, delay, when
from circulant.sim.arith.activation import Pwl
from circulant.sim.arith.circulant import JointProduct
from circulant.sim.arith.fixed import Format
from circulant.sim.kinds.gru import Gru, GruShare

__all__ = ["CandidateCell", "GruCell", "ResetCell"]


class GruCell(Cell[Gru]):
    """A GRU with the reset gate after the matrix; y and next are both h, ``latency`` cycles later.

    Members:
        r: pre-activation of the reset gate.
        z: pre-activation of the update gate.
        nx: pre-activation of the candidate, the share of the input.
        nh: pre-activation of the candidate, the share of the state.
    """

    rows = ("r", "z", "nx", "nh")
    """Pre-activations: of the gates, and of the candidate over x and over h."""

    @staticmethod
    def tables(layer: Gru) -> list[tuple[str, Pwl]]:
        return [("sigmoid", layer.sigmoid)] * 2 + [("tanh", layer.tanh)]

    @staticmethod
    def factors(layer: Gru) -> list[tuple[int, int]]:
        """The reset gate, the update gate."""
        gate = layer.sigmoid.output.width
        return [(gate, layer.pre_format.width), (gate, gate + 1)]

    @staticmethod
    def latency(layer: Gru, levels: int = LEVELS) -> int:
        """Reset gate, its product, the sum; candidate, difference, update, sum."""
        return 2 * activation_latency(levels) + 2 + 3 * registers(levels)

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        layer, a, some = self._layer, activation_latency(self._levels), registers(self._levels)
        width, state = layer.pre_format.width, layer.output_format

        # The gates.
        r, z = (self._activation(m, layer.sigmoid, x, name=f"sigmoid_{gate}", table="sigmoid").y
                for gate, x in (("r", self.r), ("z", self.z)))

        # The candidate: n = tanh(nx + r · nh).
        reset = register(m, r * delay(m, self.nh, a, name="nh_late"), state.width + width, "reset")
        total = rounded_sum(reset, state.frac, delay(m, self.nx, a + 1, name="nx_late"))
        n = self._activation(m, layer.tanh, self._argument(m, total, layer.tanh, "pre"), name="tanh_n", table="tanh",
                             early=not some)

        # The update: h' = n + z · (h - n).
        wait = a + 1 + some
        h = delay(m, self.state, a + wait - 1 + some, name="h_late")
        value = _updated(m, n, delay(m, z, wait, name="z_wait"), h, state=state, levels=self._levels)
        m.d.comb += [self.y.eq(value), self.next.eq(value)]
        return m


def _updated(m: Module, candidate: Activation, z: Value, h: Value, *, state: Format, levels: int) -> Signal:
    """n + z (h - n), as many cycles later as there are registers: of the difference, the product, the sum. Where there
    are few, the difference is there with n, as h comes a cycle before z."""
    some = registers(levels)
    difference = register(m, h - (candidate.y if some else candidate.soon), state.width + 1, "difference")
    update = register(m, delay(m, z, some, name="z_late") * difference, 2 * state.width + 1, "update")
    total = rounded_sum(update, state.frac, delay(m, candidate.y, some + 1, name="n_late"))
    return when(m, saturate(total, state.width), signed(state.width), kept=bool(some), name="value")


class ResetCell(Cell[Gru]):
    """The gates of a GRU with the reset gate before the matrix: y is r * h; gate is z, for the candidate.

    Members:
        r: pre-activation of the reset gate.
        z: pre-activation of the update gate.
        gate: the update gate.
    """

    rows = ("r", "z")
    own = ""

    @staticmethod
    def tables(layer: Gru) -> list[tuple[str, Pwl]]:
        return [("sigmoid", layer.sigmoid)] * 2

    @staticmethod
    def factors(layer: Gru) -> list[tuple[int, int]]:
        """The reset gate."""
        gate = layer.sigmoid.output.width
        return [(gate, gate)]

    @staticmethod
    def latency(layer: Gru, levels: int = LEVELS) -> int:
        """Gate, product, rounding."""
        return activation_latency(levels) + 1 + registers(levels)

    @staticmethod
    def outputs(layer: Gru) -> dict[str, int]:
        return {"y": layer.output_format.width, "gate": layer.output_format.width}

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        layer, state = self._layer, self._layer.output_format
        a, few = activation_latency(self._levels), registers(self._levels)
        r, z = (self._activation(m, layer.sigmoid, x, name=f"sigmoid_{gate}", table="sigmoid").y
                for gate, x in (("r", self.r), ("z", self.z)))
        product = register(m, r * delay(m, self.state, a, name="h_late"), 2 * state.width, "product")
        value = when(m, saturate(round_shift(product, state.frac), state.width), signed(state.width), kept=bool(few),
                     name="value")
        m.d.comb += [self.y.eq(value), self.gate.eq(delay(m, z, 1 + few, name="z_late"))]
        return m


class CandidateCell(Cell[Gru]):
    """Candidate and update of a GRU with the reset gate before the matrix; y and next are both h.

    Members:
        n: pre-activation of the candidate.
        gate: the update gate.
    """

    rows = ("n",)

    @staticmethod
    def tables(layer: Gru) -> list[tuple[str, Pwl]]:
        return [("tanh", layer.tanh)]

    @staticmethod
    def factors(layer: Gru) -> list[tuple[int, int]]:
        """The update gate."""
        gate = layer.sigmoid.output.width
        return [(gate, gate + 1)]

    @staticmethod
    def latency(layer: Gru, levels: int = LEVELS) -> int:
        """Candidate, difference, update, sum."""
        return activation_latency(levels) + 1 + 2 * registers(levels)

    @staticmethod
    def memories(layer: Gru) -> dict[str, int]:
        return {"state": layer.output_format.width, "gate": layer.output_format.width}

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        layer, a, some = self._layer, activation_latency(self._levels), registers(self._levels)
        n = self._activation(m, layer.tanh, self.n, name="tanh_n", table="tanh", early=not some)
        z, h = delay(m, self.gate, a, name="z_wait"), delay(m, self.state, a - 1 + some, name="h_late")
        value = _updated(m, n, z, h, state=layer.output_format, levels=self._levels)
        m.d.comb += [self.y.eq(value), self.next.eq(value)]
        return m


@matrices.register
def _(layer: Gru) -> list[Matrix]:
    x = layer.gates.parts[0].columns // layer.gates.block_size
    if isinstance(layer.candidate, JointProduct):
        w, u = layer.candidate.parts
        return [Matrix(parts(layer.gates, 0, x), ("r", "z")), Matrix((Part(w, 0, 0), Part(u, 1, 0)), ("n",), stage=1)]
    assert layer.candidate_recurrent is not None
    return [Matrix((Part(layer.candidate, 0, 0),), ("nx",), completes=False),
            Matrix(parts(layer.gates, 0, x), ("r", "z"), completes=False),
            Matrix((Part(layer.candidate_recurrent, 0, x),), ("nh",))]


@matrices.register
def _(layer: GruShare) -> list[Matrix]:
    """The matrices, that of the gates first, as it alone has all columns; both parts of U_n complete a block."""
    x, made = layer.gates.parts[0].columns // layer.gates.block_size, layer.products
    return [Matrix(parts(layer.gates, 0, x), ("r", "z"), completes=False),
            Matrix((Part(made["candidate_input"], 0, layer.at),), ("nx",), completes=False),
            Matrix((Part(made["candidate_others"], 0, layer.others_at), Part(made["candidate_recurrent"], 0, x)),
                   ("nh",))]


@cells_of.register
def _(layer: Gru) -> list[type[Cell]]:
    return [GruCell] if layer.reset == "after" else [ResetCell, CandidateCell]
