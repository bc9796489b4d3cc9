"""A soak ends when its words have been compared, plays each design as long as the others, and adds up what it found."""
from types import SimpleNamespace

import pytest

from benchmarks import soak


@pytest.fixture
def played(monkeypatch):
    """Rounds of designs in the place of which others stand: cycles and words of each round by name."""
    rounds = {"short": (10, 3), "long": (30, 1)}

    class Soaked:
        def __init__(self, name, folder, seed, *, toggles):
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


@pytest.mark.parametrize(("images", "span"), [(True, 1000), (False, 1500 * 4)])
def test_resets_come_within_two_images_or_the_longest_sequence(images, span):
    """The cycles of a manifest are those of an image, however many beats it has, or those of a step."""
    soaked = object.__new__(soak.Soaked)
    soaked._manifest = SimpleNamespace(over_images=images, cycles=500 if images else 1000)
    soaked._played = SimpleNamespace(inputs=[[0] * 3, [0] * 4])
    assert soaked.span == span


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


@pytest.mark.soak
def test_registers_are_watched_meanwhile():
    found = soak.measure(("interleaved",), words=3000, toggles=True)["designs"]["interleaved"]["toggles"]
    assert 0.9 * found["bits"] < found["toggled"] < found["bits"], "both are in every design"
    assert found["counters"] - len(found["never_came_back"]) == found["came_back"] > 0 < found["fewest"]
    assert any(name.endswith(".malformed") for name in found["still"]), "no frame is misplaced in a soak"
