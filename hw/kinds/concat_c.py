"""`sim.kinds.concat.Concat` in C: vectors side by side, each brought to one format."""
from circulant.hw.ctext.unit import Array, Stage, Unit, beside, stage
from circulant.hw.ctext.value import Value, storage
from circulant.sim.kinds.concat import Concat

render = beside(__file__)


@stage.register
def _(layer: Concat, unit: Unit, prefix: str, *, foreign: bool) -> Stage:
    made, y_type = layer.output_format, storage(layer.output_format)
    sides, begin = [], 0
    for n, (form, size) in enumerate(zip(layer.input_formats, layer.sizes, strict=True)):
        value = Value.of(f"x{n}[i]", form.lo, form.hi).half_up(form.frac - made.frac).clip(made.width)
        sides.append((storage(form), f"x{n}", size, begin, value))
        begin += size
    text = render("concat.c.j2", unit=unit, prefix=prefix, sides=sides, y_type=y_type)
    return Stage(prefix, f"{' and '.join(map(str, layer.sizes))} values side by side", text,
                 output=Array(y_type, f"{prefix}_y", layer.outputs), states=(), work=())
