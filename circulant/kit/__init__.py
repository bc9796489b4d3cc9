"""Integration kit: what an engineer needs beside ``top.v`` to drop a generated core into a project."""
from circulant.kit.kit import write_kit

__all__ = ["write_kit"]
