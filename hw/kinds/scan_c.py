"""`sim.kinds.blend.Blend` and `sim.kinds.decay.Decay` in C: the state is the output."""
from collections.abc import Sequence

from circulant.hw.ctext.unit import Array, Stage, Unit, beside, stage
from circulant.hw.ctext.value import Value, storage
from circulant.sim.arith.fixed import Format
from circulant.sim.kinds.blend import Blend
from circulant.sim.kinds.decay import Decay

render = beside(__file__)


def _of(name: str, form: Format) -> Value:
    return Value.of(name, form.lo, form.hi)


def _made(layer: Blend | Decay, unit: Unit, prefix: str, y: Value, more: Sequence[str] = ()) -> Stage:
    """The stage of a scan whose state becomes y, with tables in front of it."""
    type = storage(layer.output_format)
    sources = [(storage(form), f"x{n}") for n, form in enumerate(layer.taken)]
    text = render("scan.c.j2", unit=unit, prefix=prefix, layer=layer, y=y, type=type, tables=more, sources=sources)
    state = Array(type, f"{prefix}_h", layer.outputs)
    return Stage(prefix, f"{layer.kind} of {layer.inputs}", text, output=state, states=(state,), work=())


@stage.register
def _(layer: Blend, unit: Unit, prefix: str, *, foreign: bool) -> Stage:
    (gate, given), h = layer.input_formats, _of("h[at]", layer.output_format)
    apart = _of("x1[at]", given).half_up(-layer.shifts[0]) - h.half_up(-layer.shifts[1])
    moved = (_of("x0[at]", gate) * apart).half_up(layer.rounding)
    return _made(layer, unit, prefix, (h + moved).clip(layer.output_format.width))


@stage.register
def _(layer: Decay, unit: Unit, prefix: str, *, foreign: bool) -> Stage:
    after, given = layer.shifts
    factor = Value.of(f"{prefix}_factors[i]", int(layer.factors.min()), int(layer.factors.max()))
    total = (factor * _of("h[at]", layer.output_format)).half_up(-after) + _of("x0[at]", layer.input_format).half_up(
        -given)
    return _made(layer, unit, prefix, total.half_up(layer.rounding).clip(layer.output_format.width),
                 [unit.table(f"{prefix}_factors", layer.factors.tolist())])
