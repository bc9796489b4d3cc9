"""The records of a training and of a point, which go between processes, into files and into pictures."""
from pathlib import Path
from typing import TypedDict

__all__ = ["Failure", "Row", "Trained"]


class Failure(TypedDict, total=False):
    """The end of what failed: ``reason``, and ``code``, the exit code that this would have."""

    reason: str
    code: int


class Trained(Failure, total=False):
    """A training: its folder in the store, the hash of the model in it, metric and scores by stage, and the block sizes
    that a search ended in. ``files`` go with it to another machine."""

    folder: Path
    model: str
    metric: str
    higher_is_better: bool
    scores: dict[str, float]
    block_size: int | dict[str, int] | None
    files: dict[str, bytes]


class Row(Failure, total=False):
    """Settings and findings of a point: the columns of `circulant.sweep.sheets`; an empty ``reason`` says that it did
    not fail. What a search, an exploration or means over seeds add stands last."""

    experiment: str
    block_size: str
    weight_bits: int | str
    activation_bits: int
    budget: int
    seed: int | str
    measure: str
    metric: str
    higher_is_better: bool
    dense: float
    circulant: float
    quantized: float
    weights: int
    dense_weights: int
    weight_memory_bits: int
    memory_bits: int
    multipliers: int
    multiplications: int
    cycles_per_step: float
    floor_cycles: int
    latency_spaced: float
    latency_contiguous: float
    dsps: int
    block_rams: float
    luts: int
    flip_flops: int
    mhz: float
    cells_mm2: float
    logic_mm2: float
    cells_mhz: float
    inference_nj: float
    rest_uw: float
    violates: str
    broken: list[str]
    seeds: int
    dense_deviation: float
    circulant_deviation: float
    quantized_deviation: float
    front: str
    key: str
    equal: str
    units: int
    said: str
    each: list[float]
