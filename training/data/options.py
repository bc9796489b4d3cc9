"""Data options of an experiment: one tree of options, of which each data set takes those that mean something."""
from dataclasses import dataclass, fields
from typing import Any

from circulant.sim.refusal import Refusal, nearest

__all__ = ["DELTAS", "LAYOUTS", "NORMALISE", "PHONES", "Options"]

LAYOUTS = ("auto", "image", "flat", "rows")
DELTAS = ("auto", "none", "first", "second")
NORMALISE = ("auto", "none", "sample", "train")
PHONES = (39, 48, 61)

ALWAYS = ("seed", "subset", "test_subset", "held_out")
LEAST = {"seed": 0, "subset": 0, "test_subset": 0, "held_out": 0, "longest": 0, "steps": 0, "bands": 0, "stack": 1}
CHOICES: dict[str, tuple[Any, ...]] = {"layout": LAYOUTS, "deltas": DELTAS, "normalise": NORMALISE, "phones": PHONES}


@dataclass(frozen=True)
class Options:
    """How a data set is read. All take ``seed``, ``subset``, ``test_subset`` and ``held_out``.

    Parameters:
        path: the file or folder; without it, the folder of that name below CIRCULANT_DATA.
        seed: chooses the split where the data set has none of its own, and what a subset keeps.
        subset, test_subset: samples that are kept of each part, of all classes alike; 0 keeps all.
        held_out: training samples that stand for the test part, so that settings can be chosen without a look at it; 0
            for none. See `assemble.divided`.
        layout: of images: "image" (C, H, W), "flat" (C·H·W,) or "rows" (H, C·W), a step for each row.
        longest: training sequences of more steps are left out; 0 keeps all. The test part always stays whole.
        steps: sequences are cut to this number of steps, or padded with zeros in front; 0 leaves them as they are.
        bands: mel bands; 0 for the data set's own number.
        deltas: "none", "first" (Δ) or "second" (Δ and ΔΔ), appended to the bands.
        normalise: to mean 0 and variance 1: "none", over each "sample", or over the "train" part; for each feature, or
            each channel of an image.
        stack: successive frames that make one step.
        phones: how many the 61 of TIMIT are folded to.

    Raises:
        Refusal: all values that are out of range at once.
    """

    path: str = ""
    seed: int = 0
    subset: int = 0
    test_subset: int = 0
    held_out: int = 0
    layout: str = "auto"
    longest: int = 0
    steps: int = 0
    bands: int = 0
    deltas: str = "auto"
    normalise: str = "auto"
    stack: int = 1
    phones: int = 39

    def __post_init__(self) -> None:
        problems = []
        for name, low in LEAST.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < low:
                problems.append(f"{name} must be an integer of at least {low}, not {value!r}")
        for name, choices in CHOICES.items():
            value = getattr(self, name)
            if value not in choices:
                problems.append(f"{name} must be one of {', '.join(map(repr, choices))}, not {value!r}"
                                f"{nearest(str(value), map(str, choices))}")
        path: object = self.path
        if not isinstance(path, str):
            problems.append(f"path must be a string, not {path!r}")
        if problems:
            raise Refusal("Options of a data set out of range: " + "; ".join(problems))

    @classmethod
    def of(cls, given: dict[str, Any]) -> "Options":
        """The options of these names.

        Raises:
            Refusal: when there is no such option, or as the class.
        """
        known = [field.name for field in fields(cls)]
        for name in given:
            if name not in known:
                raise Refusal(f"An option of a data set must be one of {', '.join(known)}, not {name!r}"
                              f"{nearest(name, known)}")
        return cls(**given)

    def only(self, dataset: str, taken: tuple[str, ...]) -> None:
        """See that no option is set that the data set would not obey.

        Raises:
            Refusal: naming all of them, and those that the data set takes.
        """
        taken = (*ALWAYS, *taken)
        ignored = [f"{field.name} = {getattr(self, field.name)!r}" for field in fields(self)
                   if field.name not in taken and getattr(self, field.name) != field.default]
        if ignored:
            raise Refusal(f"The data set {dataset!r} takes the options {', '.join(taken)}, not {', '.join(ignored)}; "
                          "leave them out")
