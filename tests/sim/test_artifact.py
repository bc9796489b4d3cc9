import json
import os
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from circulant.sim import artifact
from circulant.sim.files.schema import Int, Table
from circulant.sim.refusal import Refusal
from tests.refused import refused
from tests.sim.definitions import repeatable

BODY = {"name": "größe", "list": [1, 2.5, None, True], "nested": {"b": 1, "a": []}}
ARRAYS = {"w": np.arange(6).reshape(2, 3), "b": np.array([-1, 2 ** 40])}


@pytest.fixture
def json_file(tmp_path):
    path = tmp_path / "thing.json"
    artifact.write_json(path, "thing", 3, BODY)
    return path


@pytest.fixture
def npz_file(tmp_path):
    path = tmp_path / "thing.npz"
    artifact.write_npz(path, "thing", 3, ARRAYS, network="abc")
    return path


def change(path, **fields):
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def test_json_round_trip(json_file):
    sha = artifact.digest(BODY)
    assert artifact.read_json(json_file, "thing", 3) == {**BODY, "hash": sha}
    assert json.loads(json_file.read_text()) == {"format": "thing", "version": 3, "hash": sha, **BODY}


def test_write_json_returns_the_hash(tmp_path):
    sha = artifact.write_json(tmp_path / "x.json", "thing", 1, BODY)
    assert sha == artifact.read_json(tmp_path / "x.json", "thing", 1)["hash"] == artifact.digest(BODY)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=10)


@repeatable(40)
@given(st.dictionaries(st.text().filter(lambda key: key not in ("format", "version", "hash")) | st.integers(),
                       json_values, max_size=6))
def test_every_body_can_be_read_again(tmp_path_factory, body):
    path = tmp_path_factory.getbasetemp() / "body.json"
    artifact.write_json(path, "thing", 1, body)
    read = artifact.read_json(path, "thing", 1)
    assert read.pop("hash") == artifact.digest(read)
    assert read == json.loads(json.dumps(body))


def test_digest_ignores_the_order_of_keys():
    assert artifact.digest({"a": 1, "b": {"c": 2, "d": 3}}) == artifact.digest({"b": {"d": 3, "c": 2}, "a": 1})
    assert artifact.digest({"a": (1, 2)}) == artifact.digest({"a": [1, 2]})
    assert artifact.digest({2: "x", 10: "y"}) == artifact.digest({"10": "y", "2": "x"})


def test_digest_is_sha256():
    assert artifact.digest({}) == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"


@pytest.mark.parametrize("other", [{"a": 2}, {"b": 1}, {"a": "1"}, {"a": [1]}, {"a": 1, "b": 1}, {}])
def test_digest_differs(other):
    assert artifact.digest({"a": 1}) != artifact.digest(other)


@pytest.mark.parametrize("other", [
    {"a": np.array([1, 2, 4])}, {"b": np.array([1, 2, 3])}, {"a": np.array([1, 2, 3], np.uint64)},
    {"a": np.array([1, 2, 3], np.int32)}, {"a": np.array([[1, 2, 3]])}, {"a": np.array([1.0, 2.0, 3.0])},
    {"a": np.array([1, 2, 3]), "b": np.array([])}, {},
])
def test_digest_of_arrays_differs(other):
    assert artifact.digest_arrays({"a": np.array([1, 2, 3])}) != artifact.digest_arrays(other)


def test_digest_of_arrays_ignores_order_and_layout():
    a, b = np.arange(6).reshape(2, 3), np.arange(4)
    assert artifact.digest_arrays({"a": a, "b": b}) == artifact.digest_arrays({"b": b, "a": np.asfortranarray(a)})
    assert artifact.digest_arrays({"a": a[:, ::2]}) == artifact.digest_arrays({"a": a[:, ::2].copy()})


def test_npz_round_trip(npz_file):
    arrays, meta = artifact.read_npz(npz_file, "thing", 3)
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array)
        assert arrays[name].dtype == array.dtype
    assert meta == {"network": "abc", "hash": artifact.write_npz(npz_file, "thing", 3, ARRAYS, network="abc")}


def test_npz_hash_covers_meta_and_arrays(tmp_path):
    path = tmp_path / "x.npz"
    hashes = {artifact.write_npz(path, "thing", 3, arrays, **meta) for arrays, meta in (
        (ARRAYS, {}), (ARRAYS, {"network": "a"}), (ARRAYS, {"network": "b"}), ({"w": ARRAYS["w"]}, {}))}
    assert len(hashes) == 4


def test_files_are_reproducible(tmp_path):
    for name in ("a", "b"):
        artifact.write_npz(tmp_path / f"{name}.npz", "thing", 3, ARRAYS, network="abc")
        artifact.write_json(tmp_path / f"{name}.json", "thing", 3, BODY)
    for kind in ("npz", "json"):
        assert (tmp_path / f"a.{kind}").read_bytes() == (tmp_path / f"b.{kind}").read_bytes()


@pytest.mark.parametrize("read", [artifact.read_json, artifact.read_npz])
def test_missing_file(read, tmp_path):
    path = tmp_path / "thing"
    assert refused(read, path, "thing", 3) == (
        f"{path} must exist, but it is missing; run the step that writes it first")


@pytest.mark.parametrize(("read", "name"), [(artifact.read_json, "thing.json"), (artifact.read_npz, "thing.npz")])
class TestHeader:
    def test_wrong_format(self, read, name, json_file, npz_file):
        path = json_file.with_name(name)
        assert refused(read, path, "other", 3) == (
            f"{path}: field 'format' must be 'other', not 'thing'; give the right file")

    @pytest.mark.parametrize("version", [2, 4])
    def test_wrong_version(self, read, name, version, json_file, npz_file):
        path = json_file.with_name(name)
        assert refused(read, path, "thing", version) == (
            f"{path}: field 'version' must be {version}, not 3; write the file again with this version of circulant")


def test_json_wrong_hash(json_file):
    sha = artifact.digest(BODY | {"name": "other"})[:12]
    change(json_file, name="other")
    assert refused(artifact.read_json, json_file, "thing", 3) == (
        f"{json_file}: field 'hash' must be that of the contents ({sha}…), not '{artifact.digest(BODY)[:12]}'; "
        "the file was changed or damaged: run the step that writes it again")


@pytest.mark.parametrize("fields", [{"hash": "0" * 64}, {"hash": None}, {"more": 1}, {"list": []}])
def test_json_changed(json_file, fields):
    change(json_file, **fields)
    assert refused(artifact.read_json, json_file, "thing", 3).startswith(
        f"{json_file}: field 'hash' must be that of the contents (")


@pytest.mark.parametrize("field", ["format", "version", "hash"])
def test_json_without_header_field(json_file, field):
    document = json.loads(json_file.read_text())
    del document[field]
    json_file.write_text(json.dumps(document))
    assert re.match(rf"^{re.escape(str(json_file))}: field '{field}' must be .*, not '?None'?; ",
                    refused(artifact.read_json, json_file, "thing", 3))


@pytest.mark.parametrize("contents", [b"", b"{", b"\xff\xfe", b"PK\x03\x04"])
def test_no_json(json_file, contents):
    json_file.write_bytes(contents)
    assert re.match(rf"^{re.escape(str(json_file))} must be a JSON file, but it is not \(.+\); write it again$",
                    refused(artifact.read_json, json_file, "thing", 3))


@pytest.mark.parametrize(("contents", "kind"), [("[1, 2]", "list"), ("3", "int"), ("null", "NoneType")])
def test_no_json_object(json_file, contents, kind):
    json_file.write_text(contents)
    assert refused(artifact.read_json, json_file, "thing", 3) == (
        f"{json_file} must hold a JSON object, not a {kind}; write it again")


def test_a_folder_is_no_file(tmp_path):
    for read, kind in ((artifact.read_json, "JSON file"), (artifact.read_npz, "thing archive")):
        assert refused(read, tmp_path, "thing", 3).startswith(f"{tmp_path} must be a {kind}, but it is not (")


def npy(path):
    with path.open("wb") as file:
        np.save(file, np.arange(3))


@pytest.mark.parametrize("write", [
    lambda path: path.write_bytes(b""),
    lambda path: path.write_bytes(b"nonsense"),
    lambda path: path.write_bytes(path.read_bytes()[:-30]),
    lambda path: path.write_text("{}"),
    lambda path: np.savez(path, a=np.arange(3)),
    lambda path: np.savez(path, header=np.frombuffer(b"nonsense", np.uint8)),
    lambda path: np.savez(path, header=np.array([None])),
    npy,
], ids=["empty", "nonsense", "truncated", "json", "headless", "no header", "pickle", "npy"])
def test_no_archive(npz_file, write):
    write(npz_file)
    assert re.match(rf"^{re.escape(str(npz_file))} must be a thing archive, but it is not \(.+\); write it again$",
                    refused(artifact.read_npz, npz_file, "thing", 3), re.DOTALL)


def test_npz_wrong_hash(npz_file):
    with np.load(npz_file) as archive:
        members = dict(archive)
    members["w"] = members["w"] + 1
    np.savez(npz_file, **members)
    assert refused(artifact.read_npz, npz_file, "thing", 3).startswith(
        f"{npz_file}: field 'hash' must be that of the contents (")


def test_any_damaged_bit_of_an_archive_is_refused_or_harmless(npz_file):
    whole = npz_file.read_bytes()
    rng = np.random.default_rng(1)
    harmless = 0
    for place in range(0, len(whole), 2):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << rng.integers(8)
        npz_file.write_bytes(bytes(damaged))
        try:
            arrays, meta = artifact.read_npz(npz_file, "thing", 3)
        except Refusal:
            continue
        harmless += 1
        assert meta["network"] == "abc"
        assert artifact.digest_arrays(arrays) == artifact.digest_arrays(ARRAYS)
    assert harmless < len(whole) / 6  # Time stamps, attributes and the like.


def test_any_damaged_bit_of_a_json_is_refused(json_file):
    whole = json_file.read_bytes()
    rng = np.random.default_rng(2)
    for place in range(len(whole) - 2):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << rng.integers(8)
        json_file.write_bytes(bytes(damaged))
        try:
            body = artifact.read_json(json_file, "thing", 3)
        except Refusal:
            continue
        assert body == {**BODY, "hash": artifact.digest(BODY)}  # White space became another one.


# What is no file, and what no writer writes.

@pytest.mark.parametrize(("make", "kind"), [
    (os.mkfifo, "a pipe"), (lambda path: os.symlink("/dev/zero", path), "a device"),
    (lambda path: (path.touch(), os.truncate(path, 1 << 40)), "1,099,511,627,776 bytes")])
def test_what_is_no_file_is_refused_unread(tmp_path, make, kind):
    make(path := tmp_path / "thing")
    for read in (artifact.read_json, artifact.read_npz):
        assert kind in refused(read, path, "thing", 3)


@pytest.mark.parametrize(("token", "words"), [
    ("NaN", "a number must be finite, not 'NaN'"), ("-Infinity", "a number must be finite, not '-Infinity'"),
    ("1e999", "a number must be finite, not '1e999'"), ("9" * 4301, "a number has 4,301 digits, more than 100"),
    ("[" * 61 + "]" * 61, "it has more than 60 brackets within each other"),
    ("[" * 100_000 + "]" * 100_000, "it has more than 60 brackets within each other"),
    ('{"a":' * 9000 + "1" + "}" * 9000, "it has more than 60 brackets within each other")],
    ids=["nan", "infinity", "overflow", "digits", "deep", "very deep", "deep objects"])
def test_json_that_no_writer_writes(json_file, token, words):
    json_file.write_text(json_file.read_text().replace("2.5", token))
    assert refused(artifact.read_json, json_file, "thing", 3) == (
        f"{json_file} must be a JSON file, but it is not ({words}); write it again")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_no_reader_takes_is_not_written(tmp_path, value):
    assert refused(artifact.write_json, tmp_path / "x", "thing", 3, {"a": [value]}).startswith(
        f"{tmp_path / 'x'} must hold finite numbers")
    assert not (tmp_path / "x").exists()


def test_a_rule_holds_for_the_body(json_file, npz_file):
    open_rule = Table({"name": Int(0, 1)}, open=True)
    assert refused(artifact.read_json, json_file, "thing", 3, open_rule).startswith(
        f"{json_file}: field 'name' must be an integer from 0 to 1, not 'größe'; ")
    assert refused(artifact.read_npz, npz_file, "thing", 3, Table({"network": Int(0, 1)})).startswith(
        f"{npz_file}: field 'network' must be an integer from 0 to 1, not 'abc'; ")


@pytest.mark.parametrize(("header", "words"), [
    ("[]", "must hold a JSON object as its header, not a list"),
    ('{"format": "thing", "version": 3}', "field 'hash' must be there, but it is missing"),
    ('{"format": "thing", "version": 3, "hash": 3, "meta": {}}', "field 'hash' must be a SHA-256"),
    ('{"format": "thing", "version": true, "hash": "", "meta": {}}', "field 'version' must be 3, not True"),
    ('{"format": [], "version": 3}', "field 'format' must be 'thing', not []")])
def test_a_header_of_nonsense(npz_file, header, words):
    np.savez(npz_file, header=np.frombuffer(header.encode(), np.uint8))
    assert words in refused(artifact.read_npz, npz_file, "thing", 3)


def test_the_hash_of_an_archive_alone(npz_file):
    assert artifact.npz_hash(npz_file) == artifact.read_npz(npz_file, "thing", 3)[1]["hash"]
