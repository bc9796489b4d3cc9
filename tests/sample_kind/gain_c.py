"""The gain in C."""
from circulant.hw.ctext.unit import Array, Stage, Unit, beside, stage
from circulant.hw.ctext.value import storage
from tests.sample_kind.gain import Gain

render = beside(__file__)


@stage.register
def _(layer: Gain, unit: Unit, prefix: str, *, foreign: bool) -> Stage:
    type = storage(layer.output_format)
    return Stage(prefix, f"twice {layer.inputs} values", render(
        "gain.c.j2", unit=unit, prefix=prefix, layer=layer, type=type),
        output=Array(type, f"{prefix}_y", layer.outputs), states=(), work=())
