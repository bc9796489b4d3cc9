import json
from pathlib import Path

import numpy as np
import pytest

from circulant.sim import artifact
from circulant.sim.cosim.manifest import Manifest, Port
from circulant.sim.refusal import Refusal
from tests.sim.cosim.accumulator import manifest, write


@pytest.mark.parametrize("container_bits", [8, 16, 24, 32, 64])
@pytest.mark.parametrize(("elements", "elements_per_beat"), [(1, 1), (5, 2), (8, 8), (3, 4)])
def test_unpacking_is_the_inverse_of_packing(container_bits: int, elements: int, elements_per_beat: int) -> None:
    port = Port("p", elements_per_beat, container_bits=container_bits, width=container_bits, elements=elements,
                beats=-(-elements // elements_per_beat))
    limit = 1 << (container_bits - 1)
    values = np.random.default_rng(1).integers(-limit, limit - 1, (4, 3, elements), endpoint=True)
    values[0, 0, 0], values[0, 1, 0] = -limit, limit - 1
    beats = port.pack(values)
    assert beats.shape == (4, 3, port.beats, port.beat_bytes)
    got = port.unpack(beats)
    assert np.array_equal(got[..., :elements], values)
    assert not got[..., elements:].any(), "the last beat must be filled up with zeros"


def test_an_element_lies_at_its_container_sign_extended() -> None:
    beat = Port("p", 3, container_bits=16, width=12, elements=3, beats=1).pack(np.array([1, -2, 0x7FF]))
    assert int.from_bytes(beat.tobytes(), "little") == 0x07FF_FFFE_0001


def test_unpacking_no_beat_gives_no_vector() -> None:
    assert Port("p", 2, container_bits=16, width=12, elements=5,
                beats=3).unpack(np.zeros((0, 3, 4), np.uint8)).shape == (0, 6)


def test_files_and_ports_are_read(tmp_path: Path) -> None:
    folder = write(tmp_path / "design", per="step")
    design = Manifest.load(folder)
    assert design.per_step
    assert design.images == (folder / "constants.hex", folder / "options.hex")
    assert design.output == Port("m_axis", 4, container_bits=16, width=16, elements=5, beats=2)


@pytest.mark.parametrize("name", ["constants.hex", "accumulator.v", "manifest.json"])
def test_a_missing_file_is_refused(tmp_path: Path, name: str) -> None:
    folder = write(tmp_path / "design")
    (folder / name).unlink()
    with pytest.raises(Refusal, match=rf"{name} must exist.*but it is missing"):
        Manifest.load(folder)


def test_a_manifest_that_was_changed_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "design") / "manifest.json"
    path.write_text(path.read_text().replace('"beats": 3', '"beats": 4'))
    with pytest.raises(Refusal, match="field 'hash' must be that of the contents"):
        Manifest.load(path.parent)


def test_a_manifest_of_another_version_is_refused(tmp_path: Path) -> None:
    folder = write(tmp_path / "design")
    artifact.write_json(folder / "manifest.json", "circulant-design", 1, manifest("step"))
    with pytest.raises(Refusal, match="field 'version' must be 2, not 1"):
        Manifest.load(folder)


def test_a_missing_field_is_refused(tmp_path: Path) -> None:
    folder = write(tmp_path / "design")
    body = manifest("step")
    del body["clock"]
    artifact.write_json(folder / "manifest.json", "circulant-design", 2, body)
    with pytest.raises(Refusal, match="field 'clock' must be there, but it is missing"):
        Manifest.load(folder)


@pytest.mark.parametrize(("change", "rule"), [
    ({"container_bits": 12}, "container_bits of s_axis must be whole bytes that hold 12 bits"),
    ({"container_bits": 8}, "container_bits of s_axis must be whole bytes that hold 12 bits"),
    ({"beats": 2}, "s_axis must take 3 beats for 5 elements of 2 a beat, not 2"),
])
def test_a_port_that_contradicts_itself_is_refused(tmp_path: Path, change: dict[str, int], rule: str) -> None:
    folder = write(tmp_path / "design", input=json.loads(json.dumps(manifest("step")["input"])) | change)
    with pytest.raises(Refusal, match=rule):
        Manifest.load(folder)


def test_a_file_of_another_folder_is_refused(tmp_path: Path) -> None:
    folder = write(tmp_path / "design", images=["../constants.hex"])
    with pytest.raises(Refusal, match=r"'images\[0\]' must be a file, named without its folder, not '\.\./constants"):
        Manifest.load(folder)


@pytest.mark.parametrize(("layers", "planned"), [
    ([{"cycles": 30, "kind": "gru"}, {"cycles": 29.5, "kind": "linear"}], 30),
    ([{"cycles": 30, "kind": "gru"}, {"cycles": 31, "kind": "linear"}], None),
    ([{"cycles": 179.4, "kind": "gru"}, {"cycles": 179.4, "kind": "linear"}], 180),
    ([{"cycles": 50, "kind": "gru", "limit": "sharing: one array serves 2 layers in turn"}] * 2, None),
    ([{"cycles": 1, "kind": "linear"}], None),
])
def test_a_plan_binds_where_no_array_is_shared_and_no_linear_layer_is_the_slowest(
        tmp_path: Path, layers: list[dict[str, object]], planned: int | None) -> None:
    assert Manifest.load(write(tmp_path / "design", layers=layers)).planned_step == planned


def test_interleaved_streams_may_take_part_of_a_cycle_more(tmp_path: Path) -> None:
    layers: list[dict[str, object]] = [{"cycles": 15, "kind": "gru"}]
    assert Manifest.load(write(tmp_path / "design", layers=layers, streams=3)).planned_step == 16


def test_the_layers_behind_images_are_those_from_the_vectors_on(tmp_path: Path) -> None:
    layers: list[dict[str, object]] = [{"cycles": 50, "kind": "conv"}, {"cycles": 20, "kind": "pool"},
                                       {"cycles": 7.5, "kind": "flatten"}, {"cycles": 30, "kind": "linear"}]
    assert Manifest.load(write(tmp_path / "design", layers=layers)).vectors_of_image == 38
    assert Manifest.load(write(tmp_path / "images", layers=layers[:2])).vectors_of_image == 0


def test_latencies_that_are_exact_are_read(tmp_path: Path) -> None:
    late = {"latency_spaced": 8, "latency_contiguous": 9}
    read = [Manifest.load(write(tmp_path / name, **changes)) for name, changes in (
        ("exact", late), ("about", late | {"estimates": ["latency_contiguous"]}), ("earlier", {"latency": 8}))]
    assert [(each.latency_spaced, each.latency_contiguous) for each in read] == [(8, 9), (8, None), (None, None)]
