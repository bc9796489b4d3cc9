"""Designs with several inputs and outputs: a port for each, and each word on each of them is the golden model's."""
from dataclasses import replace

import numpy as np
import pytest

from circulant.boards.link.linked_design import LinkedDesign
from circulant.boards.placement import wrapper
from circulant.hw import generate
from circulant.hw.unit import unelaborated
from circulant.kit.kit import write_kit
from circulant.sim import design as designs
from circulant.sim.cosim import icarus, verify
from circulant.sim.cosim.diverge import diverging
from circulant.sim.cosim.judge.check import SimulationError
from circulant.sim.cosim.manifest import Manifest
from circulant.sim.exercise import exercise
from circulant.sim.kinds.add import FloatAdd
from circulant.sim.kinds.concat import FloatConcat
from circulant.sim.quantize.quantize import quantize
from circulant.sim.real.float_model import Model
from circulant.sim.refusal import Refusal
from circulant.sim.shape.graph import Input, Node
from circulant.sim.shape.window import Flow
from circulant.sim.vectors import Vectors
from tests.random_networks import Random

needed = pytest.mark.skipif(not icarus.available(), reason="Icarus Verilog is not installed")


def network():
    """Two sequences and a vector in; what both sequences sum up to, a head of it, and a vector for a sequence out."""
    r, nodes = Random(1), []

    def add(layer, *sources):
        nodes.append(Node(layer, sources))
        return layer.name

    total = add(FloatAdd("sum", 8), add(r.gru("gru", 6, 8, 4, "sequence"), "x"), add(r.linear("other", 5, 8, 4), "y"))
    add(r.linear("head", 8, 6, 2), total)
    add(r.linear("whole", 7, 3, 1), add(FloatConcat("both", (4, 3)), add(r.gru("last", 8, 4, 4), total), "z"))
    inputs = Input("z", Flow(3)), Input("x", Flow(6, sequence=True)), Input("y", Flow(5, sequence=True))
    made = Model("several", inputs, tuple(nodes), ("whole", "head", "sum"))
    return quantize(made, data())


def data(count=10, steps=5):
    rng = np.random.default_rng(0)
    return {"x": rng.normal(0, 1, (count, steps, 6)), "y": rng.normal(0, 1, (count, steps, 5)),
            "z": rng.normal(0, 1, (count, 3))}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    made = network()
    return made, generate(made, multipliers=200).write(tmp_path_factory.mktemp("several") / "design")


def test_each_input_and_output_has_a_port_that_is_called_after_it(written):
    _, folder = written
    body = designs.read(folder)
    streams = [body["input"], *body["more_inputs"], body["output"], *body["more_outputs"]]
    assert [(each["prefix"], each["name"], each["elements"], each.get("per", "")) for each in streams] == [
        ("s_axis_x", "x", 6, ""), ("s_axis_z", "z", 3, "sequence"), ("s_axis_y", "y", 5, "step"),
        ("m_axis_head", "head", 6, "step"), ("m_axis_whole", "whole", 3, "sequence"), ("m_axis_sum", "sum", 8, "step")]
    ports = designs.ports(body)
    assert ports["s_axis_z_tready"] == {"name": "s_axis_z_tready", "direction": "out", "bits": 1,
                                        "meaning": "input: a beat that is offered is taken at this edge"}
    assert [name for name in ports if name.startswith("m_axis_sum")] == [
        f"m_axis_sum_{signal}" for signal in ("tdata", "tvalid", "tready", "tlast")]
    assert "m_axis_sum_tlast,  // output: last beat of the outputs" in (folder / "top.v").read_text()
    assert body["estimates"] == ["cycles"] and body["latency_spaced"] is None


def test_vectors_hold_each_input_and_output(written, tmp_path):
    made, _ = written
    vectors, given = made.vectors(data()), data()
    assert (vectors.inputs.shape, vectors.outputs.shape) == ((10, 5, 6), (10, 5, 6))
    assert {name: values.shape for name, values in vectors.more_inputs.items()} == {"z": (10, 3), "y": (10, 5, 5)}
    golden = made.compute({name: made.formats[name].quantize(values) for name, values in given.items()})
    np.testing.assert_array_equal(vectors.outputs, golden["head"])
    assert set(vectors.more_outputs) == {"whole", "sum"}
    for name, values in vectors.more_outputs.items():
        np.testing.assert_array_equal(values, golden[name])
    sha = vectors.save(tmp_path / "vectors.npz")
    read = Vectors.load(tmp_path / "vectors.npz")
    np.testing.assert_array_equal(read.more_inputs["y"], vectors.more_inputs["y"])
    assert list(read.first(3).more_outputs["sum"].shape) == [3, 5, 8]
    assert replace(read, more_inputs={**read.more_inputs, "z": read.more_inputs["z"] + 1}).save(
        tmp_path / "others.npz") != sha


def test_sequences_of_different_lengths_are_each_computed_by_themselves(written):
    made, _ = written
    lengths = np.array([3, 5, 1, 4, 5, 2, 5, 5, 5, 5])
    vectors = made.vectors(data(), lengths=lengths)
    for n in range(4):
        alone = made.vectors({name: values[n:n + 1, :lengths[n]] if values.ndim == 3 else values[n:n + 1]
                              for name, values in data().items()})
        np.testing.assert_array_equal(vectors.outputs[n, :lengths[n]], alone.outputs[0])
        np.testing.assert_array_equal(vectors.more_outputs["whole"][n], alone.more_outputs["whole"][0])
    assert not vectors.outputs[2, 1:].any()


def test_every_port_is_exact_under_verilator_whatever_stalls(written):
    made, folder = written
    drawn = exercise(made, 6, steps=4)
    assert drawn.vectors.lengths is not None and drawn.coverage.reached["saturation"]
    found = verify(folder, made.vectors(data()), drawn=drawn.vectors)
    assert (found.mismatches, found.words) == (0, 10 * (5 * 6 + 3 + 5 * 8))
    assert found.words_compared > 20 * found.words


@needed
def test_every_port_is_exact_under_icarus_and_a_word_that_differs_names_its_output(written):
    made, folder = written
    lengths = np.array([3, 5, 1, 4, 5, 2, 5, 5, 5, 5])
    vectors = made.vectors(data(), lengths=lengths)
    assert icarus.run(folder, vectors).mismatches == 0
    wrong = vectors.more_outputs["whole"].copy()
    wrong[2, 1] += 1
    found = icarus.run(folder, replace(vectors, more_outputs={**vectors.more_outputs, "whole": wrong}), stalls=False)
    assert found.mismatches == 1
    assert str(found.first).startswith("output whole, sequence 2, step 0, word 1: expected ")


@needed
@pytest.mark.parametrize(("name", "value", "sentence"), [
    ("m_axis_whole_tvalid", "0", r"^A beat must move at least every 3000 cycles, but none had by cycle \d+: output "
                                 r"beat 0 of sequence 0 is missing; "),
    ("m_axis_sum_tlast", "1", r"^m_axis_sum_tlast must be set on the last of the 10 output beats of a sequence and on "
                              r"no other"),
    ("m_axis_whole_tvalid", "1'bx", r"^m_axis_whole_tvalid must be 0 or 1 after reset, but it was unknown in cycle 2"),
    ("s_axis_y_tready", "1'bx", r"^s_axis_y_tready must be 0 or 1 after reset, but it was unknown in cycle 2"),
    ("m_axis_sum_tdata", "{64{1'bx}}", r"^m_axis_sum_tdata and m_axis_sum_tlast of a beat must be 0 or 1 in every ")])
def test_a_port_that_breaks_a_rule_is_named(written, tmp_path, name, value, sentence):
    made, folder = written
    ports = designs.ports(designs.read(folder))
    listed = ", ".join(f"{each['direction']}put [{each['bits'] - 1}:0] {each['name']}" for each in ports.values())
    inside = ", ".join(f".{each}({'' if each == name else each})" for each in ports)
    other = tmp_path / "top.v"
    other.write_text((folder / "top.v").read_text().replace("module circulant_top (", "module inner (")
                     + f"module circulant_top({listed}); assign {name} = {value}; inner inner({inside}); endmodule\n")
    manifest = replace(Manifest.load(folder), verilog=(other,))
    vectors = made.vectors(data())
    with pytest.raises(SimulationError, match=sentence):
        faulty(manifest, vectors)


def faulty(manifest, vectors):
    from circulant.sim.cosim.judge import check
    from circulant.sim.cosim.simulate import job_of
    from circulant.sim.cosim.stimuli import Run
    from circulant.sim.cosim.verification import played_of
    from circulant.sim.files import temporaries
    played = played_of(manifest, vectors)
    job = job_of(manifest, (Run("back-to-back", (0, 1, 2)),), played, 3000)
    with temporaries.folder() as work:
        outcome = icarus.replay(manifest, job, work)
    check.judged(job, outcome, manifest.outputs, played)


def test_what_takes_two_streams_refuses_more(written, tmp_path):
    made, folder = written
    body, vectors = designs.read(folder), made.vectors(data())
    also = r"takes a design with one input and one output, but this one also has z, y, whole, sum; connect its streams"
    with pytest.raises(Refusal, match=f"^The integration kit {also}"):
        write_kit(folder, vectors)
    with unelaborated(), pytest.raises(Refusal, match=f"^A bitstream with a link to a host {also}"):
        LinkedDesign(body, divisor=10)
    with pytest.raises(Refusal, match=f"^The wrapper that is placed and routed {also}"):
        wrapper(body)
    with pytest.raises(Refusal, match=r"^A difference is traced in a network with one input and one output, but "
                                      r"'several' has 3 and 3; trace a part of it$"):
        diverging(folder, made, vectors, None)
    for option, sentence in [
            ({"reloadable": True}, r"^A reloadable design must have one input and one output, but network 'several' "
                                   r"has 3 and 3; set hardware.reloadable to false$"),
            ({"bus": "axi4-lite"}, r"^A wrapper for a bus must be around a design with one input and one output, but "),
            ({"objective": "area"}, r"^hardware.objective must be 'throughput' or 'auto' where layers cannot share an "
                                    r"array, but ")]:
        with pytest.raises(Refusal, match=sentence):
            generate(made, multipliers=200, **option)


@pytest.mark.parametrize(("given", "sentence"), [
    ({"x": data()["x"]}, r"^Inputs of network 'several' must be of z, x, y, not of x; give those of each input by its "
                         r"name$"),
    ({**data(), "y": data()["y"][:, :4]}, r"^Inputs of network 'several' must come together, as many samples and steps "
                                          r"of each, but 'y' has \(10, 4\) and 'x' \(10, 5\); give the same of all$"),
    ({**data(), "z": data()["z"][:4]}, r"must be as many samples of each input, not 4, 10, 10; give the same of all$")])
def test_inputs_that_do_not_come_together_are_refused(written, given, sentence):
    with pytest.raises(Refusal, match=sentence):
        written[0].vectors(given)


def test_vectors_that_lack_a_port_are_refused(written):
    made, folder = written
    vectors = replace(made.vectors(data()), more_inputs={})
    with pytest.raises(Refusal, match=r"^The inputs 'z' must be 10 times 1 vectors of 3 elements for .*manifest.json, "
                                      r"not None; make them again with Network.vectors$"):
        icarus.run(folder, vectors)


def test_two_outputs_whose_signals_would_have_one_name_are_refused():
    r = Random(2)
    both = [Node(r.linear(name, 4, 4, 2), ("x",)) for name in ("a.b", "a_b")]
    made = quantize(Model("two", (Input("x", Flow(4)),), tuple(both), ("a.b", "a_b")),
                    np.random.default_rng(0).normal(0, 1, (8, 4)))
    with pytest.raises(Refusal, match=r"^The ports of a circuit must have different names, but two are m_axis_a_b; "
                                      r"rename 'a.b'$"):
        generate(made, multipliers=20)
