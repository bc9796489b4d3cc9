"""A pooling: windows side by side as a stream, others read from lines."""
from circulant.hw.kinds.pool import pool

__all__ = ["pool"]
