"""Sigmoid and tanh in integers: segments, bits of the tables, greatest errors, and the picture of docs/numerics.md."""
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from circulant.report.plots import COLORS, png, style
from circulant.sim.arith.activation import FUNCTIONS, METHODS, Pwl
from circulant.sim.arith.fixed import Format, Reals
from circulant.sim.arith.segments import ERROR, fit_pwl
from circulant.sim.refusal import Refusal

__all__ = ["draw", "measure"]

ARGUMENT, VALUE = Format(16, 11), Format(16, 15)
"""16 bits, up to ±16; the values of a GRU's gates."""

BOUNDS = (0.002, ERROR)

CLSTM = {
    "sigmoid": (0.5, 11, (.0133857, .00858818, .0139985, .022652, .0362273, .0568646, .0866895, .126445, .173032,
                          .217198, .244919)),
    "tanh": (0.4, 11, (.00167675, .00205339, .00456386, .0101272, .0223917, .0491182, .105898, .220035, .424045, .71022,
                       .949872))}
"""C-LSTM's tables of 22 segments (simulator of the authors, Op.h): length of a segment, segments of each half, slopes
of the negative half from the left on."""


def measure(overrides: tuple[str, ...] = ()) -> dict[str, Any]:
    """Over every 16-bit argument; the picture goes to docs/images/activations.png.

    Raises:
        Refusal: when a key of an experiment is given, which this benchmark has none of.
    """
    if overrides:
        raise Refusal(f"The benchmark activations has no experiment whose keys could be set, not "
                      f"{', '.join(overrides)}; leave out --set")
    tables = {}
    for function in FUNCTIONS:
        for method, bound in ((method, bound) for method in METHODS for bound in BOUNDS):
            pwl = fit_pwl(function, ARGUMENT, VALUE, error=bound, method=method)
            if pwl.method == method and (not function.startswith("hard") or bound == ERROR):
                tables[f"{function}, {method}, {bound:g}"] = _figures(pwl)
    picture = Path(__file__).parents[1] / "docs" / "images" / "activations.png"
    draw(picture)
    rows = {name: f"{each['segments']} segments, {each['table_bits']:,} bits, error {each['max_error']:.6f}"
            for name, each in tables.items()}
    return {"benchmark": "activations", "table": rows, "tables": tables}


def _figures(pwl: Pwl) -> dict[str, Any]:
    return {"segments": pwl.segments, "max_error": pwl.max_error,
            "table_bits": pwl.segments * (pwl.slope_format.width + pwl.base_format.width),
            "cells": len(pwl.cells), "slope_bits": pwl.slope_format.width}


def published(function: str, x: Reals) -> Reals:
    """C-LSTM's table in float64: the lines meet, and the value at 0 is exact."""
    step, count, slopes = CLSTM[function]
    center = float(FUNCTIONS[function](np.zeros(1))[0])
    ends = center + np.concatenate([[0.0], np.cumsum(step * np.array(slopes[::-1]))])
    inside = np.interp(np.abs(x), step * np.arange(count + 1), ends, right=1.0)
    return np.where(x < 0, 2 * center - inside, inside)


def draw(path: Path) -> None:
    """Error over the argument: both tables, and C-LSTM's."""
    codes = np.arange(-6 << ARGUMENT.frac, 6 << ARGUMENT.frac)
    x = ARGUMENT.real(codes)
    figure = Figure(figsize=(10, 4.4), layout="constrained")
    for axes, function in zip(figure.subplots(1, 2), ("sigmoid", "tanh"), strict=True):
        exact = FUNCTIONS[function](x)
        axes.plot(x, 1e3 * (published(function, x) - exact), color=COLORS["direct"], lw=0.8,
                  label="C-LSTM, 22 segments")
        for method, bound, color in (("pwl", 0.002, "admm"), ("pwl", ERROR, "dense"), ("lut", ERROR, "retrain")):
            pwl = fit_pwl(function, ARGUMENT, VALUE, error=bound, method=method)
            axes.plot(x, 1e3 * (VALUE.real(pwl(codes)) - exact), color=COLORS[color], lw=0.8,
                      label=f"{method}, bound {bound:g}: {pwl.segments} segments")
        style(axes, f"error of {function} · 1000")
        axes.set_xlabel("argument")
        axes.set_ylim(-4.5, 4.5)
        axes.legend(frameon=False, fontsize=8, loc="lower right")
    path.write_bytes(png(figure))
