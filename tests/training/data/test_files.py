"""Finding and reading files: what is missing or damaged is said."""
import gzip
import lzma
import sys
import tracemalloc

import numpy as np
import pytest

from circulant.sim.files.data_folder import data_folder
from circulant.sim.refusal import Refusal
from circulant.training.data import files


def test_where_data_are(monkeypatch, tmp_path):
    monkeypatch.setenv("CIRCULANT_DATA", str(tmp_path))
    (tmp_path / "fsdd").mkdir()
    assert files.locate("fsdd", "") == tmp_path / "fsdd"
    monkeypatch.delenv("CIRCULANT_DATA")
    assert data_folder().parts[-2:] == ("shared", "data")
    assert files.locate("fsdd", str(tmp_path)) == tmp_path
    monkeypatch.chdir(tmp_path)
    assert files.locate("fsdd", "fsdd") == tmp_path / "fsdd"


def test_compressed_files(tmp_path):
    for name, pack in (("x", bytes), ("x.gz", gzip.compress), ("x.xz", lzma.compress)):
        (tmp_path / name).write_bytes(pack(b"text" * 100))
        assert files.unpacked(tmp_path / name) == b"text" * 100


@pytest.mark.parametrize("name", ["x.gz", "x.xz"])
@pytest.mark.parametrize("damage", [lambda data: data[:-9], lambda data: b"no archive", lambda data: b"",
                                    lambda data: data[:20] + b"\xff" * 30 + data[50:]])
def test_damaged_files(tmp_path, name, damage):
    pack = gzip.compress if name == "x.gz" else lzma.compress
    data = pack(np.random.default_rng(0).bytes(1000))
    (tmp_path / name).write_bytes(damage(data))
    if (name, damage(data)) == ("x.gz", b""):
        assert files.unpacked(tmp_path / name) == b"", "no members at all are a legal .gz"
        return
    with pytest.raises(Refusal, match=rf"{name} must be a whole compressed file, but it is damaged \(.*\); fetch the "):
        files.unpacked(tmp_path / name)


@pytest.mark.parametrize("name", ["x.gz", "x.xz"])
def test_a_small_file_that_unpacks_to_a_huge_one_is_refused(tmp_path, name, monkeypatch):
    (tmp_path / name).write_bytes((gzip if name == "x.gz" else lzma).compress(bytes(100_000)))
    monkeypatch.setattr(files.files, "LIMIT", 99_999)
    with pytest.raises(Refusal, match=rf"{name} must have at most 99,999 bytes when it is unpacked, but it has more; "):
        files.unpacked(tmp_path / name)
    monkeypatch.setattr(files.files, "LIMIT", 100_000)
    assert len(files.unpacked(tmp_path / name)) == 100_000


@pytest.mark.parametrize("name", ["x.gz", "x.xz"])
def test_a_small_compressed_file_takes_little_memory(tmp_path, name):
    (tmp_path / name).write_bytes((gzip if name == "x.gz" else lzma).compress(bytes(1000)))
    tracemalloc.start()
    try:
        assert files.unpacked(tmp_path / name) == bytes(1000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1 << 24, f"{peak:,} bytes for a file of 1,000"


def test_missing_files(tmp_path):
    for read in (files.unpacked, files.load_array, files.load_npz, lambda path: files.fingerprint([path])):
        with pytest.raises(Refusal, match=r"x.npz must be a readable file, but it is not \(No such file or directory"):
            read(tmp_path / "x.npz")


def test_arrays(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(4))
    assert files.load_array(tmp_path / "x.npy").tolist() == [0, 1, 2, 3]
    np.savez(tmp_path / "x.npz", a=np.arange(4))
    assert files.load_npz(tmp_path / "x.npz", ("a",))["a"].tolist() == [0, 1, 2, 3]
    with pytest.raises(Refusal, match=r"x.npz must hold the keys a, b, but lacks b; it has a$"):
        files.load_npz(tmp_path / "x.npz", ("a", "b"))


def header(text):
    body = text.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(body).to_bytes(2, "little") + body


@pytest.mark.parametrize("data", [
    header("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000000,), }"), header("'unterminated"),
    header("(" * 100), header("{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999999,), }"),
    b"PK\x03\x04 no archive"], ids=["huge", "unterminated", "brackets", "long number", "half an archive"])
def test_a_damaged_array_is_refused_in_one_sentence(tmp_path, data):
    (tmp_path / "x.npy").write_bytes(data)
    with pytest.raises(Refusal, match=r"(?s)x\.npy must hold a \.npy array of numbers, but does not \(.*\); "):
        files.load_array(tmp_path / "x.npy")


def test_an_archive_is_no_array(tmp_path):
    np.savez(tmp_path / "x.npz", a=np.arange(4))
    (tmp_path / "x.npz").rename(tmp_path / "x.npy")
    with pytest.raises(Refusal, match=r"x\.npy must hold .*, but does not \(it is an archive of arrays\)"):
        files.load_array(tmp_path / "x.npy")


def test_no_file_runs_code(tmp_path):
    class Trap:
        def __reduce__(self):
            return sys.exit, (3,)

    np.save(tmp_path / "x.npy", np.array([Trap()], dtype=object))
    np.savez(tmp_path / "x.npz", a=np.array([Trap()], dtype=object))
    with pytest.raises(Refusal, match=r"x.npy must hold a .npy array of numbers, but does not"):
        files.load_array(tmp_path / "x.npy")
    with pytest.raises(Refusal, match=r"'a' must be an array of numbers, but holds Python objects"):
        files.load_npz(tmp_path / "x.npz")


def test_what_is_no_array(tmp_path):
    (tmp_path / "x.npy").write_bytes(b"")
    with pytest.raises(Refusal, match=r"x.npy must hold a .npy array of numbers"):
        files.load_array(tmp_path / "x.npy")


def test_the_fingerprint_is_of_names_and_contents(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_text("a")
    other.write_text("b")
    prints = [files.fingerprint(paths) for paths in ([one], [other], [one, other], [other, one])]
    assert len(set(prints)) == 4
    one.write_text("c")
    assert files.fingerprint([one]) not in prints
