import hashlib
import itertools
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from circulant.hw import Design, generate
from circulant.hw.array.layer_programs import layer_program
from circulant.hw.plan.latency import sample_latencies
from circulant.hw.planner import layer_multiplications
from circulant.sim import artifact
from circulant.sim.design import read
from circulant.sim.golden.network import Network
from circulant.sim.refusal import Refusal
from tests.hw.conftest import SMALL
from tests.hw.golden import network, recurrent
from tests.random_networks import Random


def contents(folder):
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_the_manifest_says_what_the_folder_holds(design):
    gru, out = design.network.stages
    layers = design.manifest["layers"]
    assert {key: value for key, value in design.manifest.items() if key != "layers"} == {
        "name": "small", "network": design.network.hash, "top": "circulant_top", "verilog": ["top.v"],
        "images": sorted(design.images), "clock": "clk", "reset": "rst", "ports": design.manifest["ports"],
        "input": {"prefix": "s_axis", "elements_per_beat": 4, "container_bits": 16, "elements": 3, "beats": 1,
                  "format": design.network.input_format.as_json()},
        "output": {"prefix": "m_axis", "elements_per_beat": 2, "container_bits": 16, "elements": 5, "beats": 3,
                   "format": design.network.output_format.as_json(), "per": "sequence"},
        "multipliers": design.multipliers, "memory_bits": design.memory_bits,
        "multiplications": {"per_step": layer_multiplications(gru), "per_sequence": layer_multiplications(out)},
        "streams": 1, "max_steps": None, "resources": design.manifest["resources"],
        "family": "generic", "objective": "throughput", "alternatives": [],
        **sample_latencies(design.network, design.plans, [(4, 4), (4, 2)]),
    }
    names = [f"{side}_axis_{signal}" for side in "sm" for signal in ("tdata", "tvalid", "tready", "tlast")]
    assert [port["name"] for port in design.manifest["ports"]] == ["clk", "rst", *names]
    for layer, plan, entry, per in zip(design.network.stages, design.plans, layers, ("step", "sequence"), strict=True):
        assert {key: value for key, value in entry.items() if key not in ("limit", "chart")} == {
            "name": layer.name, "kind": layer.kind, "rows": plan.shape.rows, "columns": plan.shape.columns,
            "chains": plan.shape.chains, "fold": plan.shape.fold, "elements": plan.elements, "cycles": plan.cycles,
            "floor": -(-layer_multiplications(layer) // plan.multipliers), "per": per}
    assert ["chart" in entry for entry in layers] == [True, False]
    assert layers[1]["limit"].startswith("latency: banks hold two vectors")


@pytest.mark.parametrize("first", ["scale", "activation"])
def test_a_network_that_begins_without_a_state_interleaves_as_its_recurrent_layers(first):
    random = Random(3)
    before = random.scale("before", 4) if first == "scale" else random.activation("before", 4, "tanh")
    made = random.network([before, random.gru("gru", 4, 6, 2, "sequence")], 4, sequence=True)
    found = generate(made, multipliers=60, streams=3, objective="throughput")
    assert [plan.streams for plan in found.plans] == [1, 3] and found.manifest["streams"] == 3


def test_the_chart_of_a_step_is_in_the_manifest(design):
    """Spans of cycles by unit, none of which is empty or overlaps the next one; the array works as often as it must."""
    plan, entry = design.plans[0], design.manifest["layers"][0]
    chart = entry["chart"]
    assert chart["period"] == plan.cycles
    assert set(chart["rows"]) == {"array: input", "array: recurrent", "pointwise", "output"}
    for spans in chart["rows"].values():
        assert all(start < stop for start, stop in spans)
        assert all(before[1] < after[0] for before, after in itertools.pairwise(spans))
    busy = sum(stop - start for name in ("array: input", "array: recurrent") for start, stop in chart["rows"][name])
    gru = design.network.stages[0]
    assert busy == layer_program(gru, plan.shape, plan.spacing).cycles * plan.shape.fold
    assert entry["limit"] == "latency: each step waits for the state of the step before"


def test_the_chart_of_a_sample_on_a_shared_array_is_in_the_entry_of_its_first_layer():
    made = generate(network(4, 8, 4, outputs=4, returns="sequence"), multipliers=24, objective="area")
    first, *others = made.manifest["layers"]
    assert not any("chart" in each for each in others)
    spans = first["chart"]["rows"]
    assert [*spans] == ["array: gru, input", "array: gru, state", "array: out, input"]
    busy = sorted(span for each in spans.values() for span in each)
    assert all(early[1] <= late[0] for early, late in itertools.pairwise(busy)), "the array works for one at a time"
    starts, ends = spans["array: gru, input"][0][0], spans["array: out, input"][-1][1]
    assert 0 <= starts < ends < made.manifest["latency_spaced"]


def test_layers_behind_a_whole_sequence_work_in_every_step():
    made = generate(network(1, 1, 1, outputs=1, returns="sequence", **SMALL))
    assert made.manifest["output"]["per"] == "step"
    assert made.manifest["multiplications"] == {"per_step": sum(map(layer_multiplications, made.network.stages)),
                                                "per_sequence": 0}


def test_the_budget_is_kept_by_what_is_counted(design):
    assert design.multipliers == sum(plan.multipliers for plan in design.plans) <= 40
    assert design.memory_bits > 1000


def test_each_lane_chain_program_and_table_has_its_image(design):
    gru, out = design.plans
    assert set(design.images) == {
        *(f"{name}_weights_{r}_{c}.hex" for name, plan in (("gru", gru), ("out", out))
          for r in range(plan.shape.rows) for c in range(plan.shape.columns)),
        *(f"{name}_chain{n}.hex" for name, plan in (("gru", gru), ("out", out)) for n in range(plan.shape.chains)),
        "gru_program.hex", "out_program.hex", "gru_sigmoid.hex", "gru_tanh.hex"}
    assert set(re.findall(r'\.IMAGE\("(.*?)"\)', design.verilog)) == set(design.images)
    for layer, plan in zip(design.network.stages, design.plans, strict=True):
        program = layer_program(layer, plan.shape, plan.spacing)
        words = {name: len(design.images[f"{layer.name}_{name}.hex"].split())
                 for name in ("program", "weights_0_0", "chain0")}
        assert words == {"program": program.cycles, "weights_0_0": program.cycles,
                         "chain0": len(program.passes) * plan.shape.slots}
    assert len(design.images["gru_tanh.hex"].split()) == design.network.stages[0].tanh.segments


def test_ports_of_the_top(design):
    """In the order of the manual, each with a comment."""
    header = re.search(r"^module circulant_top \((.*?)^\);", design.verilog, re.M | re.S)[1]
    found = re.findall(r"^  (?:input|output)(?: reg)? (?:\[.*?\] )?(\w+),?  // \S.*$", header, re.M)
    assert found == ["clk", "rst", *(f"{side}_axis_t{name}" for side in "sm" for name in (
        "data", "valid", "ready", "last"))]


def test_each_module_is_defined_once_and_no_wire_is_without_bits(design):
    defined = re.findall(r"^module (\w+) ", design.verilog, re.M)
    assert len(defined) == len(set(defined))
    rows = [name for name in defined if name.startswith("circulant_macrow_") and not name.endswith("_accumulators")]
    assert len(rows) == 2, "one module for each engine's rows"
    assert "[-1:0]" not in design.verilog


def test_the_same_network_gives_the_same_text(design, tmp_path):
    """A second time, and in another process: with other hashes of strings every set has another order."""
    design.network.save(tmp_path)
    script = ("import sys\nfrom circulant.hw import generate\nfrom circulant.sim.golden.network import Network\n"
              "for folder in sys.argv[2:]:\n    generate(Network.load(sys.argv[1]), multipliers=40, "
              "objective='throughput').write(folder)\n")
    folders = [tmp_path / "first", tmp_path / "second"]
    subprocess.run([sys.executable, "-c", script, tmp_path, *folders], check=True,
                   env={**os.environ, "PYTHONHASHSEED": "1"})
    own = contents(design.write(tmp_path / "own"))
    assert [contents(folder) == own for folder in folders] == [True, True]


def test_a_written_design_is_read_as_it_was(design, tmp_path):
    folder = design.write(str(tmp_path / "deep" / "below" / "design"))
    assert folder == tmp_path / "deep" / "below" / "design"
    assert set(contents(folder)) == {"top.v", "manifest.json", *design.images}
    assert (folder / "top.v").read_text() == design.verilog
    assert {name: (folder / name).read_text() for name in design.images} == design.images
    body = artifact.read_json(folder / "manifest.json", "circulant-design", 2)
    assert {key: value for key, value in body.items() if key not in ("hash", "files")} == design.manifest
    assert (Design.KIND, Design.VERSION) == ("circulant-design", 2)
    assert body["files"] == {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()
                             if path.name != "manifest.json"}
    assert read(folder) == body


def test_a_design_takes_the_place_of_another(design, tmp_path):
    before = Design(design.network, design.plans, "module old; endmodule\n", {"old.hex": "0\n"}, {"name": "old"})
    folder = before.write(tmp_path / "design")
    assert set(contents(folder)) == {"top.v", "manifest.json", "old.hex"}
    assert set(contents(design.write(folder))) == {"top.v", "manifest.json", *design.images}
    assert [path.name for path in tmp_path.iterdir()] == ["design"], "nothing else is left"


def test_an_empty_folder_is_taken(design, tmp_path):
    assert (design.write(tmp_path / "design") / "top.v").exists()
    (tmp_path / "empty").mkdir()
    assert (design.write(tmp_path / "empty") / "top.v").exists()


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_what_is_no_design_is_refused_and_left_alone(design, tmp_path, kind):
    target = tmp_path / "precious"
    if kind == "folder":
        target.mkdir()
    precious = target / "thesis.tex" if kind == "folder" else target
    precious.write_text("years of work")
    with pytest.raises(Refusal, match="^The folder of a design must be new, empty or a design's, but "
                                      f"{re.escape(str(target))} holds other files; choose another one$"):
        design.write(target)
    assert precious.read_text() == "years of work"
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]


@pytest.mark.parametrize("moment", ["writing", "moving"])
def test_a_failure_leaves_the_design_that_was_there(design, tmp_path, monkeypatch, moment):
    folder = design.write(tmp_path / "design")
    before, rename, failed = contents(folder), os.rename, []

    def fail(source, target):
        if failed or (moment == "moving" and Path(target) != folder):
            return rename(source, target)
        failed.append(source)
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace" if moment == "writing" else "rename", fail)
    with pytest.raises(OSError, match=r"^disk full$"):
        Design(design.network, design.plans, "other", {"other.hex": "1\n"}, {"name": "other"}).write(folder)
    assert len(failed) == 1
    assert contents(folder) == before
    assert [path.name for path in tmp_path.iterdir()] == ["design"]


def test_a_budget_that_does_not_suffice_is_refused(design):
    with pytest.raises(Refusal, match=r"^Network 'small' needs at least \d+ multipliers, the smallest lane per layer, "
                                      r"not 5; raise hardware\.multipliers or choose a smaller block size$"):
        generate(design.network, multipliers=5, objective="throughput")


def test_streams_are_in_the_manifest():
    made = generate(network(1, 1, 1, **SMALL), streams=3)
    assert made.manifest["streams"] == 3
    assert [plan.streams for plan in made.plans] == [3]


def test_what_the_chosen_engines_cost_is_what_the_design_has():
    """Multipliers and memories are counted in the Verilog, and stated by the units."""
    made = generate(network(4, 8, 4, outputs=4, returns="sequence"), multipliers=24, objective="auto")
    chosen, other = made.manifest["alternatives"]
    assert made.manifest["objective"] == "auto"
    assert (chosen["multipliers"], chosen["memory_bits"]) == (made.multipliers, made.memory_bits)
    assert all(chosen[name] == made.manifest[name] for name in ("latency_spaced", "latency_contiguous"))
    assert chosen["cycles"] == max(entry["cycles"] for entry in made.manifest["layers"])
    weighed, its = (each["cycles"] * each["latency_spaced"] for each in (chosen, other))
    assert weighed < its


def test_what_is_said_of_the_only_engines_that_there_are_is_what_the_design_has():
    """Where layers cannot share an array, also of a reloadable design, whose memories are others."""
    projected = recurrent("lstm", k=2, inputs=2, hidden=4, projection=2)
    layer = replace(projected, projection=replace(projected.projection, twiddle_bits=12))
    made = generate(Network.chain("one", 2, True, (layer,)), multipliers=24, reloadable=True)
    (chosen,) = made.manifest["alternatives"]
    assert (chosen["multipliers"], chosen["memory_bits"]) == (made.multipliers, made.memory_bits)
    assert all(chosen[name] == made.manifest[name] for name in ("latency_spaced", "latency_contiguous"))
    assert chosen["reason"] == ("layers cannot share one: the matrices of layer 'layer' have different numbers of "
                                "twiddle bits")
