"""`sim.kinds.scale.Scale` in C."""
from circulant.hw.ctext.unit import Array, Stage, Unit, beside, stage
from circulant.hw.ctext.value import Value, storage
from circulant.sim.kinds.scale import Scale

render = beside(__file__)


@stage.register
def _(layer: Scale, unit: Unit, prefix: str, *, foreign: bool) -> Stage:
    given, made, y_type = layer.input_format, layer.output_format, storage(layer.output_format)
    x = Value.of("x[i * LANES + l]", given.lo, given.hi)
    factor = Value.of("factor", int(layer.scale.min()), int(layer.scale.max()))
    shift = Value.of("shift", int(layer.shift.min()), int(layer.shift.max()))
    y = ((factor * x).half_up(layer.rounding) + shift).clip(made.width)
    text = render("scale.c.j2", unit=unit, prefix=prefix, layer=layer, factor=factor, shift=shift, y=y, y_type=y_type,
                  x_type=storage(given), factors=unit.table(f"{prefix}_factors", layer.scale.tolist()),
                  shifts=unit.table(f"{prefix}_shifts", layer.shift.tolist()))
    return Stage(prefix, f"scale and shift of {layer.inputs}", text,
                 output=Array(y_type, f"{prefix}_y", layer.outputs), states=(), work=())
