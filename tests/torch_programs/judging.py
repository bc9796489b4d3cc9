"""Verdicts on programs: a program is right if it converts and its golden model stays within the derived bound of torch.
"""
from dataclasses import dataclass
from typing import Any

import numpy as np

from circulant.sim.error.error_bound import error_bound
from circulant.sim.refusal import Refusal
from circulant.training import export, reference
from tests.torch_programs.program import Program

__all__ = ["Verdict", "judge"]


@dataclass(frozen=True)
class Verdict:
    """Fate of a program.

    Parameters:
        status: "right", "refused", "wrong" or "traceback".
        note: of a refusal or an error, in words.
    """

    program: str
    status: str
    note: str = ""


def judge(program: Program) -> Verdict:
    """Convert a program and compare its golden model with torch."""
    try:
        model, x = program.model(), program.sample()
        exact, network = reference(model, x), export(model, x)
        given: Any = {each.name: part.numpy() for each, part in zip(exact.inputs, x, strict=True)} if isinstance(
            x, tuple) else x.numpy()
        bound: Any = error_bound(network, exact, given)
        wanted: Any = exact.run(given)  # `reference` has compared it with torch.
        found: Any = network.run(given)
        for name in exact.outputs:
            several = len(exact.outputs) > 1
            error, most = ((each[name] if several else each) for each in (_error(found, wanted, several), bound))
            if not (np.isfinite(error).all() and (error <= most + 1e-9).all()):
                return Verdict(program.name, "wrong", f"{error.max():.2g} off, bound {np.max(most):.2g}")
    except Refusal as refusal:
        return Verdict(program.name, "refused", str(refusal))
    except AssertionError as error:
        return Verdict(program.name, "wrong", str(error))
    except Exception as error:  # whatever a conversion raises
        return Verdict(program.name, "traceback", f"{type(error).__name__}: {error}")
    return Verdict(program.name, "right")


def _error(found: Any, wanted: Any, several: bool) -> Any:
    if several:
        return {name: np.abs(found[name].real - wanted[name]) for name in wanted}
    return np.abs(found.real - wanted)
