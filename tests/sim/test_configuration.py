import json

import numpy as np
import pytest

from circulant.sim.configuration import RESUME, WRITE, Configuration, StateShape, Window
from circulant.sim.refusal import Refusal

STATE = StateShape("gru", "y", size=5, block_size=4, blocks=2, streams=2, width=11)
PORT = Configuration((Window("weights", 64, 5, 70), Window("gru_y", 16, 4, 44, STATE)))


def test_a_word_of_the_memory_takes_several_of_the_port():
    weights, _ = PORT.windows
    assert (weights.parts, weights.stride, weights.size) == (3, 4, 32)
    assert weights.addresses() == [64 + 4 * n + part for n in range(5) for part in range(3)]
    words = [1, 1 << 69, (1 << 70) - 1, 0xabcdef0123456789, 0]
    written = dict(weights.writes(words))
    assert all(0 <= part < 1 << 32 for part in written.values())
    assert weights.joined([written[address] for address in weights.addresses()]) == words
    with pytest.raises(Refusal, match=r"^Memory 'weights' must be given its 5 words, not 4; make them for a network of "
                                      "the same structure$"):
        list(weights.writes(words[1:]))


def test_states_are_written_as_they_are_read():
    states = [np.random.default_rng(1).integers(-1024, 1024, (2, 5)), None]
    memory = {address: value for kind, address, value, _ in PORT.restore(states) if kind == WRITE}
    assert memory.pop(RESUME) == 0b11, "both streams go on"
    read = [memory[operation.address] for operation in PORT.save()]
    found, nothing = PORT.saved(read, states)
    assert found.tolist() == states[0].tolist()
    assert nothing is None
    assert memory.keys() == set(PORT.windows[1].addresses())


def test_only_the_memories_of_the_network_are_loaded():
    words = {"weights": [5] * 5, "program": [1]}
    assert {address for address, _ in PORT.writes(words)} == set(PORT.windows[0].addresses())


def test_the_map_survives_its_file():
    assert Configuration.from_json(PORT.as_json()) == PORT


@pytest.mark.parametrize(("change", "words"), [
    (lambda window: window.update(first=-8), "field 'windows[0].first' must be an integer from 0 to 16777215, not -8"),
    (lambda window: window.update(first=0), "window 'memory' must begin at a multiple of its size"),
    (lambda window: window.update(first=17), "window 'memory' must begin at a multiple of its size"),
    (lambda window: window.update(words=0), "field 'windows[0].words' must be an integer from 1 to"),
    (lambda window: window.update(width=2.5), "field 'windows[0].width' must be an integer from 1 to"),
    (lambda window: window.pop("state"), "field 'windows[0].state' must be there, but it is missing"),
    (lambda window: window["state"].update(more=1), "field 'windows[0].state.more' must not be there"),
    (lambda window: window["state"].update(part="z"), "field 'windows[0].state.part' must be 'y' or 'c', not 'z'"),
    (lambda window: window["state"].update(streams=2), "window 'memory' must hold the state of its layer, but 2 words"),
    (lambda window: window["state"].update(size=9), "window 'memory' must hold the state of its layer, but 2 words"),
])
def test_a_map_of_nonsense_is_refused(change, words):
    shape = StateShape("gru", part="y", size=7, block_size=4, blocks=2, streams=1, width=16)
    body = json.loads(json.dumps(Configuration((Window("memory", 16, 2, 64, shape),)).as_json()))
    assert Configuration.from_json(body).windows[0].state == shape
    change(body["windows"][0])
    with pytest.raises(Refusal) as caught:
        Configuration.from_json(body, "where.json")
    assert str(caught.value).startswith("where.json: ") and words in str(caught.value)


def test_windows_that_lie_on_each_other_are_refused():
    windows = Window("a", 16, 8, 32), Window("b", 16, 8, 32)
    with pytest.raises(Refusal, match="window 'b' must begin at a multiple of its size 8, behind the one before"):
        Configuration.from_json(Configuration(windows).as_json())


def test_a_design_without_states_refuses_them():
    with pytest.raises(Refusal, match="must have states to save and restore"):
        Configuration(PORT.windows[:1]).restore([])
