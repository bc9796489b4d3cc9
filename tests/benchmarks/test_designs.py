"""Designs of the benchmarks: each has a network."""
from benchmarks import designs


def test_every_design_has_a_network():
    for name, shape in designs.DESIGNS.items():
        if "cell" not in shape.model:
            made = designs.network(name)
            assert made.name == name
            assert made.layers
