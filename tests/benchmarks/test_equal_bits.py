"""Four families at one budget of weight bits: what is compared."""
from dataclasses import replace

from benchmarks.equal_bits import FILE
from benchmarks.experiments import campaign
from circulant.experiment import load


def test_families_and_block_sizes_differ_and_nothing_of_the_training_does():
    loaded = [load(entry.row.experiment, entry.row.sets) for entry in campaign(FILE)]
    assert [(each.model.kind, each.compression.block_size) for each in loaded] == [
        (kind, k) for kind in ("gru", "tcn", "min_gru", "lru") for k in (1, 8, 16)]
    unused = [replace(each.training, retrain_rate=0.01) for each in loaded]  # Direct training has no retraining.
    assert len({str(each) for each in unused}) == len({str(each.hardware) for each in loaded}) == 1
