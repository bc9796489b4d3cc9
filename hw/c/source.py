"""The C of a whole network: its layers in a row, and the functions that a user calls."""
import re
from collections.abc import Callable, Sequence
from typing import Any

from circulant.hw.c import argmax, gru, linear, lstm
from circulant.hw.c.names import identifier, identifiers
from circulant.hw.c.unit import Array, Stage, Unit, render
from circulant.hw.c.value import storage
from circulant.sim.golden.network import Layer, Network
from circulant.sim.refusal import Refusal

__all__ = ["Source"]

EMITTERS: dict[str, Callable[..., Stage]] = {"gru": gru.emit, "linear": linear.emit, "lstm": lstm.emit,
                                             "argmax": argmax.emit}
"""Who writes the C of a kind of layer, one file each: called with unit, prefix, layer, and whether x is foreign."""


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
        prefixes = identifiers([layer.name for layer in network.layers])
        stages = [_stage(unit, prefix, layer, foreign=n == 0)
                  for n, (prefix, layer) in enumerate(zip(prefixes, network.layers, strict=True))]
        self.table_bytes = unit.table_bytes

        states = [array for stage in stages for array in stage.states]
        behind = max((n + 1 for n, stage in enumerate(stages) if stage.states), default=0)
        between = [stage.output for stage in stages[:-1] if not stage.states]
        end, before = stages[-1].output, _place(stages[behind - 1]) if behind else "x"
        self.header = render(
            "header.h.j2", **self.common, stages=stages, table_bytes=unit.table_bytes,
            kept=states + between,
            inputs=network.inputs, input_format=network.input_format, input_type=storage(network.input_format),
            outputs=network.outputs, output_format=network.output_format, output_type=storage(network.output_format))
        body = "\n".join([*unit.functions.values(), *(stage.text for stage in stages)])
        self.code = render(
            "network.c.j2", **self.common, body=body, states=states,
            head=_calls(stages[:behind], "x"), tail=_calls(stages[behind:], before, end))

    @property
    def common(self) -> dict[str, Any]:
        """What the templates of whole files are given."""
        network = self.network
        return {"name": self.name, "NAME": self.name.upper(), "title": re.sub(r"[^\w .,+-]", "_", network.name),
                "hash": network.hash, "sequence": network.sequence, "per_step": network.per_step}


def _stage(unit: Unit, prefix: str, layer: Layer, *, foreign: bool) -> Stage:
    if layer.kind not in EMITTERS:
        raise Refusal(f"The layers of the C target must be of the kinds {', '.join(EMITTERS)}, but {layer.name!r} is "
                      f"of the kind {layer.kind!r}; leave it out, or generate Verilog")
    return EMITTERS[layer.kind](unit, prefix, layer, foreign=foreign)


def _place(stage: Stage) -> str:
    return f"state->{stage.output.name}"


def _calls(stages: Sequence[Stage], x: str, end: Array | None = None) -> str:
    """Calls of the stages, one after the other, from ``x`` on; the result goes to y when it is the ``end``."""
    lines = []
    for stage in stages:
        y = "y" if stage.output is end and not stage.states else _place(stage)
        lines.append(f"    {stage.prefix}_layer(state, {x}, {y});")
        x = y
    if end is not None and x != "y":
        lines += [f"    for (int i = 0; i < {end.length} * LANES; i++)", f"        y[i] = {x}[i];"]
    return "\n".join(lines)
