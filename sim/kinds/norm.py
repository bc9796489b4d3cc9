"""LayerNorm (Ba et al. 2016) and RMSNorm (Zhang and Sennrich 2019) over the values of each vector."""
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from circulant.sim.arith.fixed import Format, Integers, Reals, fit, round_shift, rounding_bits, saturate
from circulant.sim.arith.rsqrt import ROOT, inverse_root
from circulant.sim.arith.trace import Recorder
from circulant.sim.files.schema import Choice, Int
from circulant.sim.passes import bases
from circulant.sim.passes.errors import between
from circulant.sim.passes.formats import Peaks, Widths
from circulant.sim.passes.layer import FloatLayer, GoldenLayer, Kind
from circulant.sim.passes.products import Tap, check, ignore
from circulant.sim.passes.quantizing import check_fit
from circulant.sim.passes.rules import FORMAT, FORMATS
from circulant.sim.refusal import Refusal
from circulant.sim.shape.layer import OverVectors, SameSize

__all__ = ["KIND", "FloatNorm", "Norm"]

MODES = ("layer", "rms")

MOST = 1 << 60
"""No sum of squares is greater."""


class _Shape(OverVectors, SameSize):
    kind = "norm"
    stepwise = True

    mode: str

    def _check_mode(self) -> None:
        if self.mode not in MODES:
            raise Refusal(f"Layer {self.name!r} must be a 'layer' or an 'rms' normalisation, not {self.mode!r}; choose "
                          "one")

    @property
    def centred(self) -> bool:
        """Whether the mean is taken off."""
        return self.mode == "layer"


@dataclass(frozen=True, eq=False)
class Norm(_Shape, GoldenLayer):
    """y = g z + b, where z = u / √v for each vector x of n values: exact sums, then four roundings.

        "layer"     u = n x − Σx    v = n Σx² − (Σx)² + e
        "rms"       u = x           v = Σx² + e

    z = sat(round(u · r, ROOT + h − normal.frac)) with r and h of `inverse_root`, y = sat(round(z · g, …) + b).

    Parameters:
        mode: in `MODES`.
        gain: g, integers (inputs,) of the format ``factor``; of an "rms" it has the √n that z lacks.
        shift: b, integers (inputs,) of the output's format.
        epsilon: e, at least 1.
        normal: the format of z, with `ROOT` fraction bits at the most.

    Raises:
        Refusal: when integers lie beyond their formats, or sums could leave int64.
    """

    name: str
    inputs: int
    mode: str
    gain: Integers
    shift: Integers
    epsilon: int
    factor: Format
    normal: Format
    input_format: Format
    output_format: Format

    searched = ("weight_bits", "output_bits")
    vector = "gain"

    def __post_init__(self) -> None:
        self._check_mode()
        for field, values, form in (("gain", self.gain, self.factor), ("shift", self.shift, self.output_format)):
            if values.shape != (self.inputs,) or values.min() < form.lo or values.max() > form.hi:
                raise Refusal(f"Layer {self.name!r}: the {field} must be {self.inputs} integers of {form.width} bits, "
                              f"not {values.shape} from {values.min()} to {values.max()}; quantize it again")
        last = rounding_bits(self.normal.width + self.factor.width, self.rounding)
        if (self.normal.frac > ROOT or self.most + self.epsilon > MOST or self.value_bits + ROOT + 2 > 62
                or max(last, self.output_format.width) + 1 > 63):
            raise Refusal(f"Layer {self.name!r}: its sums must fit into 60 bits, but for {self.inputs} values in the "
                          f"{self.input_format}, z in the {self.normal} and the value {self.output_format} they do "
                          "not; choose narrower ones, or binary points nearer to each other")

    @property
    def most(self) -> int:
        """No v is greater, e apart."""
        return self.inputs ** (1 + self.centred) * self.input_format.lo ** 2

    @property
    def value_bits(self) -> int:
        """Bits of u."""
        return self.input_format.width + (self.inputs.bit_length() + 1 if self.centred else 0)

    @property
    def rounding(self) -> int:
        """Bits by which z · g is shifted."""
        return self.normal.frac + self.factor.frac - self.output_format.frac

    def __call__(self, x: Integers, record: Recorder | None = None) -> Integers:
        v, u = (x * x).sum(-1, keepdims=True), x
        if self.centred:
            total = x.sum(-1, keepdims=True)
            v, u = self.inputs * v - total * total, self.inputs * x - total
        root, places = inverse_root(v + self.epsilon)
        shift = ROOT + places - self.normal.frac  # From 1 on, so that the rounding is one of the last bit cut off.
        z = saturate((((u * root) >> (shift - 1)) + 1) >> 1, self.normal.width)
        y = saturate(round_shift(z * self.gain, self.rounding) + self.shift, self.output_format.width)
        if record is not None:
            record.values(f"{self.name}.z", z, self.normal)
            record.values(f"{self.name}.y", y, self.output_format)
        return np.asarray(y)


@dataclass(frozen=True, eq=False)
class FloatNorm(_Shape, FloatLayer):
    """y = g (x − mean) / √(variance + ε) + b, or g x / √(mean of x² + ε) + b: torch.nn.LayerNorm and RMSNorm.

    Parameters:
        mode: "layer" or "rms".
        gain, shift: g and b, (inputs,).
        epsilon: ε, not negative.
    """

    name: str
    inputs: int
    mode: str
    gain: Reals
    shift: Reals
    epsilon: float = 1e-5

    def __post_init__(self) -> None:
        self._check_mode()
        check(self.name, gain=(self.gain, (self.inputs,)), shift=(self.shift, (self.inputs,)))
        if not 0 <= self.epsilon < math.inf:
            raise Refusal(f"Layer {self.name!r}: epsilon must not be negative, not {self.epsilon!r}; give 1e-5")

    @property
    def factors(self) -> Reals:
        """g of `Norm`."""
        return self.gain if self.centred else self.gain * math.sqrt(self.inputs)

    def root(self, x: Reals) -> Reals:
        """√(variance + ε), or √(mean of x² + ε)."""
        return np.asarray(np.sqrt((x.var(-1, keepdims=True) if self.centred else (x * x).mean(-1, keepdims=True))
                                  + self.epsilon))

    def __call__(self, x: Reals, tap: Tap = ignore) -> Reals:
        mean, root = (x.mean(-1, keepdims=True) if self.centred else 0.0), self.root(x)
        z = np.divide(x - mean, root, out=np.zeros_like(x), where=root > 0)
        tap(f"{self.name}.z", z if self.centred else z / math.sqrt(self.inputs))
        y = z * self.gain + self.shift
        tap(f"{self.name}.y", y)
        return y


def _epsilon(layer: FloatNorm, input: Format) -> int:
    """ε as v has it."""
    return max(1, round(layer.epsilon * layer.inputs ** (1 + layer.centred) * math.ldexp(1.0, 2 * input.frac)))


@bases.quantize_layer.register
def _(layer: FloatNorm, input: Format, peaks: Peaks, bits: Widths) -> Norm:
    """z gets a bit more than the result, so that its rounding is the smaller one."""
    known = bits.grids.get(f"{layer.name}.gain")
    factor = known.form if known else fit(float(np.abs(layer.factors).max()), bits.weight_bits)
    output = peaks.fit(bits.value, f"{layer.name}.y", bias=layer.shift)
    normal = peaks.fit(bits.value + 1, f"{layer.name}.z")
    return Norm(layer.name, layer.inputs, layer.mode, factor.quantize(layer.factors), output.quantize(layer.shift),
                epsilon=_epsilon(layer, input), factor=factor, normal=Format(normal.width, min(normal.frac, ROOT)),
                input_format=input, output_format=output)


@bases.quantize_layer_like.register
def _(rule: Norm, layer: FloatNorm) -> Norm:
    if rule.mode != layer.mode:
        raise Refusal(f"Layer {layer.name!r} must be the {rule.mode!r} normalisation of the other network, not "
                      f"{layer.mode!r}; quantize it with formats of its own")
    check_fit(layer.name, [("gains", rule.factor, layer.factors), ("shifts", rule.output_format, layer.shift)])
    return replace(rule, name=layer.name, gain=rule.factor.quantize(layer.factors),
                   shift=rule.output_format.quantize(layer.shift), epsilon=_epsilon(layer, rule.input_format))


@bases.layer_bits.register
def _(layer: Norm) -> int:
    return layer.inputs * layer.factor.width


@bases.layer_worst_cases.register
def _(layer: Norm, peak: float, steps: int) -> Iterator[tuple[str, float]]:
    """A value can be all of its vector: Σz² is not above n, or 1."""
    most = math.sqrt(layer.inputs - 1) if layer.centred else 1.0
    yield f"{layer.name}.z", most
    yield f"{layer.name}.y", float((np.abs(layer.factor.real(layer.gain)) * most
                                    + np.abs(layer.output_format.real(layer.shift))).max())


@bases.propagate.register
def _(layer: Norm, exact: FloatNorm, trace: bases.Trace, known: bases.Known) -> bases.Known:
    """x errs by e = ± rest around a known place. √(variance + ε) moves by |e|/√n at the most, since taking off the
    mean makes no vector longer, and z by (|e_i| + mean|e|)/s + |z_i| (|e|/√n)/s, s the least that it may be."""
    golden, shift, rest = known
    centre = golden - shift
    moved = np.sqrt((rest * rest).mean(-1, keepdims=True))
    root, y = exact.root(centre), exact(centre)
    least = np.maximum(root - moved, math.sqrt(exact.epsilon))
    most = math.sqrt(layer.inputs)
    z = np.abs(centre - (centre.mean(-1, keepdims=True) if layer.centred else 0)) / root
    apart = rest + (rest.mean(-1, keepdims=True) if layer.centred else 0) + z * moved
    away = np.abs(exact.gain) * np.minimum(np.divide(apart, least, out=np.full_like(apart, np.inf), where=least > 0),
                                           2 * most)
    return between(layer, known, y - away, y + away)


KIND = Kind(Norm, FloatNorm, {"mode": Choice(MODES), "epsilon": Int(1, MOST), "factor": FORMAT, "normal": FORMAT,
                              **FORMATS}, arrays={"gain": 1, "shift": 1})
