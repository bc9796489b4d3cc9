"""`sim.kinds.blend.Blend`, `sim.kinds.decay.Decay` and `sim.kinds.spiral.Spiral` in C: the state is the output."""
from collections.abc import Sequence

from circulant.hw.ctext.unit import Array, Stage, Unit, beside, stage
from circulant.hw.ctext.value import Value, storage
from circulant.sim.arith.fixed import Format
from circulant.sim.kinds.blend import Blend
from circulant.sim.kinds.decay import Decay

render = beside(__file__)


def _of(name: str, form: Format) -> Value:
    return Value.of(name, form.lo, form.hi)


def _made(layer: Blend | Decay, unit: Unit, prefix: str, ys: Sequence[Value], more: Sequence[str] = ()) -> Stage:
    """The stage of a scan whose states of one value after the other become ys, with tables in front of it."""
    type = storage(layer.output_format)
    sources = [(storage(form), f"x{n}") for n, form in enumerate(layer.taken)]
    text = render("scan.c.j2", unit=unit, prefix=prefix, layer=layer, ys=ys, type=type, tables=more, sources=sources)
    state = Array(type, f"{prefix}_h", layer.outputs)
    return Stage(prefix, f"{layer.kind} of {layer.inputs}", text, output=state, states=(state,), work=())


@stage.register
def _(layer: Blend, unit: Unit, prefix: str, *, foreign: bool) -> Stage:
    (gate, given), h = layer.input_formats, _of("h0", layer.output_format)
    apart = _of("x1[at]", given).half_up(-layer.shifts[0]) - h.half_up(-layer.shifts[1])
    moved = (_of("x0[at]", gate) * apart).half_up(layer.rounding)
    return _made(layer, unit, prefix, [(h + moved).clip(layer.output_format.width)])


@stage.register
def _(layer: Decay, unit: Unit, prefix: str, *, foreign: bool) -> Stage:
    after, given = layer.shifts
    names = [f"{prefix}_factors", f"{prefix}_turns"][:layer.terms]
    tables = [unit.table(name, values.tolist()) for name, values in zip(names, layer.weights, strict=True)]
    at = "i" if layer.terms == 1 else f"i / {layer.terms}"
    a, *b = (Value.of(f"{name}[{at}]", int(values.min()), int(values.max()))
             for name, values in zip(names, layer.weights, strict=True))
    h = [_of(f"h{n}", layer.output_format) for n in range(layer.terms)]
    driven = [a * h[0] - b[0] * h[1], b[0] * h[0] + a * h[1]] if b else [a * h[0]]
    totals = [each.half_up(-after) + _of("x0[at]" if not n else "x0[at + LANES]", layer.input_format).half_up(-given)
              for n, each in enumerate(driven)]
    return _made(layer, unit, prefix, [each.half_up(layer.rounding).clip(layer.output_format.width)
                                       for each in totals], tables)
