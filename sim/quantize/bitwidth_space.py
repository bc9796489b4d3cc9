"""The widths of a network that can be picked, each by name: which there are, and what a step down is."""
from collections.abc import Collection

from circulant.sim.golden.network import Network
from circulant.sim.passes.bases import bitwidth_fields
from circulant.sim.passes.bitwidths import RULES
from circulant.sim.refusal import Refusal, nearest

__all__ = ["FIELDS", "Place", "clip_of", "clips_of", "searched_bitwidths", "least", "step"]

FIELDS = ("weight_bits", "input_bits", "spectrum_bits", "product_bits", "output_bits", "state_bits", "cell_bits",
          "twiddle_bits")
"""The keys that are picked, for each layer; ``input_bits`` once."""

CLIPPED = {"spectrum_bits": "spectrum_clip", "product_bits": "product_clip", "output_bits": "output_clip"}
"""Widths whose format may also give up an integer bit instead of one behind the point."""

def searched_bitwidths(network: Network, fields: Collection[str] = FIELDS) -> list[str]:
    """The widths of a network that can be picked, by name; both directions of a layer have the same.

    Raises:
        Refusal: when there is no such field.
    """
    for name in fields:
        if name not in FIELDS:
            raise Refusal(f"A kind of width to choose must be one of {', '.join(FIELDS)}, not {name!r}"
                          f"{nearest(name, FIELDS)}")
    found = ["input_bits"] if "input_bits" in fields else []
    return [*found, *dict.fromkeys(f"{layer.name.partition('.')[0]}.{name}" for layer in network.layers
                                   for name in bitwidth_fields(layer) if name in fields)]


Place = dict[str, int]
"""A value of every knob, and of clips that are not 0."""


def least(name: str) -> int:
    """The smallest width that there is of this kind."""
    return RULES[name.rpartition(".")[2]][0]


def clip_of(name: str) -> str:
    """The name of the clip that goes with a width, or "" where there is none."""
    place, _, field = name.rpartition(".")
    return f"{place}.{CLIPPED[field]}" if field in CLIPPED else ""


def clips_of(name: str, now: int = 0) -> tuple[int, ...]:
    """The clips to try with a width, from that which it has."""
    return (now, now + 1) if clip_of(name) and now < RULES["spectrum_clip"][1] else (now,)


def step(name: str, bits: int, clipped: int) -> Place:
    """The place for a width of so many bits, with its clip."""
    return {name: bits} | ({clip_of(name): clipped} if clip_of(name) else {})
