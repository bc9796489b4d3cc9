"""Settings of the compression: the block size of every matrix."""
from dataclasses import dataclass

from circulant.sim.settings import Table, key

__all__ = ["CompressionSettings"]


@dataclass(frozen=True)
class CompressionSettings(Table):
    """How the matrices become block-circulant."""

    block_size: int | dict[str, int] = key(
        8, "block size k of every matrix, or of the named ones (the others stay dense)",
        low=1, high=64, power_of_two=True)
