"""Gates and repeated vectors, which have no C: its functions give a result with each step, or one for a sequence."""
from circulant.hw.ctext.unit import Stage, Unit, stage
from circulant.sim.kinds.gate import Gate
from circulant.sim.kinds.repeat import Repeat
from circulant.sim.refusal import Refusal


@stage.register(Gate)
@stage.register(Repeat)
def _(layer: Gate | Repeat, unit: Unit, prefix: str, *, foreign: bool) -> Stage:
    raise Refusal(f"The C target computes step by step, but layer {layer.name!r}, a {layer.kind}, gives its first step "
                  "when the last one has come; take the parts before and behind it, or generate Verilog")
