"""The mean or the maximum over the steps of a sequence."""
from circulant.hw.kinds.over_time import over_time

__all__ = ["over_time"]
