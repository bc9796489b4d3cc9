"""Scores of seeds in words."""
from circulant.report.seeds import few, spread


def test_a_mean_has_its_deviation_and_one_score_has_none():
    assert spread("accuracy", [0.94, 0.95, 0.96]) == "95.00% ± 1.00%"
    assert spread("accuracy", [0.94]) == "94.00%" and spread("rmse", [1.0, 2.0]) == "1.5 ± 0.7071"


def test_fewer_than_three_say_so():
    assert few(3) == "" and few(1).startswith(" 1 seed is too few") and few(2).startswith(" 2 seeds are too few")
