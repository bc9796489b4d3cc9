"""`sim.kinds.gru.Gru` in C."""
from circulant.hw.ctext import product, table
from circulant.hw.ctext.unit import Array, Stage, Unit, beside, clips, stage
from circulant.hw.ctext.value import Value, storage
from circulant.sim.kinds.gru import Gru

render = beside(__file__)

clips.register(Gru, lambda layer: True)


@stage.register
def _(layer: Gru, unit: Unit, prefix: str, *, foreign: bool) -> Stage:
    pre, state, one, after = layer.pre_format, layer.output_format, layer.output_format.frac, layer.reset == "after"
    of_x, of_h = layer.gates.parts
    sigmoid_text, sigmoid = table.emit(unit, f"{prefix}_sigmoid", layer.sigmoid)
    tanh_text, tanh = table.emit(unit, f"{prefix}_tanh", layer.tanh)

    driven, recurrent = (Value.of(name, pre.lo, pre.hi) for name in ("driven", "recurrent"))
    r, z, n = (Value.of(name, value.lo, value.hi) for name, value in (("r", sigmoid), ("z", sigmoid), ("n", tanh)))
    h = Value.of("h", state.lo, state.hi)
    argument = (driven + (r * recurrent).half_up(one)).clip(pre.width) if after else driven
    kept = (r * h).half_up(one).clip(state.width)
    following = (n + (z * (h - n)).half_up(one)).clip(state.width)

    texts = [product.transform(unit, f"{prefix}_input_spectra", of_x, layer.inputs, foreign=foreign),
             product.transform(unit, f"{prefix}_state_spectra", of_h, layer.hidden),
             product.rows(unit, f"{prefix}_gates", layer.gates),
             product.rows(unit, f"{prefix}_candidate", layer.candidate)]
    work = [product.spectra(of_x, "input_spectra"), product.spectra(of_h, "state_spectra"),
            Array(storage(pre), "gates", layer.gates.rows), Array(storage(pre), "candidate", layer.candidate.rows)]
    if layer.candidate_recurrent is not None:
        texts.append(product.rows(unit, f"{prefix}_candidate_recurrent", layer.candidate_recurrent))
        work.append(Array(storage(pre), "recurrent", layer.candidate_recurrent.rows))
    else:
        work.append(Array(storage(state), "kept", layer.hidden))
    text = "\n".join([*texts, sigmoid_text, tanh_text, render(
        "gru.c.j2", unit=unit, prefix=prefix, layer=layer, after=after, x_type=storage(layer.input_format),
        pre_type=storage(pre), state_type=storage(state), pre=driven, h=h, r=r, n=n, argument=argument, kept=kept,
        following=following, rows=layer.gates.rows // 2)])
    states = Array(storage(state), f"{prefix}_h", layer.hidden)
    summary = (f"GRU, {layer.inputs} to {layer.hidden}, blocks of {layer.gates.block_size}, reset gate {layer.reset} "
               "the matrix")
    return Stage(prefix, summary, text=text, output=states, states=(states,), work=tuple(work))
