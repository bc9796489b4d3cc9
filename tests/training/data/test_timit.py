"""TIMIT, on a tree of the same shape: the split, the phones, and files that are not what they should be."""
import numpy as np
import pytest
from scipy.io import wavfile

from circulant.sim.refusal import Refusal
from circulant.training.data import load_data
from circulant.training.data.phones import PHONES_39
from circulant.training.data.timit import CORE_TEST, sphere
from tests.training.data.conftest import write_sphere, write_tree


def test_the_split_and_the_shapes(tree):
    data = load_data("timit", path=str(tree))
    assert data.task == "ctc"
    assert len(data.train_x) == 3 * 2, "three speakers with two sentences that are not SA"
    assert len(data.test_x) == 24 * 2, "the core test's speakers alone"
    assert data.shape == (1 + (7 * 1600 - 400) // 160, 120)
    assert data.train_lengths.tolist() == [68] * 6
    assert data.symbols == ("<blank>", *PHONES_39)


@pytest.mark.parametrize(("phones", "target"), [
    (39, ["sil", "s", "aa", "sil", "t", "sil"]), (48, ["sil", "s", "ao", "cl", "t", "sil"]),
    (61, ["h#", "s", "q", "ao", "tcl", "t", "h#"])])
def test_the_phones(tree, phones, target):
    data = load_data("timit", path=str(tree), phones=phones)
    assert data.classes == phones + 1
    for y, length in zip(data.train_y, data.train_target_lengths, strict=True):
        assert [data.symbols[number] for number in y[:length]] == target


def test_the_papers_width(tree):
    assert load_data("timit", path=str(tree), bands=51).inputs == 153


def test_neither_spelling_nor_the_folder_above_matters(tree, tmp_path):
    other = write_tree(tmp_path / "copy" / "timit", str.lower)
    assert load_data("timit", path=str(tree)).digest() == load_data("timit", path=str(other.parent)).digest()


def test_recordings_that_were_converted_are_read(tree):
    before = load_data("timit", path=str(tree)).digest()
    for path in tree.rglob("*.WAV"):
        rate, samples = sphere(path)
        wavfile.write(path, rate, samples)
    assert load_data("timit", path=str(tree)).digest() == before


def test_a_sphere_file(tmp_path):
    samples = np.array([1, -2, 300, -32768], np.int16)
    write_sphere(tmp_path / "x.wav", samples)
    rate, read = sphere(tmp_path / "x.wav")
    assert rate == 16000
    assert read.tolist() == samples.tolist()
    assert read.dtype == np.int16
    write_sphere(tmp_path / "big.wav", samples.byteswap(), sample_byte_format="-s2 10")
    assert sphere(tmp_path / "big.wav")[1].tolist() == samples.tolist()


@pytest.mark.parametrize(("changes", "message"), [
    ({"sample_coding": "-s26 pcm,embedded-shorten-v2.00"}, r"must be 16 bit mono PCM, not coding pcm,embedded-shorten-v"
                                                           r"2.00 with 1 channels of 2 bytes; convert it"),
    ({"channel_count": "-i 2"}, "not coding pcm with 2 channels"),
    ({"sample_n_bytes": "-i 1"}, "channels of 1 bytes"),
    ({"sample_count": "-i 5"}, "must hold the 5 samples that its header names, and at least one, but has 4; copy it"),
    ({"sample_count": "-i 0"}, "must hold the 0 samples"),
    ({"sample_count": ""}, r"must be a NIST SPHERE file, but its header cannot be read \('sample_count'\)"),
    ({"sample_byte_format": "-s2 99"}, r"header cannot be read \('99'\)"),
])
def test_what_is_no_sphere_file(tmp_path, changes, message):
    write_sphere(tmp_path / "x.wav", [1, 2, 3, 4], **changes)
    with pytest.raises(Refusal, match=message):
        sphere(tmp_path / "x.wav")


def test_what_is_no_recording_at_all(tmp_path):
    (tmp_path / "x.wav").write_text("nothing")
    with pytest.raises(Refusal, match=r"x.wav must be a NIST SPHERE file, but its header cannot be read"):
        sphere(tmp_path / "x.wav")


def test_a_tree_that_is_not_whole(tree, tmp_path):
    speaker = next(path for path in tree.rglob("FELC0"))
    for path in speaker.iterdir():
        path.unlink()
    with pytest.raises(Refusal, match=r"TEST must hold all 24 speakers of the core test set, but lacks FELC0; copy th"):
        load_data("timit", path=str(tree))
    with pytest.raises(Refusal, match=r"^The data set 'timit' must be a folder with TRAIN and TEST in it, or the one "):
        load_data("timit", path=str(speaker))
    assert len(CORE_TEST) == 24


def test_no_training_utterances(tree):
    for path in (tree / "TRAIN").rglob("*.PHN"):
        path.unlink()
    with pytest.raises(Refusal, match=r"TRAIN must hold \.PHN files in DR\*/SPEAKER folders, but holds none; copy the"):
        load_data("timit", path=str(tree))


@pytest.mark.parametrize(("text", "message"), [
    ("0 1600 h#\n1600 3200 xx\n", r"SI648.PHN, line 2 must be a begin, an end and one of TIMIT's 61 phones, not '1600"),
    ("0 h#\n", r"line 1 must be a begin, an end"), ("", r"must name at least one phone, but names none"),
    ("0 1600 q\n", r"must name at least one phone")])
def test_phones_that_are_none(tree, text, message):
    (tree / "TRAIN" / "DR1" / "FCJF0" / "SI648.PHN").write_text(text)
    with pytest.raises(Refusal, match=message):
        load_data("timit", path=str(tree))


def test_a_recording_that_is_missing_or_of_another_rate(tree):
    recording = tree / "TRAIN" / "DR1" / "FCJF0" / "SI648.WAV"
    recording.unlink()
    with pytest.raises(Refusal, match=r"SI648.PHN must have its recording SI648.WAV beside it, but that is missing"):
        load_data("timit", path=str(tree))
    write_sphere(recording, np.zeros(9000), sample_rate="-i 8000")
    with pytest.raises(Refusal, match=r"SI648.WAV must be 16 bit mono at 16000 Hz, not int16 of shape \(9000,\) at 80"):
        load_data("timit", path=str(tree))
