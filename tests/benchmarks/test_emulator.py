"""Time of an image by the emulator, and by another runtime where it is there."""
import sys
from pathlib import Path
from types import SimpleNamespace

from benchmarks import emulator


def test_it_is_skipped_without_the_other_runtime(monkeypatch):
    monkeypatch.setattr(emulator, "find_spec", lambda name: None)
    assert emulator.measure() == "skipped: onnxruntime is not installed"


def test_both_take_the_same_images(monkeypatch):
    taken = []

    class Session:
        def __init__(self, path, options, providers):
            assert options.intra_op_num_threads == 1
            assert Path(path).read_bytes().count(b"Conv") > 1

        def run(self, outputs, given):
            taken.append(given["x"].shape)

    monkeypatch.setattr(emulator, "IMAGES", 64)
    monkeypatch.setattr(emulator, "BATCHES", (24,))
    monkeypatch.setattr(emulator, "REPEATS", 1)
    monkeypatch.setattr(emulator, "find_spec", lambda name: name)
    monkeypatch.setitem(sys.modules, "onnxruntime", SimpleNamespace(SessionOptions=SimpleNamespace,
                                                                    InferenceSession=Session))
    found = emulator.measure()
    assert list(found) == ["emulator", "emulator, real inputs", "onnxruntime, batches of 24"]
    assert min(found.values()) > 0
    assert taken == [(24, 1, 28, 28), (24, 1, 28, 28), (16, 1, 28, 28)]
