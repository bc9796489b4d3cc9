"""Gestures of four kinds, as an accelerometer gives them: 24 steps of 3 axes, with noise."""
import sys

import numpy as np

rng = np.random.default_rng(7)
steps = np.linspace(0, 2 * np.pi, 24)
kinds = np.stack([np.stack([np.sin(n * steps), np.cos(steps) * (-1) ** n, steps / 7 * n - 1], -1) for n in range(4)])
y = rng.integers(0, 4, 600)
np.savez(sys.argv[1], x=(kinds[y] + rng.normal(0, 0.3, (600, 24, 3))).astype(np.float32), y=y,
         symbols=["circle", "line", "wave", "rest"])
