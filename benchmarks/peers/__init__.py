"""Other generators and this one on the same small models: ``python -m benchmarks peers``."""
from benchmarks.peers.environments import PEERS
from benchmarks.peers.run import OURS, measure, write
from benchmarks.peers.shapes import MODELS

__all__ = ["MODELS", "OURS", "PEERS", "measure", "write"]
