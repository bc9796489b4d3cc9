"""FSDD and speechocean762: their official splits and figures, and what is refused."""
import json

import numpy as np
import pytest
from scipy.io import wavfile

from circulant.sim.files.data_folder import data_folder
from circulant.sim.refusal import Refusal
from circulant.training.data import files, load_data
from circulant.training.data.speech import ragged
from tests.data import real


@real("fsdd")
def test_fsdd():
    data = load_data("fsdd")
    assert (data.shape, data.classes, data.task) == ((226, 32), 10, "classification")
    assert np.bincount(data.train_y).tolist() == [270] * 10
    assert np.bincount(data.test_y).tolist() == [30] * 10
    steps = np.arange(226) < data.train_lengths[:, None]
    assert np.abs(data.train_x[steps].mean(0, dtype=float)).max() < 1e-3
    assert np.abs(data.train_x[steps].std(0, dtype=float) - 1).max() < 1e-3


@real("fsdd")
def test_fsdd_with_options():
    plain = load_data("fsdd", test_subset=30, subset=300)
    assert load_data("fsdd", bands=20, deltas="second", subset=300).inputs == 60
    stacked = load_data("fsdd", stack=3, test_subset=30, subset=300)
    assert stacked.inputs == 96
    assert stacked.test_lengths.tolist() == [-(-length // 3) for length in plain.test_lengths]
    assert np.array_equal(stacked.test_x[0, 0].reshape(3, 32), plain.test_x[0, :3])
    short = load_data("fsdd", longest=40, test_subset=30)
    assert short.train_lengths.max() == 40
    assert np.array_equal(short.test_lengths, plain.test_lengths), "the test set is not chosen by length"


@real("fsdd")
def test_fsdd_with_a_fixed_number_of_steps():
    natural, fixed = load_data("fsdd", subset=300), load_data("fsdd", subset=300, steps=50)
    assert fixed.train_lengths is None
    assert fixed.test_lengths is None
    assert fixed.shape == (50, 32)
    for x, y, length in zip(fixed.train_x, natural.train_x, natural.train_lengths, strict=True):
        kept = min(50, length)
        assert np.array_equal(x[50 - kept:], y[:kept])
        assert not x[:50 - kept].any()


@real("fsdd")
def test_a_clone_of_its_repository_gives_the_same(tmp_path):
    archive = files.load_npz(data_folder() / "fsdd" / "fsdd.npz")
    sounds = ragged(archive["samples"], archive["offsets"])
    (tmp_path / "recordings").mkdir()
    kept = [at for at in range(len(sounds)) if archive["index"][at] < 8 and archive["speaker"][at] < 2]
    for at in kept:
        speaker = archive["speaker_names"][archive["speaker"][at]]
        name = f"{archive['label'][at]}_{speaker}_{archive['index'][at]}.wav"
        wavfile.write(tmp_path / "recordings" / name, 8000, sounds[at])
    data = load_data("fsdd", path=str(tmp_path), normalise="none")
    whole = load_data("fsdd", normalise="none")
    assert (len(data.train_x), len(data.test_x)) == (60, 100)
    found = {row[:length].tobytes() for row, length in zip(whole.test_x, whole.test_lengths, strict=True)}
    assert {row[:length].tobytes() for row, length in zip(data.test_x, data.test_lengths, strict=True)} <= found


@real("speechocean762")
def test_speechocean762():
    data = load_data("speechocean762", subset=600, test_subset=200, longest=500)
    assert (data.task, data.classes, data.inputs) == ("ctc", 40, 40)
    assert data.symbols[:3] == ("<blank>", "AA", "AE")
    assert data.train_lengths.max() <= 500
    for row, length in zip(data.test_x, data.test_lengths, strict=True):
        assert np.abs(row[:length].mean(0, dtype=float)).max() < 1e-3
        assert np.abs(row[:length].std(0, dtype=float) - 1).max() < 1e-3


@real("speechocean762")
def test_the_transcripts_are_those_of_the_data_set():
    lines = files.unpacked(data_folder() / "speechocean762" / "transcripts.jsonl.xz").decode().splitlines()
    spelt = [[phone.rstrip("012") for word in entry["phones"] for phone in word]
             for entry in map(json.loads, lines) if entry["split"] == "test"]
    data = load_data("speechocean762", subset=1, stack=8)
    assert len(spelt) == len(data.test_x) == 2500
    assert data.test_target_lengths.sum() == 47_369
    assert spelt == [[data.symbols[number] for number in y[:length]]
                     for y, length in zip(data.test_y, data.test_target_lengths, strict=True)]


@real("speechocean762")
def test_speechocean762_with_options():
    data = load_data("speechocean762", subset=50, test_subset=10, deltas="second", stack=2)
    assert data.inputs == 240
    with pytest.raises(Refusal, match=r"^data.longest must leave training sequences, but the shortest of 'speechocean76"
                                      r"2' has 157 steps, not 100 at most; raise it$"):
        load_data("speechocean762", longest=100)
    with pytest.raises(Refusal, match=r"^The training set .* must have a step for each symbol and one between equal "):
        load_data("speechocean762", subset=50, stack=40)


@pytest.mark.parametrize(("offsets", "said"), [([0, 2], r"\[0\] to \[2\] in 2"), ([1, 5], r"\[1\]"), ([0], "in 1 plac"),
                                               ([0, 3, 3, 5], "in 4 places"), ([0, 4, 3, 5], "in 4 places")])
def test_offsets_that_do_not_fit(offsets, said):
    with pytest.raises(Refusal, match=rf"^Offsets must rise from 0 to the 5 rows that there are, not from .*{said}"):
        ragged(np.arange(5), np.array(offsets))


def test_what_is_no_recording_of_fsdd(tmp_path):
    (tmp_path / "recordings").mkdir()
    path = tmp_path / "recordings" / "x_jackson_0.wav"
    wavfile.write(path, 8000, np.zeros(500, np.int16))
    with pytest.raises(Refusal, match=r"x_jackson_0.wav must be a .wav file named digit_speaker_index, but is not"):
        load_data("fsdd", path=str(tmp_path))
    path = path.rename(path.with_name("3_jackson_0.wav"))
    with pytest.raises(Refusal, match=r"^A folder of recordings must hold both parts, not 0 recordings to train with "):
        load_data("fsdd", path=str(tmp_path))
    wavfile.write(path, 16000, np.zeros((500, 2), np.int16))
    with pytest.raises(Refusal, match=r"must be 16 bit mono at 8000 Hz, not int16 of shape \(500, 2\) at 16000 Hz; fe"):
        load_data("fsdd", path=str(tmp_path))
