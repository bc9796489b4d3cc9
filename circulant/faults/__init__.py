"""Campaigns of faults: what wrong bits in the memories of a run cost, in the golden model and in its circuit."""
