"""`sim.kinds.pool.Pool` in C."""
from circulant.hw.ctext.unit import Array, Stage, Unit, beside, clips, stage
from circulant.hw.ctext.value import Value, storage
from circulant.sim.kinds.pool import Pool, reciprocal

render = beside(__file__)

clips.register(Pool, lambda layer: True)


@stage.register
def _(layer: Pool, unit: Unit, prefix: str, *, foreign: bool) -> Stage:
    given, y_type, (down, across) = layer.input_format, storage(layer.output_format), layer.output_grid
    x, count, start = Value.given("x[at + i]", given, foreign=foreign), layer.window.positions, "0"
    y = sum_ = Value.of("sum", count * x.lo, count * x.hi)
    if layer.mode == "max":
        y = sum_ = Value.of("sum", x.lo, x.hi)
        start = str(x.lo) if x.lo >= -1 << 30 else f"-INT64_C({-x.lo})"
    else:
        factor, bits = reciprocal(count)
        y = (sum_ * Value.of(str(factor), factor, factor)).half_up(given.frac + bits - layer.output_format.frac).clip(
            layer.output_format.width)
    text = render("pool.c.j2", unit=unit, prefix=prefix, layer=layer, x=x, sum=sum_, start=start, y=y,
                  x_type=storage(given), y_type=y_type)
    return Stage(prefix, f"{layer.mode} of {layer.window.kernel[0]} x {layer.window.kernel[1]} pixels", text=text,
                 output=Array(y_type, f"{prefix}_y", layer.outputs * down * across), states=(), work=())
