"""Units in a row: where blocks are of another size, what comes is put into those that are taken."""
from collections.abc import Sequence

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.stream import Interface

from circulant.hw.emit.target import Platform, separate_module
from circulant.hw.stream.join import fork
from circulant.hw.stream.pipeline import connect
from circulant.hw.stream.width_converter import WidthConverter
from circulant.sim.golden.stages import Stage

__all__ = ["into", "link", "parted", "values"]


def values(stream: Interface) -> int:
    """Values of a block of a stream."""
    return int(stream.payload.shape().members["data"].length)


def into(m: Module, source: Interface, sink: Interface, *, size: int, width: int, name: str) -> Interface:
    """Join two streams of vectors of ``size`` values, whatever the blocks of each; returns what the sink takes from."""
    if values(source) != values(sink):
        m.submodules[f"{name}_reblock"] = reblock = WidthConverter(
            size=size, width=width, k_in=values(source), k_out=values(sink))
        connect(m, source, reblock.i)
        source = reblock.o
    connect(m, source, sink)
    return source


def link(m: Module, layers: Sequence[Stage], units: Sequence[wiring.Component],
         platform: Platform = None) -> list[Interface]:
    """Add the units under the names of their layers, each behind the one before; returns the streams between them.

    Parameters:
        platform: for units that have nothing but their streams in common, see `separate_module`.
    """
    for layer, unit in zip(layers, units, strict=True):
        m.submodules[layer.name] = separate_module(platform, unit, f"circulant_layer_{layer.name}")
    return [into(m, before.o, after.i, size=layer.outputs, width=layer.output_format.width, name=layer.name)
            for layer, before, after in zip(layers, units, units[1:], strict=False)]


def parted(m: Module, source: Interface, sinks: Sequence[Interface], *, size: int, width: int, name: str) -> None:
    """Give a stream of vectors of ``size`` values to all that take it, whatever the blocks of each."""
    if len(sinks) == 1:
        into(m, source, sinks[0], size=size, width=width, name=name)
        return
    entries = [stream.Signature(source.payload.shape()).create(path=(f"{name}_to_{n}",)) for n in range(len(sinks))]
    fork(m, source, entries, name=name)
    for n, (entry, sink) in enumerate(zip(entries, sinks, strict=True)):
        into(m, entry, sink, size=size, width=width, name=f"{name}_to_{n}")
