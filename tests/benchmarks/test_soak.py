"""A soak ends when its words have been compared, plays each design as long as the others, and adds up what it found."""
import random
from types import SimpleNamespace

import pytest

from benchmarks import soak


@pytest.fixture
def played(monkeypatch):
    """Rounds of designs in the place of which others stand: cycles and words of each round by name."""
    rounds = {"short": (10, 3), "long": (30, 1)}

    class Soaked:
        def __init__(self, name, folder, seed):
            self.name, self.cycles, self.words, self.mismatches = name, 0, 0, 0

        def play(self):
            cycles, words = rounds[self.name]
            self.cycles, self.words = self.cycles + cycles, self.words + words

        def figures(self):
            return {"words": self.words}

    monkeypatch.setattr(soak, "Soaked", Soaked)
    return SimpleNamespace(rounds=rounds)


def test_designs_take_turns_until_there_are_enough_words(played):
    figures = soak.measure(("short", "long"), words=20)
    assert (figures["words"], figures["mismatches"]) == (20, 0)
    assert figures["designs"] == {"short": {"words": 18}, "long": {"words": 2}}


def test_resets_of_an_image_come_within_the_time_of_two(monkeypatch):
    """The cycles of its manifest are those of an image, however many pixels it has."""
    class Played(list):
        inputs = [[0] * 2560] * 4

    soaked, runs = object.__new__(soak.Soaked), []
    vars(soaked).update(
        rounds=soak.SHARE - 1, resets=0, seconds=0.0, _session=None, _random=random.Random(1), _seed=1, _tools=None,
        _built=SimpleNamespace(folder=""), _played=Played([0] * 4),
        _manifest=SimpleNamespace(over_images=True, cycles=500, vectors_of_image=3), _count=lambda *_: None)
    monkeypatch.setattr(soak, "job_of", lambda manifest, given, played, drawn: runs.extend(given))
    monkeypatch.setattr(soak, "drive", lambda *_, **__: None)
    soaked.play()
    moments = [moment for moment, _ in runs[0].moments]
    assert len(moments) == soak.MOMENTS and 900 < max(moments) < 1003


def test_it_ends_in_time(played):
    assert soak.measure(("short",), words=20, seconds=0)["words"] == 0


@pytest.mark.soak
def test_a_design_is_right_under_stalls_and_resets():
    figures = soak.measure(("interleaved",), words=3000)
    assert figures["mismatches"] == 0 and figures["words"] >= 3000
    assert figures["designs"]["interleaved"]["resets"] >= 100


@pytest.mark.soak
def test_networks_and_states_are_exchanged_between_the_rounds():
    figures = soak.measure(("reloadable",), words=4000)
    assert figures["mismatches"] == 0 and figures["designs"]["reloadable"]["exchanges"] >= 1
