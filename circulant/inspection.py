"""Models without an experiment: what of an ONNX file, or of a class in a Python file, converts, before data exists."""
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from circulant.extras import extras
from circulant.sim.files.user_code import calling, load_object
from circulant.sim.refusal import Refusal

if TYPE_CHECKING:
    from circulant.training import ConversionReport

__all__ = ["inspected_file", "is_model"]

WHAT = "The model to inspect"


def is_model(source: str | None) -> bool:
    """Whether a name is that of an ONNX file, or of something in a Python file."""
    return source is not None and (source.endswith(".onnx") or ".py:" in source)


def inspected_file(source: str, shapes: tuple[str, ...], output: str | None) -> "ConversionReport":
    """The report on a model whose inputs are zeros.

    Parameters:
        source: FILE.onnx or FILE.py:NAME; the file is run then.
        shapes: of a sample of each input, without the batch, "1,16,65"; an ONNX file may say them itself.
        output: of an ONNX file with several the one to keep.

    Raises:
        Refusal: when a shape is missing or none; as `circulant.training.from_onnx`, and for a file that is missing or
            makes no module.
    """
    sizes = [_sizes(shape) for shape in shapes]
    with extras("circulant inspect", "torch", *(("onnx",) if source.endswith(".onnx") else ())):
        from circulant import training
    if source.endswith(".onnx"):
        if not Path(source).is_file():
            raise Refusal(f"An ONNX file must be a file that exists, but {source} does not; name another")
        model = training.from_onnx(source, np.zeros((2, *sizes[0])) if sizes else None, output=output)
        return training.inspect(model, np.zeros(model.taken))
    if not sizes:
        raise Refusal(f"{source} must come with the shape of a sample, as no data says it; give it, without the batch, "
                      "as --shape 1,16,65, for each input once")
    model = calling(WHAT, source, load_object(WHAT, source))
    samples = tuple(np.zeros((2, *each), np.float32) for each in sizes)
    return training.inspect(model, samples if len(samples) > 1 else samples[0])


def _sizes(shape: str) -> tuple[int, ...]:
    parts = shape.replace("x", ",").split(",")
    if not all(part.strip().isdecimal() and int(part) for part in parts):
        raise Refusal(f"--shape must be positive numbers with commas between them, such as 1,16,65, not {shape!r}")
    return tuple(map(int, parts))
