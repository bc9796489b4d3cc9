"""Gates, repeated vectors and reversed steps, which have no C: it has results of a step or of a sequence alone."""
from circulant.hw.ctext.unit import Stage, Unit, stage
from circulant.sim.kinds.gate import Gate
from circulant.sim.kinds.repeat import Repeat
from circulant.sim.kinds.reverse import Reverse
from circulant.sim.refusal import Refusal


@stage.register(Gate)
@stage.register(Repeat)
@stage.register(Reverse)
def _(layer: Gate | Repeat | Reverse, unit: Unit, prefix: str, *, foreign: bool) -> Stage:
    raise Refusal(f"The C target computes step by step, but layer {layer.name!r}, a {layer.kind}, gives its first step "
                  "when the last one has come; take the parts before and behind it, or generate Verilog")
