"""`sim.golden.residual.Residual` in C: both branches, one after the other, and their sum."""
from typing import Any

from circulant.hw.ctext.unit import Array, Stage, Unit, beside, over, stage
from circulant.hw.ctext.value import Value, storage
from circulant.sim.golden.residual import Residual
from circulant.sim.shape.window import Flow

render = beside(__file__)


@stage.register
def _(layer: Residual, unit: Unit, prefix: str, *, foreign: bool) -> Stage:
    inner: list[Stage] = []
    ends, sides = [], []
    for name, chain in layer.branches.items():
        flow, made = Flow(layer.inputs, layer.grid), list[Stage]()
        for n, each in enumerate(chain):
            made.append(over(each, flow, unit, f"{prefix}_{name}{n}", foreign=foreign and n == 0))
            flow = _behind(each, flow)
        inner += made
        ends.append(f"state->{made[-1].output.name}" if made else "x")
        sides.append(made)
    flow = _behind(layer, Flow(layer.inputs, layer.grid))
    frac, y_type = max(form.frac for form in layer.formats), storage(layer.output_format)
    first, second = (Value.of(name, form.lo, form.hi).half_up(form.frac - frac)
                     for name, form in zip(("first", "second"), layer.formats, strict=True))
    y = (first + second).half_up(frac - layer.output_format.frac).clip(layer.output_format.width)
    text = "\n".join([*(each.text for each in inner), render(
        "residual.c.j2", unit=unit, prefix=prefix, layer=layer, count=flow.values, sides=sides,
        ends=ends, first=first, second=second, y=y,
        x_type=storage(layer.input_format), y_type=y_type)])
    return Stage(prefix, f"sum of two branches, {layer.inputs} to {layer.outputs}", text=text,
                 output=Array(y_type, f"{prefix}_y", flow.values), states=(), work=(), inner=tuple(inner))


def _behind(layer: Any, flow: Flow) -> Flow:
    """The flow behind a stage."""
    if not isinstance(layer, Residual):
        found: Flow = layer.following([flow])
        return found
    for each in layer.body or layer.shortcut:
        flow = _behind(each, flow)
    return flow
