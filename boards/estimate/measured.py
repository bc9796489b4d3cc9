"""Errors of estimates that were measured, as measured.toml lists them."""
import tomllib
from functools import cache
from importlib import resources
from typing import Any

__all__ = ["errors", "measured", "words"]

TITLES = {"dsps": "DSP", "block_rams": "block RAM", "luts": "LUT", "flip_flops": "FF"}


@cache
def measured() -> dict[str, Any]:
    """By family: ``designs``, their number, and for each resource ``worst`` and ``rms``, shares; under ``clock`` those
    of the clock, of designs that were routed."""
    text = resources.files("circulant.boards.estimate").joinpath("measured.toml").read_text("utf-8")
    return tomllib.loads(text)


def errors(family: str, *, recurrent: bool) -> dict[str, Any] | None:
    """Errors of drawn designs if the network is like them, else of all: ``designs``, and by resource ``worst`` and
    ``rms``; None where none were measured.

    Parameters:
        recurrent: whether the network is.
    """
    own = measured()["recurrent"]
    return own if recurrent and own["family"] == family else measured().get(family)


def words(family: str) -> str:
    """The errors of a family in a line."""
    found = measured().get(family)
    clock = measured()["clock"]
    if found is None:
        return ("no design of this family was measured: look-up tables and flip-flops have the factors of the one that "
                "is most like it")
    parts = [f"{TITLES[name]} {found[name]['rms']:.0%} (worst {found[name]['worst']:+.0%})" for name in TITLES]
    routed = (f"; clock of {clock['designs']} routed ones {clock['rms']:.0%} (worst {clock['worst']:+.0%})"
              if family == clock["family"] else "")
    return f"errors against Yosys, {found['designs']} designs, rms: {', '.join(parts)}{routed}"
