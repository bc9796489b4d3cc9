"""Loops over time, where the C keeps a sequence until its end: a stage runs in the first loop in which all that it
takes is there, and what a later loop takes is kept for each step."""
from collections.abc import Iterator, Sequence
from functools import cached_property

from circulant.hw.ctext.unit import Array, Stage, clips
from circulant.hw.ctext.value import storage, width
from circulant.sim.arith.fixed import Format
from circulant.sim.golden.stages import INPUT, Stages
from circulant.sim.kinds.slice import Slice
from circulant.sim.refusal import Refusal
from circulant.sim.shape.layer import Held
from circulant.sim.shape.window import Flow

__all__ = ["TimeLoops", "clipped", "single"]


def clipped(stages: Stages, form: Format) -> Stages:
    """The stages, behind one that clips the input to its format where they would not."""
    first = [n for n, sources in enumerate(stages.sources) if INPUT in sources]
    if width(storage(form)) == form.width or all(clips(stages.each[n]) for n in first):
        return stages
    come = stages.come[first[0]]
    entry = Slice("input", come.size, 0, come.size, input_format=form)
    return Stages((entry, *stages.each), ((INPUT,), *(tuple(n + 1 for n in sources) for sources in stages.sources)),
                  (come, *stages.come))


def single(found: Stages) -> Stages:
    """The stages with the layers of both directions each by itself."""
    each: list[object] = []
    sources: list[tuple[int, ...]] = []
    come: list[Flow] = []
    place = {INPUT: INPUT}
    for n, (stage, taken, flow) in enumerate(zip(found.each, found.sources, found.come, strict=True)):
        given = [place[source] for source in taken]
        if stage.kind == "bidirectional":
            made, flows = {"": given[0]}, {"": flow}
            for node in stage.nodes(""):
                made[node.name], flows[node.name] = len(each), node.layer.following([flows[s] for s in node.sources])
                each.append(node.layer)
                sources.append(tuple(made[source] for source in node.sources))
                come.append(flows[node.sources[0]])
        else:
            each.append(stage)
            sources.append(tuple(given))
            come.append(flow)
        place[n] = len(each) - 1
    return Stages(tuple(each), tuple(sources), tuple(come))


class TimeLoops:
    """The loops over a sequence, and the C that runs them.

    Parameters:
        stages: as `single` gives them.
        made: the C of each.

    Members:
        height: steps of an image whose rows they are; 0 where none are.
        needed: whether a stage takes a sequence again, from its end, or steps that are made within.
        kept: arrays of which each step keeps one.

    Raises:
        Refusal: when rows of images of different heights are steps.
    """

    def __init__(self, stages: Stages, made: Sequence[Stage]) -> None:
        self._stages, self._made = stages, made
        self._rows = [getattr(stage, "rows", False) for stage in stages.each]
        self._loops = [come.sequence or rows for come, rows in zip(stages.come, self._rows, strict=True)]
        self._steps = [loops and getattr(stage, "returns", "sequence") != "last"
                       for stage, loops in zip(stages.each, self._loops, strict=True)]
        heights = {stage.grid[0] for stage, rows in zip(stages.each, self._rows, strict=True) if rows}
        if len(heights) > 1:
            raise Refusal("The C target takes the rows of images of one height as steps, not those of "
                          f"{' and '.join(map(str, sorted(heights)))}; take a part of the network, or generate Verilog")
        self.height: int = max(heights, default=0)
        self._turned = [stage.kind == "reverse" for stage in stages.each]
        self._at: list[int] = []
        for n, sources in enumerate(stages.sources):
            self._at.append(max(0 if source == INPUT else self._at[source] + self._again(n, source)
                                for source in sources))
        self.needed = any(self._turned) or any(self._rows) or any(
            at > 0 for at, loops in zip(self._at, self._loops, strict=True) if loops)

    def _again(self, n: int, source: int) -> bool:
        """Whether a stage runs in a later loop than its source."""
        return self._loops[n] and (self._turned[n] or not self._steps[source])

    @cached_property
    def _crossing(self) -> set[int]:
        return {source for n, sources in enumerate(self._stages.sources) for source in sources
                if source != INPUT and self._steps[source] and self._at[n] > self._at[source]}

    @property
    def kept(self) -> list[Array]:
        return [self._made[n].output for n in sorted(self._crossing)]

    def text(self, steps: str, inputs: int) -> str:
        """The C of all loops.

        Parameters:
            steps: how many there are.
            inputs: values of a step, or of the image, that comes.
        """
        lines: list[str] = []
        for at in range(max(self._at) + 1):
            here = [n for n, each in enumerate(self._at) if each == at]
            loops = [line for n in here if self._loops[n] for line in self._calls(n, steps, inputs)]
            if loops:
                lines += [f"    for (uint32_t t = 0; t < {steps}; t++) {{", *(f"    {line}" for line in loops), "    }"]
            for n in here:
                lines += [] if self._loops[n] else self._calls(n, steps, inputs)
                lines += self._behind(n)
        return "\n".join(lines)

    def _calls(self, n: int, steps: str, inputs: int) -> Iterator[str]:
        """The call of a stage, and where it gives a state the copy of that."""
        stage, t = self._made[n], f"{steps} - 1 - t" if self._turned[n] else "t"
        taken = ", ".join(self._taken(n, place, source, t, inputs)
                          for place, source in enumerate(self._stages.sources[n]))
        made, target = f"state->{stage.output.name}", self._target(n)
        yield f"    {stage.prefix}_layer(state, {taken}, {made if stage.states else target});"
        if stage.states and target != made:
            yield from _copy(target, made, stage.output.length)

    def _taken(self, n: int, place: int, source: int, t: str, inputs: int) -> str:
        """The argument that a stage has from a source, at a time."""
        come = self._stages.come[n]
        each = self._loops[n] and not (place and isinstance(self._stages.each[n], Held))
        if each and self._rows[n]:
            x = "x" if source == INPUT else f"state->{self._result(source).output.name}"
            return f"{x} + {t} * {come.values // self.height} * LANES"
        if source == INPUT:
            return f"x + ({t}) * {inputs} * LANES" if each else "x"
        if each and source in self._crossing:
            return f"kept[{t}].{self._made[source].output.name}"
        return f"state->{self._result(source).output.name}"

    def _result(self, n: int) -> Stage:
        """The C whose output is that of a stage behind its last step."""
        return [self._made[n], *self._made[n].then][-1]

    def _target(self, n: int) -> str:
        """Where the output of a stage goes in each step, or once."""
        output = self._made[n].output
        if n in self._crossing:
            return f"kept[t].{output.name}"
        if n == len(self._made) - 1 and not self._made[n].then and self._loops[n] == self._steps[n]:
            return f"y + t * {output.length} * LANES" if self._steps[n] else "y"
        return f"state->{output.name}"

    def _behind(self, n: int) -> Iterator[str]:
        """Stages that run once behind all steps of one, and the copy of a last step that is the network's output."""
        before, end = self._made[n], n == len(self._made) - 1
        for each in self._made[n].then:
            yield (f"    {each.prefix}_layer(state, state->{before.output.name}, "
                   f"{'y' if end else f'state->{each.output.name}'});")
            before = each
        if end and self._loops[n] and not self._steps[n] and before is self._made[n]:
            yield from _copy("y", f"state->{before.output.name}", before.output.length)


def _copy(to: str, source: str, length: int) -> list[str]:
    return [f"    for (int i = 0; i < {length} * LANES; i++)", f"        ({to})[i] = {source}[i];"]
