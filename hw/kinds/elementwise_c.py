"""`sim.kinds.elementwise.Elementwise` in C: sums, differences, products, maxima and minima, value by value."""
from collections.abc import Sequence
from functools import reduce, singledispatch

from circulant.hw.ctext.unit import Array, Stage, Unit, beside, stage
from circulant.hw.ctext.value import Value, storage
from circulant.sim.kinds.elementwise import Elementwise
from circulant.sim.kinds.maximum import Maximum
from circulant.sim.kinds.minimum import Minimum

render = beside(__file__)


@singledispatch
def exact(layer: Elementwise, values: Sequence[Value]) -> Value:
    """The value of a kind for those of its sources, before it is rounded."""
    found: Value = layer.combined(values)
    return found


@exact.register
def _(layer: Maximum, values: Sequence[Value]) -> Value:
    return reduce(Value.greater, values)


@exact.register
def _(layer: Minimum, values: Sequence[Value]) -> Value:
    return reduce(Value.less, values)


@stage.register
def _(layer: Elementwise, unit: Unit, prefix: str, *, foreign: bool) -> Stage:
    names = [f"x{n}" for n in range(len(layer.input_formats))]
    given = [Value.of(f"{name}[i]", form.lo, form.hi) for name, form in zip(names, layer.input_formats, strict=True)]
    shifted = [each.half_up(-shift) for each, shift in zip(given, layer.shifts, strict=True)]
    y, y_type = exact(layer, shifted), storage(layer.output_format)
    y = y.half_up(layer.frac - layer.output_format.frac).clip(layer.output_format.width)
    text = render("elementwise.c.j2", unit=unit, prefix=prefix, layer=layer, y=y, y_type=y_type,
                  sources=[(storage(form), name) for form, name in zip(layer.input_formats, names, strict=True)])
    return Stage(prefix, f"{layer.kind} of {len(names)} times {layer.inputs}", text,
                 output=Array(y_type, f"{prefix}_y", layer.outputs), states=(), work=())
