"""`sim.gru.Gru` in C."""
from circulant.hw.c import activation, product
from circulant.hw.c.unit import Array, Stage, Unit, render
from circulant.hw.c.value import Value, storage
from circulant.sim.gru import Gru

__all__ = ["emit"]


def emit(unit: Unit, prefix: str, layer: Gru, *, foreign: bool) -> Stage:
    pre, state, one = layer.pre_format, layer.output_format, layer.output_format.frac
    sigmoid_text, sigmoid = activation.emit(unit, f"{prefix}_sigmoid", layer.sigmoid)
    tanh_text, tanh = activation.emit(unit, f"{prefix}_tanh", layer.tanh)

    driven, recurrent = (Value.of(name, pre.lo, pre.hi) for name in ("driven", "recurrent"))
    gate = (driven + recurrent).clip(pre.width)
    r, z, n = (Value.of(name, value.lo, value.hi) for name, value in (("r", sigmoid), ("z", sigmoid), ("n", tanh)))
    h = Value.of("h", state.lo, state.hi)
    candidate = (driven + (r * recurrent).half_up(one)).clip(pre.width)
    after = (n + (z * (h - n)).half_up(one)).clip(state.width)

    size = {role: product.rows for role, product in layer.products.items()}
    pre_type, state_type = storage(pre), storage(state)
    k, k_recurrent = layer.input_product.block_size, layer.recurrent_product.block_size
    text = "\n".join([
        product.emit(unit, f"{prefix}_input_product", layer.input_product, layer.inputs, foreign=foreign),
        product.emit(unit, f"{prefix}_recurrent_product", layer.recurrent_product, layer.hidden),
        sigmoid_text, tanh_text,
        render("gru.c.j2", unit=unit, prefix=prefix, layer=layer, x_type=storage(layer.input_format), pre_type=pre_type,
               state_type=state_type, driven=driven, h=h, r=r, n=n, gate=gate, candidate=candidate,
               after=after, driven_gate=size["input_product"] // 3, recurrent_gate=size["recurrent_product"] // 3)])
    spectra = {role: product.spectra(matrix) for role, matrix in layer.products.items()}
    return Stage(
        prefix, f"{prefix}: GRU, {layer.inputs} to {layer.hidden}, blocks of {k} (input) and {k_recurrent} (recurrent)", text,
        Array(state_type, f"{prefix}_h", layer.hidden), True,
        (Array(spectra["input_product"].type, "input_spectra", spectra["input_product"].length),
         Array(spectra["recurrent_product"].type, "recurrent_spectra", spectra["recurrent_product"].length),
         Array(pre_type, "driven", size["input_product"]), Array(pre_type, "recurrent", size["recurrent_product"])))
