"""The C of a whole network: its layers in a row, and the functions that a user calls."""
import re
from collections.abc import Sequence

from circulant.hw.c import activation, gru, linear, lstm, residual, scale
from circulant.hw.c.names import identifier, identifiers
from circulant.hw.c.reduce import argmax, over_time
from circulant.hw.c.unit import Array, Stage, Unit, render, stage
from circulant.hw.c.value import storage
from circulant.sim.artifact import Json
from circulant.sim.golden.network import Network

__all__ = ["Source"]

KINDS = (activation, argmax, gru, linear, lstm, over_time, residual, scale)
"""Where the kinds of layers are written in C: with these files their implementations of `stage` are there."""


class Source:
    """The C of a network without its self-test.

    Parameters:
        network: what it computes.

    Members:
        name: prefix of everything public.
        code, header: the texts of ``<name>.c`` and ``<name>.h``.
        table_bytes: size of the constant tables.

    Raises:
        Refusal: when an integer on the way could leave 63 bits, or the C target does not know a layer.
    """

    def __init__(self, network: Network) -> None:
        self.network, self.name = network, identifier(network.name)
        unit = Unit(self.name)
        prefixes = identifiers([layer.name for layer in network.stages])
        made = [stage(layer, unit, prefix, foreign=n == 0)
                for n, (prefix, layer) in enumerate(zip(prefixes, network.stages, strict=True))]
        stages = [part for each in made for part in (each, *each.then)]
        self.table_bytes = unit.table_bytes

        states = [array for stage in stages for array in stage.states]
        behind = max((n + 1 for n, stage in enumerate(stages) if stage.states), default=0)
        every = [each for stage in stages for each in stage.all]
        between = [stage.output for stage in every[:-1] if not stage.states]
        end, before = stages[-1].output, _place(stages[behind - 1]) if behind else "x"
        self.header = render(
            "header.h.j2", **self.common, stages=every, table_bytes=unit.table_bytes,
            kept=states + between,
            inputs=network.flow.size, input_format=network.input_format, input_type=storage(network.input_format),
            outputs=network.end.size, output_format=network.output_format, output_type=storage(network.output_format))
        body = "\n".join([*unit.functions.values(), *(stage.text for stage in stages)])
        self.code = render(
            "network.c.j2", **self.common, body=body, states=states,
            head=_calls(stages[:behind], "x"), tail=_calls(stages[behind:], before, end))

    @property
    def common(self) -> Json:
        """Values that the templates of whole files are given."""
        network = self.network
        return {"name": self.name, "NAME": self.name.upper(), "title": re.sub(r"[^\w .,+-]", "_", network.name),
                "hash": network.hash, "sequence": network.sequence, "per_step": network.per_step}


def _place(stage: Stage) -> str:
    return f"state->{stage.output.name}"


def _calls(stages: Sequence[Stage], x: str, end: Array | None = None) -> str:
    """Calls of the stages, one after the other, from ``x`` on; the result goes to y when it is the ``end``."""
    lines = []
    for each in stages:
        y = "y" if each.output is end and not each.states else _place(each)
        lines.append(f"    {each.prefix}_layer(state, {x}, {y});")
        x = y
    if end is not None and x != "y":
        lines += [f"    for (int i = 0; i < {end.length} * LANES; i++)", f"        y[i] = {x}[i];"]
    return "\n".join(lines)
