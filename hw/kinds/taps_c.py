"""`sim.kinds.taps.Taps` in C: the vectors of earlier steps lie in the state, the oldest first."""
from circulant.hw.ctext.unit import Array, Stage, Unit, beside, stage
from circulant.hw.ctext.value import storage
from circulant.sim.kinds.taps import Taps

render = beside(__file__)


@stage.register
def _(layer: Taps, unit: Unit, prefix: str, *, foreign: bool) -> Stage:
    type = storage(layer.output_format)
    past, output = Array(type, f"{prefix}_past", layer.reach * layer.inputs), Array(type, f"{prefix}_y", layer.outputs)
    return Stage(prefix, f"{layer.taps} taps of {layer.inputs}, {layer.dilation} steps apart", render(
        "taps.c.j2", unit=unit, prefix=prefix, layer=layer, type=type), output=output, states=(output, past), work=())
