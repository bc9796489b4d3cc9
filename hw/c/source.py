"""The C of a whole network: its layers, each behind those that it takes, and the functions that a user calls."""
import re
from collections.abc import Mapping, Sequence

from circulant.hw.c.time_loops import TimeLoops, clipped, single
from circulant.hw.ctext.names import identifier, identifiers
from circulant.hw.ctext.product import ROWS
from circulant.hw.ctext.unit import Array, Stage, Unit, beside, over
from circulant.hw.ctext.value import storage
from circulant.hw.kinds.registry_c import KINDS
from circulant.sim.golden.network import Network
from circulant.sim.golden.stages import INPUT
from circulant.sim.refusal import Refusal

__all__ = ["KINDS", "Source"]

render = beside(__file__)


class Source:
    """The C of a network without its self-test.

    Parameters:
        network: what it computes.

    Members:
        name: prefix of everything public.
        whole: whether it takes whole sequences only, as some steps are taken again when the last one has come.
        kept: arrays of what is kept of each step until then.
        height: steps that an image has, whose rows they are; else 0.
        outputs: values of an output.
        code, header: the texts of ``<name>.c`` and ``<name>.h``.
        table_bytes: size of the constant tables.

    Raises:
        Refusal: when an integer on the way could leave 63 bits, or the C target does not know a layer.
    """

    def __init__(self, network: Network) -> None:
        self.network, self.name = network, identifier(network.name)
        unit = Unit(self.name)
        if network.many:
            raise Refusal(f"The C target takes networks with one input and one output, but {network.name!r} has "
                          f"{len(network.inputs)} and {len(network.outputs)}; take a part of it, or generate Verilog")
        built = clipped(single(network.arrangement), network.input_format)
        given, prefixes = built.sources, identifiers([layer.name for layer in built.each])
        made = [over(layer, come, unit, prefix, foreign=INPUT in sources) for prefix, layer, come, sources in zip(
            prefixes, built.each, built.come, given, strict=True)]
        stages = [part for each in made for part in (each, *each.then)]
        takes: dict[str, list[Stage | None]] = {}
        for each, sources in zip(made, given, strict=True):
            # What is needed once a sequence takes the place of its layer for those behind it.
            before: list[Stage | None] = [None if n == INPUT else [made[n], *made[n].then][-1] for n in sources]
            for part in (each, *each.then):
                takes[part.prefix], before = before, [part]
        self.table_bytes = unit.table_bytes

        loops = TimeLoops(built, made)
        self.whole, vectors = loops.needed, max(1, network.output_vectors)
        self.kept, self.outputs = loops.kept if self.whole else [], network.end.values * vectors
        self.height = loops.height
        states = [array for stage in stages for array in stage.states]
        behind = max((n + 1 for n, stage in enumerate(stages) if stage.states), default=0)
        every = [each for stage in stages for each in stage.all]
        between = [stage.output for stage in every[:-1] if not stage.states and stage.output not in self.kept]
        end = stages[-1].output
        self.header = render(
            "header.h.j2", **self.common, stages=every, table_bytes=unit.table_bytes,
            members=states + between,
            inputs=network.flow.values, input_format=network.input_format, input_type=storage(network.input_format),
            outputs=self.outputs, output_format=network.output_format, output_type=storage(network.output_format))
        run = loops.text("steps" if network.sequence else str(self.height), network.flow.values) if self.whole else ""
        body = "\n".join([*unit.functions.values(), *(stage.text for stage in stages)])
        self.code = render(
            "network.c.j2", **self.common, body=body, states=states, rows=ROWS,
            head=_calls(stages[:behind], takes), tail=_calls(stages[behind:], takes, end),
            run=run, late=any(None in takes[each.prefix] for each in stages[behind:]))

    @property
    def common(self) -> Mapping[str, object]:
        """Values that the templates of whole files are given."""
        network = self.network
        return {"name": self.name, "NAME": self.name.upper(), "title": re.sub(r"[^\w .,+-]", "_", network.name),
                "hash": network.hash, "sequence": network.sequence, "per_step": network.per_step,
                "whole": self.whole, "kept": self.kept, "height": self.height}


def _calls(stages: Sequence[Stage], takes: Mapping[str, Sequence[Stage | None]], end: Array | None = None) -> str:
    """Calls of the stages, each with what it takes, None for the input; the result goes to y when it is the ``end``."""
    lines, x = [], ""

    def place(stage: Stage | None) -> str:
        return "x" if stage is None else f"state->{stage.output.name}"

    for each in stages:
        x = "y" if each.output is end and not each.states else place(each)
        taken = ", ".join(place(source) for source in takes[each.prefix])
        lines.append(f"    {each.prefix}_layer(state, {taken}, {x});")
    if end is not None and x != "y":
        lines += [f"    for (int i = 0; i < {end.length} * LANES; i++)",
                  f"        y[i] = {x or f'state->{end.name}'}[i];"]
    return "\n".join(lines)
