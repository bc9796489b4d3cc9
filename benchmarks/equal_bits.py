"""Four families of networks over spoken digits and over phones, each at one budget of weight bits, k = 1, 8 and 16, and
a depthwise separable network beside its dense twin: errors beside cycles.

`python -m benchmarks campaign --file benchmarks/equal_bits.toml` trains them.
"""
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks import records
from benchmarks.experiments import campaign
from circulant.estimate.networks import untrained
from circulant.experiment import load
from circulant.hw.plan_cache import plans_of
from circulant.hw.resources import figures
from circulant.sim.document import Document

__all__ = ["FILE", "measure"]

FILE = Path(__file__).with_name("equal_bits.toml")

TEST = {"fsdd": 300, "mnist": 10_000}
"""Samples of the test sets of classes."""


def measure(overrides: tuple[str, ...] = ()) -> Document:
    """Rows by label: the samples of the test set that each seed gets wrong (float weights), or its phone error rate in
    per cent, the bits of the weights, the multiplications, and what is planned for 64 multipliers. ``overrides`` are
    keys of all experiments, such as "hardware.multipliers=128"."""
    found: Document = {}
    table: Document = {}
    for entry in campaign(FILE):
        experiment = load(entry.row.experiment, (*entry.row.sets, *overrides))
        network, hardware = untrained(experiment), experiment.hardware
        planned = figures(network, plans_of(network, hardware.multipliers, objective=hardware.objective))
        kept = {seed: record for seed in entry.seeds if (record := records.record(entry.row, seed)) is not None}
        test = TEST.get(experiment.data.name)
        errors: Document = {str(seed): _errors(record, test) for seed, record in kept.items()}
        bits = sum(each.words * each.numbers * each.width for name, each in network.memories.items()
                   if name.endswith(".weights"))
        found[entry.row.label] = {
            "errors": errors, "weight_bits": bits, "multiplications": planned.multiplications,
            "multipliers": planned.multipliers, "period": planned.cycles, "latency_spaced": planned.latency_spaced,
        }
        wrong = f"{', '.join(map(str, errors.values())) or 'not trained'} {f'of {test:,}' if test else '%'} wrong"
        table[entry.row.label] = (
            f"{wrong}, {bits:,} bits, {planned.multiplications:,} multiplications, period {planned.cycles:g}, latency "
            f"{planned.latency_spaced}")
    return {"benchmark": "networks at equal weight bits", "table": table, "rows": found}


def _errors(record: Mapping[str, Any], test: int | None) -> float:
    if test is None:
        return round(100 * float(record["phone_error_rate"]["circulant"]), 2)
    return round(test * (1 - float(record["accuracy"]["circulant"])))
