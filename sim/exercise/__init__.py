"""Inputs drawn to exercise a circuit, chosen by what they reach in the golden model."""
from circulant.sim.exercise.choose import Exercise, exercise
from circulant.sim.exercise.points import Coverage

__all__ = ["Coverage", "Exercise", "exercise"]
