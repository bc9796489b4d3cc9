"""Candidates whose logic Yosys counted: factors are fitted to some, and show their error on others."""
from itertools import islice

import numpy as np
import pytest

from benchmarks import drawn_logic
from benchmarks.drawn_logic import PARTS, candidates, read
from circulant.boards.estimate.measured import measured


def test_candidates_are_the_same_each_time_and_others_of_another_seed():
    first, again, others = (list(islice(candidates(seed), 40)) for seed in (26, 26, 27))
    assert first == again and not set(first) & set(others)


def test_no_candidate_is_fitted_and_held_out():
    rows = read()
    assert {name: len(each) for name, each in rows.items()} == {name: count for name, (_, count) in PARTS.items()}
    assert rows["fitted"] and len(rows["held_out"]) >= 20
    assert not any(row["candidate"] == other["candidate"] for row in rows["fitted"] for other in rows["held_out"])


def test_the_estimate_of_a_candidate_that_was_held_out(monkeypatch):
    """The worst one; `benchmarks.drawn_logic.errors` has all."""
    some = {"held_out": read()["held_out"][20:21]}
    monkeypatch.setattr(drawn_logic, "read", lambda: some)
    errors = drawn_logic.errors()
    assert not errors["dsp"].any() and not errors["bram"].any()
    assert errors["lut"] == pytest.approx(measured()["recurrent"]["luts"]["worst"], abs=1e-4), "as users are told"
    assert np.abs(errors["ff"]).max() < 0.16
    assert abs(measured()["recurrent"]["luts"]["worst"]) < 0.15, "as was asked"
