"""The summary of a run: its figures in words, for the terminal and for the report's first table."""
from collections.abc import Iterator, Mapping
from typing import Any

from rich.table import Table

from circulant.boards.device import NAMES, rounded
from circulant.hw.plan.families import CLOCK_ERROR
from circulant.run.quantization import loss
from circulant.sim import metrics

__all__ = ["LATENCIES", "STAGES", "rows", "speed", "stages", "summary", "title", "told"]

STAGES = {"dense": "dense", "projected": "projected", "circulant": "block-circulant", "quantized": "quantized"}
"""Stages at which a metric is measured, as people read them."""


ERROR = {"estimated": f" ± {CLOCK_ERROR:.0%}"}
"""The error of a clock, by where it is from."""

LATENCIES = {"latency_spaced": "into an idle circuit", "latency_contiguous": "in a closed loop"}
"""The latencies of a circuit, and of which samples they are."""


def stages(figures: Mapping[str, Any]) -> dict[str, str]:
    """The stages that a run has a metric of, as people read them; a model without blocks is no block-circulant one."""
    names = STAGES | ({"circulant": "floating point"} if figures["compression"]["ratio"] == 1 else {})
    return {stage: words for stage, words in names.items() if stage in figures[figures["metric"]]}


def title(figures: Mapping[str, Any]) -> str:
    """The name of a run: its experiment, and its folder where that has another name."""
    name, folder = figures["name"], figures["folder"]
    return str(name) if name == folder else f"{name} in {folder}"


def speed(hardware: Mapping[str, Any], mhz: float) -> dict[str, float]:
    """Measured cycles at a clock: ``mhz``, ``steps_per_second``, ``sequences_per_second``, ``cycles_per_step_us``,
    ``latency_spaced_us``, ``latency_contiguous_us``.

    Parameters:
        mhz: the clock in MHz. It is assumed; nothing here places and routes a design.
    """
    return {"mhz": mhz, "steps_per_second": mhz * 1e6 / hardware["cycles_per_step"],
            "sequences_per_second": mhz * 1e6 / hardware["cycles_per_sequence"],
            **{f"{name}_us": hardware[name] / mhz for name in ("cycles_per_step", *LATENCIES)}}


def told(taken: Mapping[str, Any]) -> str:
    """The share of a resource that a design takes, in words."""
    if "error" in taken:
        return (f"{taken['share']:.0%} ± {taken['share'] * taken['error']:.0%} (about {rounded(taken['used']):,} of "
                f"{taken['held']:,})")
    return f"{taken['share']:.1%} ({taken['used']:,g} of {taken['held']:,})"


def rows(figures: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Names and values of the summary."""
    weights, hw, check, clock = (figures[part] for part in ("compression", "hardware", "verification", "clock"))
    metric = figures["metric"]
    for stage, words in stages(figures).items():
        if stage != "projected":
            yield f"{metrics.words(metric)}, {words}", metrics.shown(metric, figures[metric][stage])
    if "rmse" in figures["outcome"]:
        yield "error, quantized", f"{figures['outcome']['rmse']:.4g} RMS, {figures['outcome']['worst']:.4g} at most"
    if picking := figures.get("picking"):
        saved = 1 - picking["weight_bits"] / picking["weight_bits_start"]
        yield "bit widths chosen", (f"{picking['weight_bits']:,} weight bits, {saved:.0%} fewer; {loss(picking)}")
    yield "weights", f"{weights['weights_dense']:,} → {weights['weights_circulant']:,} ({weights['ratio']:.1f}× fewer)"
    yield "multipliers", f"{hw['multipliers']:,}" + (
        f"; products of spectra are approximate ({hw['multiplier']})" if "multiplier" in hw else "")
    if "dsp_blocks" in hw:
        yield "DSP blocks", f"{hw['dsp_blocks']:,} of {hw['dsp_packing']} bits, which make two narrow products each"
    yield "cycles per step", (f"{hw['cycles_per_step']:,.4g} (floor {hw['floor_cycles']:,}, "
                              f"{hw['cycles_per_step'] / hw['floor_cycles']:.2f}×)")
    yield "cycles per sequence", f"{hw['cycles_per_sequence']:,.0f} (floor {hw['floor_cycles_sequence']:,})"
    for name, when in LATENCIES.items():
        predicted = hw.get(f"{name}_predicted")
        planned = "estimated" if name in hw.get("estimates", ()) else "predicted"
        yield name.replace("_", ", "), (f"{hw[name]:,.0f} cycles {when}"
                                        + ("" if predicted is None else f" ({planned} {predicted:,})"))
    steps = hw["steps_per_sequence"]
    unit = f"sequences/s of {steps:,.4g} steps" if steps > 1 else "samples/s"
    yield f"at {clock['mhz']:g} MHz ({clock['source']}{ERROR.get(clock['source'], '')})", (
        f"{clock['sequences_per_second']:,.0f} {unit}, {clock['cycles_per_step_us']:,.3g} µs a step, "
        f"latency {clock['latency_spaced_us']:,.3g} µs spaced, {clock['latency_contiguous_us']:,.3g} µs contiguous")
    yield "memory", f"{hw['memory_bits']:,} bits"
    if "device" in hw:
        yield f"share of {hw['device']['name']}", ", ".join(
            f"{taken['share']:.1%} of the {NAMES[name]}" + (f" (± {taken['error']:.0%})" if "error" in taken else "")
            for name, taken in hw["device"]["resources"].items())
        for doubt in hw["device"]["doubts"]:
            yield "warning", doubt
    yield "verified", (f"{check['sequences']:,} sequences, {check['words']:,} words, "
                       f"{check['mismatches']:,} mismatches ({check['simulator']})")
    if "coverage" in check:
        hit, points = check["coverage"]["reached"], check["coverage"]["points"]
        reached = ", ".join(f"{hit[kind]} of {count} {POINTS.get(kind, kind)}"
                            for kind, count in points.items() if count)
        yield "coverage", f"{check['drawn']:,} generated samples reach {reached}; the others may be out of reach"


POINTS = {"segment": "table segments", "boundary": "segment ends", "saturation": "format limits",
          "rounding": "roundings"}
"""Kinds of points that drawn samples reach, as the summary calls them."""


def summary(figures: Mapping[str, Any]) -> Table:
    """The table that ends a run on the terminal."""
    table = Table(title=title(figures), show_header=False, title_justify="left", title_style="bold")
    table.add_column(style="cyan", no_wrap=True)
    table.add_column()
    for what, value in rows(figures):
        wrong = what == "verified" and figures["verification"]["mismatches"]
        table.add_row(what, value, style="red" if wrong else None)
    return table
