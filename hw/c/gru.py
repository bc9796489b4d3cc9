"""`sim.gru.Gru` in C."""
from circulant.hw.c import activation, product
from circulant.hw.c.unit import Array, Stage, Unit, render
from circulant.hw.c.value import Value, storage
from circulant.sim.gru import Gru

__all__ = ["emit"]


def emit(unit: Unit, prefix: str, layer: Gru, *, foreign: bool) -> Stage:
    pre, state, one = layer.pre_format, layer.output_format, layer.output_format.frac
    matrix, recurrent_matrix = layer.input_product, layer.recurrent_product
    sigmoid_text, sigmoid = activation.emit(unit, f"{prefix}_sigmoid", layer.sigmoid)
    tanh_text, tanh = activation.emit(unit, f"{prefix}_tanh", layer.tanh)

    driven, recurrent = (Value.of(name, pre.lo, pre.hi) for name in ("driven", "recurrent"))
    r, z, n = (Value.of(name, value.lo, value.hi) for name, value in (("r", sigmoid), ("z", sigmoid), ("n", tanh)))
    h = Value.of("h", state.lo, state.hi)
    gate = (driven + recurrent).clip(pre.width)
    candidate = (driven + (r * recurrent).half_up(one)).clip(pre.width)
    after = (n + (z * (h - n)).half_up(one)).clip(state.width)

    text = "\n".join([
        product.emit(unit, f"{prefix}_input_product", matrix, layer.inputs, foreign=foreign),
        product.emit(unit, f"{prefix}_recurrent_product", recurrent_matrix, layer.hidden),
        sigmoid_text, tanh_text,
        render("gru.c.j2", unit=unit, prefix=prefix, layer=layer, x_type=storage(layer.input_format),
               pre_type=storage(pre), state_type=storage(state), driven=driven, h=h, r=r, n=n,
               gate=gate, candidate=candidate, after=after,
               driven_gate=matrix.rows // 3, recurrent_gate=recurrent_matrix.rows // 3)])
    summary = (f"GRU, {layer.inputs} to {layer.hidden}, blocks of {matrix.block_size} (input) and "
               f"{recurrent_matrix.block_size} (recurrent)")
    states = Array(storage(state), f"{prefix}_h", layer.hidden)
    return Stage(prefix, summary, text, states, (states,), (
        product.spectra(matrix, "driven_spectra"), product.spectra(recurrent_matrix, "recurrent_spectra"),
        Array(storage(pre), "driven", matrix.rows), Array(storage(pre), "recurrent", recurrent_matrix.rows)))
