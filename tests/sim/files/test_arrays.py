"""Archives are not believed: what they declare is checked before memory is taken for it."""
import io
import tracemalloc
import zipfile

import numpy as np
import pytest

from circulant.sim.files.arrays import ArchiveError, read_arrays

PLAIN = "{'descr': '<i8', 'fortran_order': False, 'shape': (3,), }"


def npy(header, data=b"", version=b"\x01\x00"):
    size = len(header).to_bytes(2 if version == b"\x01\x00" else 4, "little")
    return b"\x93NUMPY" + version + size + header.encode("latin1") + data


def archive(**members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in members.items():
            file.writestr(f"{name}.npy", data)
    buffer.seek(0)
    return buffer


@pytest.mark.parametrize("array", [
    np.arange(6).reshape(2, 3), np.asfortranarray(np.arange(6).reshape(2, 3)), np.array(5), np.zeros((0, 3)),
    np.array([True]), np.array(["größe", "x"]), np.array([1j]), np.arange(3, dtype=">u2"), np.array([b"x"]),
    np.zeros((1, 2, 3, 4), np.float32)], ids=str)
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_what_numpy_writes_is_read(array, save):
    buffer = io.BytesIO()
    save(buffer, a=array, b=np.arange(2))
    buffer.seek(0)
    found = read_arrays(buffer)
    assert list(found) == ["a", "b"]
    np.testing.assert_array_equal(found["a"], array)
    assert (found["a"].dtype, found["a"].shape) == (array.dtype, array.shape)
    assert list(read_arrays(buffer, only=("b",))) == ["b"]


@pytest.mark.parametrize(("member", "words"), [
    (npy(PLAIN.replace("(3,)", "(900000000000,)") + "\n", bytes(24)), "declares 7,200,000,000,000 bytes of data"),
    (npy(PLAIN.replace("(3,)", "(1000000, 1000000, 1000000)") + "\n"), "declares 8,000,000,000,000,000,000 bytes"),
    (npy(PLAIN.replace("(3,)", "(-1,)") + "\n"), "with a header as numpy writes it"),
    (npy(PLAIN.replace("(3,)", f"({'9' * 5000},)") + "\n"), "with a header as numpy writes it"),
    (npy(PLAIN.replace("'<i8'", "'|O'") + "\n", bytes(24)), "not of objects"),
    (npy(PLAIN.replace("'<i8'", "[('a', '<i8')]") + "\n", bytes(24)), "not of objects"),
    (npy(PLAIN.replace("'<i8'", "'<i99'") + "\n", bytes(24)), "."),
    (npy("__import__('os')\n"), "with a header as numpy writes it"),
    (npy("(" * 9000 + "\n"), "with a header as numpy writes it"),
    (npy(" " * 20_000 + "\n", version=b"\x02\x00"), "has 20,001 bytes, more than 10,000"),
    (npy(PLAIN + "\n", bytes(23)), "declares 24 bytes of data, but has 23"),
    (npy(PLAIN + "\n", bytes(25)), "declares 24 bytes of data, but has 25"),
    (npy(PLAIN + "\n", bytes(24))[:9], "."), (b"", "is no array"), (b"\x93NUMPY\x09\x00", "is no array"),
], ids=range(15))
def test_a_damaged_array(member, words):
    tracemalloc.start()
    try:
        with pytest.raises(ArchiveError, match=words):
            read_arrays(archive(a=member))
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


def test_a_member_that_declares_more_than_its_bytes_can_become():
    whole = archive(a=npy(PLAIN + "\n", bytes(24))).getvalue()
    sizes = (80 + 32).to_bytes(4, "little")
    at = whole.rindex(b"PK\x01\x02") + 24
    assert whole[at + 1:at + 4] == sizes[1:]
    with pytest.raises(ArchiveError, match="cannot have 4,294,967,280 bytes"):
        read_arrays(io.BytesIO(whole[:at] + (0xFFFFFFF0).to_bytes(4, "little") + whole[at + 4:]))


def test_all_arrays_together_stay_below_the_limit():
    data = archive(a=npy(PLAIN + "\n", bytes(24)), b=npy(PLAIN + "\n", bytes(24)))
    assert len(read_arrays(data)) == 2
    with pytest.raises(ArchiveError, match=r"^its arrays have .* bytes, more than 150$"):
        read_arrays(data, 150)


def test_other_members_are_refused():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("a.txt", "x")
    with pytest.raises(ArchiveError, match=r"^its member 'a\.txt' is no array$"):
        read_arrays(buffer)
    with pytest.raises(ArchiveError, match="not a zip file"):
        read_arrays(io.BytesIO(b"x" * 100))
