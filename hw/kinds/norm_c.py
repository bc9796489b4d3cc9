"""`sim.kinds.norm.Norm` in C."""
from circulant.hw.ctext.unit import Array, Stage, Unit, beside, stage
from circulant.hw.ctext.value import Value, storage
from circulant.sim.arith import rsqrt
from circulant.sim.kinds.norm import Norm

render = beside(__file__)


def _root(unit: Unit) -> str:
    """The text of `inverse_root`."""
    return render("inverse_root.c.j2", s=rsqrt, table=unit.table("inverse_roots", rsqrt.starts().tolist()))


@stage.register
def _(layer: Norm, unit: Unit, prefix: str, *, foreign: bool) -> Stage:
    normal, y_type = layer.normal, storage(layer.output_format)
    gain = Value.of(f"{prefix}_gains[i]", int(layer.gain.min()), int(layer.gain.max()))
    shift = Value.of(f"{prefix}_shifts[i]", int(layer.shift.min()), int(layer.shift.max()))
    z = Value.of("z", normal.lo, normal.hi)
    y = ((z * gain).half_up(layer.rounding) + shift).clip(layer.output_format.width)
    unit.function("inverse_root", lambda: _root(unit))
    text = render("norm.c.j2", unit=unit, prefix=prefix, layer=layer, z=z, y=y, y_type=y_type, root=rsqrt.ROOT,
                  x_type=storage(layer.input_format), gains=unit.table(f"{prefix}_gains", layer.gain.tolist()),
                  shifts=unit.table(f"{prefix}_shifts", layer.shift.tolist()))
    name = "LayerNorm" if layer.centred else "RMSNorm"
    return Stage(prefix, f"{name} of {layer.inputs}", text, output=Array(y_type, f"{prefix}_y", layer.outputs),
                 states=(), work=())
