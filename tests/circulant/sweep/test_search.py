"""Searches: what is proposed, what is kept, and what is refused before anything is computed."""
import json
import math
import random
import sqlite3
import threading
from collections import defaultdict

import pytest
from optuna.storages import InMemoryStorage

from circulant.sim.refusal import Refusal
from circulant.sweep import search as module
from circulant.sweep.goal import Search
from circulant.sweep.grid import read
from circulant.sweep.search import search

AXES = """
block_size = [1, 2, 4, 8]
weight_bits = [4, 6, 8, 10, 12]
activation_bits = [8, 12, 16]
multipliers = [16, 32, 64]
"""


def row(point):
    """What a sweep might find: narrow words cost accuracy, large blocks save cycles."""
    k, bits = int(point.block_size), point.experiment.quantization.weight_bits
    wide, budget = point.experiment.quantization.activation_bits, point.experiment.hardware.multipliers
    return {"experiment": point.label, "block_size": point.block_size, "weight_bits": bits, "activation_bits": wide,
            "budget": budget, "measure": "plan", "reason": "", "metric": "accuracy", "higher_is_better": True,
            "quantized": 0.99 - 0.004 * k - 0.3 * 2.0 ** -bits - 2.0 ** -wide, "weight_memory_bits": 9000 * bits // k,
            "multipliers": budget, "cycles_per_step": 40 + 9000 // k // budget}


@pytest.fixture
def evaluated(monkeypatch):
    """Points that were evaluated, and the number after which the user interrupts."""
    seen = []

    def run(points, *, measure, jobs, show):
        if len(seen) >= getattr(run, "stop", math.inf):
            raise KeyboardInterrupt
        seen.extend(points)
        show("points", len(points), len(points))
        return [row(point) if point.block_size != "2" else row(point) | {"reason": "No such block"} for point in points]

    monkeypatch.setattr(module, "run", run)
    return seen, run


@pytest.fixture
def quick(monkeypatch):
    """Studies in memory, by their URL."""
    storages = defaultdict[str, InMemoryStorage](InMemoryStorage)
    monkeypatch.setattr(module, "get_storage", storages.__getitem__)


def settings(method, **others):
    lines = (f"{key} = {value}" for key, value in ({"points": 60} | others).items())
    return "\n".join(("[search]", f"method = {method!r}", *lines))


@pytest.mark.parametrize("method", ["random", "nsga2", "tpe"])
def test_every_method_proposes_different_points_and_the_same_again(quick, sweep_file, evaluated, tmp_path, method):
    seen, _ = evaluated
    sweep, shown = read(sweep_file(AXES, settings(method))), []
    rows = search(sweep, tmp_path / "one", show=lambda *report: shown.append(report))
    assert len(rows) == len(seen) == len(set(map(str, rows))) == 60
    assert shown[-1] == ("points", 60, 60, "")
    assert search(sweep, tmp_path / "two") == rows, "the same seed must propose the same points"
    assert len(seen) == 120
    assert search(sweep, tmp_path / "one") == rows
    assert len(seen) == 120, "what a study has found is not evaluated again"


def test_a_method_finds_what_is_good_sooner_than_chance(quick, sweep_file, evaluated, tmp_path):
    def best(method):
        sweep = read(sweep_file(AXES, settings(method, objectives=["work"], at_least="{score = 0.97}")))
        rows = [row for row in search(sweep, tmp_path / method) if not row["reason"] and not row["violates"]]
        return min(row["cycles_per_step"] * row["multipliers"] for row in rows)

    assert best("tpe") <= best("random")


@pytest.mark.parametrize("method", ["nsga2", "tpe"])
def test_it_goes_on_after_an_interruption_as_if_nothing_happened(quick, sweep_file, evaluated, tmp_path, method):
    _, run = evaluated
    sweep = read(sweep_file(AXES, settings(method)))
    whole = search(sweep, tmp_path / "whole")
    evaluated[0].clear()
    run.stop = 30
    with pytest.raises(KeyboardInterrupt):
        search(sweep, tmp_path / "cut")
    del run.stop
    assert search(sweep, tmp_path / "cut") == whole


def test_a_small_space_ends_with_all_of_its_points(quick, sweep_file, evaluated, tmp_path):
    sweep = read(sweep_file("weight_bits = [4, 6, 8]\nmultipliers = [16, 32]", settings("tpe")))
    sweep = sweep.__class__(**{**vars(sweep), "spaces": tuple(
        space.__class__(space.label, space.point([0, 0]).experiment, space.axes) for space in sweep.spaces)})
    rows = search(sweep, tmp_path)
    assert len({(row["weight_bits"], row["budget"]) for row in rows}) == len(rows) == 6


def test_points_beyond_a_bound_say_so(quick, sweep_file, evaluated, tmp_path):
    sweep = read(sweep_file(AXES, settings("tpe", at_most="{multipliers = 32}", at_least="{score = 0.95}")))
    for found in search(sweep, tmp_path):
        if found["reason"]:
            assert "violates" not in found
            continue
        wrong = [words for words, broken in (("multipliers ≤ 32", found["multipliers"] > 32),
                                             ("score ≥ 0.95", found["quantized"] < 0.95)) if broken]
        assert found["violates"] == ", ".join(wrong)


def test_a_study_lies_beside_the_results(sweep_file, evaluated, tmp_path):
    sweep = read(sweep_file(AXES, settings("nsga2", points=6)))
    rows = search(sweep, tmp_path / "out")
    assert (tmp_path / "out" / "search.db").is_file()
    assert search(sweep, tmp_path / "out") == rows
    assert len(evaluated[0]) == 6


def test_another_search_must_not_go_on_with_the_study(sweep_file, evaluated, tmp_path):
    search(read(sweep_file(AXES, settings("tpe", points=6))), tmp_path)
    longer = sweep_file(AXES, settings("tpe", points=9))
    assert len(search(read(longer), tmp_path)) == 9, "more points are no other search"
    with pytest.raises(Refusal, match=r"A study must be that of its search, but tiny/digits-gru in sqlite:.* was begun "
                                      "with another space, method, seed, goal or experiment; take another --out"):
        search(read(sweep_file(AXES, settings("tpe", seed=1))), tmp_path)


def test_storages_that_cannot_be_used(sweep_file, evaluated, tmp_path):
    (tmp_path / "damaged.db").write_bytes(b"not a database" * 100)
    for url in ("nonsense", f"sqlite:///{tmp_path}/none/search.db", f"sqlite:///{tmp_path}/damaged.db"):
        sweep = read(sweep_file(AXES, settings("tpe", storage=json.dumps(url))))
        with pytest.raises(Refusal, match=r"search\.storage must be a storage that Optuna can open and write to, but "):
            search(sweep, tmp_path)
    assert evaluated[0] == []


def test_a_storage_that_is_locked_or_of_another_version(sweep_file, evaluated, tmp_path):
    url = f"sqlite:///{tmp_path}/search.db?timeout=0.1"
    sweep = read(sweep_file(AXES, settings("tpe", storage=json.dumps(url), points=2)))
    search(sweep, tmp_path)
    words = r"search\.storage must be a storage that Optuna can open and write to, but sqlite:\S+ cannot be used: "
    other = sqlite3.connect(tmp_path / "search.db")
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(Refusal, match=f"{words}.*locked"):
        search(sweep, tmp_path)
    other.rollback()
    other.execute("UPDATE alembic_version SET version_num = 'v9.9.9.a'")
    other.commit()
    other.close()
    with pytest.raises(Refusal, match=f"{words}.*version"):
        search(sweep, tmp_path)


def test_searches_that_begin_at_once_share_a_new_storage(tmp_path):
    """One made the tables, and the others were refused with the name of one."""
    failed = []

    def opened(url, start):
        start.wait()
        try:
            module._storage(url)
        except Exception as error:
            failed.append(str(error))

    for turn in range(3):
        start = threading.Barrier(4)
        all_ = [threading.Thread(target=opened, args=(f"sqlite:///{tmp_path}/{turn}.db", start)) for _ in range(4)]
        for each in all_:
            each.start()
        for each in all_:
            each.join()
    assert failed == []


def test_a_folder_serves_one_search_at_a_time(quick, sweep_file, evaluated, tmp_path):
    given = read(sweep_file(AXES + settings("random")))
    with module._alone(tmp_path), pytest.raises(Refusal, match=(
            rf"^A search must have its folder for itself, but another one is at work in {tmp_path}; wait for its end, "
            "or take another --out$")):
        search(given, tmp_path)
    assert len(search(given, tmp_path)) == 60


def test_a_study_that_another_search_goes_on_with(quick, sweep_file, evaluated, tmp_path, monkeypatch):
    """From another folder, so that nothing kept it from that."""
    given, run = read(sweep_file(AXES + settings("random"))), evaluated[1]

    def meanwhile(points, **how):
        module._study(given, given.spaces[0], f"sqlite:///{tmp_path / 'search.db'}")
        return run(points, **how)

    monkeypatch.setattr(module, "run", meanwhile)
    with pytest.raises(Refusal, match=(
            r"^A study must have one search at a time, but another one has gone on with \S+ in sqlite:///.*search\.db; "
            r"wait for its end, or take another search\.storage$")):
        search(given, tmp_path)


def test_a_figure_that_a_network_has_not_fails_the_point(quick, sweep_file, evaluated, tmp_path):
    sweep = read(sweep_file(AXES, settings("tpe", at_most="{latency_spaced = 100}").replace("60", "3")))
    assert all("latency_spaced is not known of this network" in row["reason"] or row["reason"] == "No such block"
               for row in search(sweep, tmp_path))


def test_the_excess_of_a_bound_is_a_share_of_it():
    goal = Search(at_most={"multipliers": 50}, at_least={"score": 0.9})
    found = {"quantized": 0.45, "higher_is_better": True, "multipliers": 75}
    assert list(goal.excess(found)) == [("multipliers ≤ 50", 0.5), ("score ≥ 0.9", 0.5)]
    assert goal.violated(found) == ["multipliers ≤ 50", "score ≥ 0.9"]


def test_an_unseen_point_is_one():
    space = read("recurrent").spaces[0]
    rng = random.Random(0)
    known = {tuple(rng.randrange(len(axis.values)) for axis in space.axes) for _ in range(200)}
    found = module._unseen(space, known, "seed")
    assert tuple(found.values()) not in known and list(found) == [axis.name for axis in space.axes]
