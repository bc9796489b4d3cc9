"""Four families at one budget of weight bits: what is compared."""
from dataclasses import replace

import pytest

from benchmarks.equal_bits import FILE
from benchmarks.experiments import campaign
from circulant.experiment import load


@pytest.mark.parametrize("data", ["fsdd", "speechocean762"])
def test_families_and_block_sizes_differ_and_nothing_of_the_training_does(data):
    loaded = [load(entry.row.experiment, entry.row.sets) for entry in campaign(FILE)]
    loaded = [each for each in loaded if each.data.name == data]
    families = [each.model.cell if each.model.kind == "labeller" else each.model.kind for each in loaded]
    assert list(zip(families, (each.compression.block_size for each in loaded), strict=True)) == [
        (kind, k) for kind in ("gru", "tcn", "min_gru", "lru") for k in (1, 8, 16)]
    unused = [replace(each.training, retrain_rate=0.01) for each in loaded]  # Direct training has no retraining.
    assert len({str(each) for each in unused}) == len({str(each.hardware) for each in loaded}) == 1


def test_blocks_of_the_separable_network_are_all_that_its_twin_has_not():
    dense, blocks = [load(entry.row.experiment, entry.row.sets) for entry in campaign(FILE)
                     if entry.row.experiment == "mnist-separable"]
    assert replace(dense, compression=blocks.compression) == blocks
    assert dense.compression.block_size == 1
