"""`sim.golden.residual.Residual` over vectors in C: both branches, one after the other, and their sum."""
from circulant.hw.ctext.unit import Array, Stage, Unit, beside, stage, unsupported
from circulant.hw.ctext.value import Value, storage
from circulant.sim.golden.residual import Residual

render = beside(__file__)


@stage.register
def _(layer: Residual, unit: Unit, prefix: str, *, foreign: bool) -> Stage:
    if layer.grid is not None:
        raise unsupported(layer)
    inner: list[Stage] = []
    ends, sides = [], []
    for name, chain in layer.branches.items():
        made = [stage(each, unit, f"{prefix}_{name}{n}", foreign=foreign and n == 0) for n, each in enumerate(chain)]
        inner += made
        ends.append(f"state->{made[-1].output.name}" if made else "x")
        sides.append(made)
    frac, y_type = max(form.frac for form in layer.formats), storage(layer.output_format)
    first, second = (Value.of(name, form.lo, form.hi).half_up(form.frac - frac)
                     for name, form in zip(("first", "second"), layer.formats, strict=True))
    y = (first + second).half_up(frac - layer.output_format.frac).clip(layer.output_format.width)
    text = "\n".join([*(each.text for each in inner), render(
        "residual.c.j2", unit=unit, prefix=prefix, layer=layer, sides=sides, ends=ends, first=first, second=second, y=y,
        x_type=storage(layer.input_format), y_type=y_type)])
    return Stage(prefix, f"sum of two branches, {layer.inputs} to {layer.outputs}", text=text,
                 output=Array(y_type, f"{prefix}_y", layer.outputs), states=(), work=(), inner=tuple(inner))
