"""docs/ports.md, sentence by sentence, on tiny designs in Amaranth's simulator."""
import re
from pathlib import Path

import numpy as np
import pytest
from amaranth.hdl import ClockDomain, Module
from amaranth.sim import Simulator

from circulant.hw.design import generate, layer_entry
from circulant.sim.cosim.manifest import Port
from tests.hw.simulate import RESET, run, trace
from tests.ports import CONTAINER, beats, golden, made, marked, play, sequences, taken, vectors_of

PAGE = (Path(__file__).parents[1] / "docs/ports.md").read_text("utf-8")


# Ports

PORTS = {"s_axis_tdata": "in", "s_axis_tvalid": "in", "s_axis_tready": "out", "s_axis_tlast": "in",
         "m_axis_tdata": "out", "m_axis_tvalid": "out", "m_axis_tready": "in", "m_axis_tlast": "out"}
CFG = {"cfg_addr": "in", "cfg_wdata": "in", "cfg_we": "in", "cfg_re": "in", "cfg_rdata": "out", "cfg_rvalid": "out"}


@pytest.mark.parametrize(("name", "more"), [
    ("vectors", {}), ("sequences", {}), ("both ways", {"overflow": "out"}), ("images", {}), ("reloadable", CFG)])
def test_every_port_is_in_the_table(name, more):
    top = made(name)[2]
    given = {port: member.flow.name.lower() for port, member in top.signature.members.items()}
    assert given == PORTS | more | ({"malformed": "out"} if "malformed" in given else {})
    assert name != "images" or "malformed" in given
    table = dict(re.findall(r"^\| `(\w+)` \|.*?\| (in|out) \|", PAGE, re.M))
    assert {port: table.get(port) for port in given} == given
    assert table.keys() == {"clk", "rst", "overflow", "malformed", *PORTS, *CFG}


def test_the_verilog_has_these_ports_and_the_manifest_says_how_beats_are_made():
    network, _, top = made("vectors")
    design = generate(network, multipliers=40, objective="throughput")
    header = re.search(r"^module circulant_top \((.*?)^\);", design.verilog, re.M | re.S)
    assert header is not None
    found = re.findall(r"^  (in|out)put (?:reg )?(?:\[\d+:0\] )?(\w+)", header[1], re.M)
    assert {name: direction for direction, name in found if name != "malformed"} == {"clk": "in", "rst": "in", **PORTS}
    assert [(name, direction) for direction, name in found] == [
        (port["name"], port["direction"]) for port in design.manifest["ports"]]
    assert (design.manifest["clock"], design.manifest["reset"]) == ("clk", "rst")
    assert design.manifest["input"] == {"prefix": "s_axis", "elements_per_beat": 2, "container_bits": 16, "elements": 5,
                                        "beats": 3, "format": network.input_format.as_json()}
    assert len(top.s_axis_tdata) == 2 * 16


# Beats

def test_the_worked_example():
    """The vector and the beats of the page, as the page packs them, as cosimulation does, and as the circuit reads."""
    network, _, top = made("vectors")
    found = re.search(r"vector \(([-−\d, ]+)\)", PAGE)
    assert found is not None
    vector = [int(value.replace("−", "-")) for value in found[1].split(",")]
    words = [(int(word, 16), int(last)) for word, last in re.findall(r"^\| \d \| .* \| `(0x[\da-f]{8})` \| ([01]) \|",
                                                                     PAGE, re.M)]
    assert words == beats(top, [vector], [True])
    packed = Port("s_axis", 2, container_bits=CONTAINER, width=9, elements=5, beats=3).pack(np.array([vector]))
    assert [int.from_bytes(beat.tobytes(), "little") for beat in packed[0]] == [word for word, _ in words]
    shown = play(top, words, 60)
    assert vectors_of(network, top, shown) == golden(network, [np.array([vector])])


def test_bits_of_a_container_above_the_value_are_not_looked_at():
    network, _, top = made("vectors")
    (x,) = sequences(network, [1])
    junk = [(word ^ 0xa200a600, last) for word, last in marked(network, top, [x])]
    assert vectors_of(network, top, play(top, junk, 60)) == golden(network, [x])


@pytest.mark.parametrize("name", ["vectors", "sequences", "steps"])
def test_results_come_in_order_marked_as_what_went_in(name):
    network, _, top = made(name)
    xs = sequences(network, [1, 1, 1] if name == "vectors" else [2, 1, 3])
    assert vectors_of(network, top, play(top, marked(network, top, xs), 500)) == golden(network, xs)


def test_a_sequence_that_never_ends_gives_its_steps_all_the_same():
    network, _, top = made("steps")
    (x,) = sequences(network, [4])
    shown = play(top, [(word, 0) for word, _ in marked(network, top, [x])], 300)
    assert vectors_of(network, top, shown) == [(row, 0) for row, _ in golden(network, [x])]


def test_an_image_is_marked_at_its_last_pixel():
    network, _, top = made("images")
    xs = sequences(network, [9, 9])
    shown = play(top, marked(network, top, xs), 250)
    assert vectors_of(network, top, shown) == golden(network, xs)
    assert not shown[-1]["malformed"]


# Handshake

@pytest.mark.parametrize("name", ["vectors", "sequences", "both ways", "images", "reloadable"])
def test_no_output_depends_on_an_input_of_the_same_cycle(name):
    top = made(name)[2]
    m = Module()
    m.domains.sync = ClockDomain()
    m.submodules.top = top
    inputs = [getattr(top, port) for port in ("s_axis_tvalid", "s_axis_tlast", "s_axis_tdata", "m_axis_tready")]
    outputs = [getattr(top, port) for port in (*PORTS, *CFG, "overflow", "malformed")
               if port in top.signature.members and top.signature.members[port].flow.name == "Out"]
    rng, moved = np.random.default_rng(0), 0

    async def bench(ctx):
        nonlocal moved
        for _ in range(80):
            seen = []
            for choice in (0b0000, 0b1111, int(rng.integers(16)) | 1):
                for n, port in enumerate(inputs):
                    ctx.set(port, -(choice >> n & 1) & (1 << len(port)) - 1)
                seen.append([ctx.get(port) for port in outputs])
            assert seen[0] == seen[1] == seen[2]
            moved += ctx.get(top.m_axis_tvalid)
            await ctx.tick()

    simulator = Simulator(m)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert moved or name not in ("vectors", "reloadable")


@pytest.mark.parametrize("name", ["vectors", "sequences"])
def test_outputs_that_are_not_taken_stay_and_hold_up_the_input(name):
    network, _, top = made(name)
    xs = sequences(network, [1] * 20)
    shown = play(top, marked(network, top, xs), 600, ready=lambda cycle: cycle >= 350)
    held = shown[300:350]
    assert len({(ports["m_axis_tvalid"], ports["m_axis_tdata"], ports["m_axis_tlast"]) for ports in held}) == 1
    assert all(ports["m_axis_tvalid"] and not ports["s_axis_tready"] for ports in held)
    given = vectors_of(network, top, shown)
    assert given == golden(network, xs)[:len(given)]
    assert len(given) > 10


def test_stalls_change_no_result():
    network, _, top = made("steps")
    xs = sequences(network, [3, 1, 2])
    idle, busy = (np.random.default_rng(seed).random(700) for seed in (1, 2))
    shown = play(top, marked(network, top, xs), 700, valid=lambda cycle, _: idle[cycle] < 0.5,
                 ready=lambda cycle: busy[cycle] < 0.2)
    assert vectors_of(network, top, shown) == golden(network, xs)


# Reset

@pytest.mark.parametrize("name", ["vectors", "sequences", "both ways", "images"])
def test_one_cycle_of_reset_at_any_time_makes_the_circuit_as_new(name):
    """From the next cycle on every port shows what it shows from power-up on, cycle by cycle, flags included."""
    network, _, top = made(name)
    sent = marked(network, top, sequences(network, {"images": [4, 9], "both ways": [5, 1]}.get(name, [1, 2, 1])))
    resets = np.cumsum([0, 1, 2, 3, 6, 11, 18, 27, 45, 60, 75])
    shown = visible(play(top, sent, resets[-1] + 101, reset=set(resets.tolist()), anew=True))
    new = visible(play(top, sent, 100))
    assert any(ports["m_axis_tvalid"] for ports in shown)
    assert name not in ("both ways", "images") or any(ports.get("overflow") or ports.get("malformed") for ports in new)
    for at, until in zip(resets, [*resets[1:] + 1, len(shown)], strict=True):
        assert shown[at + 1:until] == new[:until - at - 1], f"reset in cycle {at}"


def visible(shown):
    """What a neighbour may look at: data and marks count while valid is set."""
    always = {"s_axis_tready", "m_axis_tvalid", "overflow", "malformed"}
    return [{port: value for port, value in ports.items() if port in always
             or (port in ("m_axis_tdata", "m_axis_tlast") and ports["m_axis_tvalid"])} for ports in shown]


def test_a_beat_during_reset_is_lost():
    """The input is ready in reset, and what it takes then is gone."""
    network, _, top = made("vectors")
    xs = sequences(network, [1, 1])
    shown = play(top, marked(network, top, xs), 80, reset={0, 1, 2})
    assert [cycle for cycle, _, _ in taken(shown, "s_axis")][:4] == [0, 1, 2, 3]
    assert vectors_of(network, top, shown) == golden(network, xs[1:])


def test_memories_keep_their_contents_in_reset():
    """Weights of zero that a host has loaded make the outputs the biases, behind a reset, too."""
    network, _, top = made("reloadable")
    xs, shown = sequences(network, [1]), []
    wanted = network.stages[0].product.bias[:3].tolist()
    assert golden(network, xs)[0][0] != wanted

    def agent():
        yield {"m_axis_tready": 1, "cfg_we": 1, "cfg_addr": 0, "cfg_wdata": 1}
        for _ in range(80):
            yield {"cfg_we": 0}
        for window in top.config.map.windows:
            for address in window.addresses() if "weights" in window.name else ():
                yield {"cfg_we": 1, "cfg_addr": address, "cfg_wdata": 0}
        yield {"cfg_we": 0}
        yield {RESET: 1}
        for data, last in marked(network, top, xs):
            yield {RESET: 0, "s_axis_tvalid": 1, "s_axis_tdata": data, "s_axis_tlast": last}
        while len(shown) < 60:
            shown.append((yield {"s_axis_tvalid": 0}))

    run(top, agent())
    assert vectors_of(network, top, shown) == [(wanted, 1)]


def test_the_output_is_silent_from_the_cycle_behind_a_reset_on():
    network, _, top = made("vectors")
    sent = marked(network, top, sequences(network, [1]))
    shown = play(top, sent, 60, ready=lambda cycle: False)
    first = next(cycle for cycle, ports in enumerate(shown) if ports["m_axis_tvalid"])
    shown = play(top, sent, 60, ready=lambda cycle: False, reset={first + 2, first + 3})
    assert [ports["m_axis_tvalid"] for ports in shown[first:first + 6]] == [1, 1, 1, 0, 0, 0]


# Too long, and several streams

def test_a_sequence_that_is_too_long_is_cut_and_overflow_stays():
    network, _, top = made("both ways")
    whole, short = sequences(network, [5, 2])
    shown = play(top, marked(network, top, [whole, short]), 600)
    assert vectors_of(network, top, shown) == golden(network, [whole[:3], whole[3:], short])
    third = [cycle for cycle, _, _ in taken(shown, "s_axis")][3 * 2 - 1]
    assert [ports["overflow"] for ports in shown] == [0] * (third + 1) + [1] * (len(shown) - third - 1)


def test_the_longest_sequence_that_fits_is_not_cut():
    network, _, top = made("both ways")
    xs = sequences(network, [3, 3, 1])
    shown = play(top, marked(network, top, xs), 600)
    assert vectors_of(network, top, shown) == golden(network, xs)
    assert not any(ports["overflow"] for ports in shown)
    assert taken(shown)[0][0] > taken(shown, "s_axis")[3 * 2 - 1][0], "nothing comes before a whole sequence went in"


def test_steps_of_interleaved_streams_take_turns():
    """Vector n belongs to stream n mod 2; each stream marks the ends of its own sequences."""
    network, _, top = made("interleaved")
    ends = [[False, True, False, False, True], [True, False, False, True, True]]
    xs = [np.concatenate(sequences(network, [5], seed=stream)) for stream in (1, 2)]
    sent = [beat for t in range(5) for x, end in zip(xs, ends, strict=True)
            for beat in beats(top, x[t:t + 1], [end[t]])]
    wanted = [[], []]
    for stream in range(2):
        start = 0
        for t in range(5):
            if ends[stream][t]:
                wanted[stream] += golden(network, [xs[stream][start:t + 1]])
                start = t + 1
    given = vectors_of(network, top, play(top, sent, 600))
    assert [given[0::2], given[1::2]] == wanted


# Time

def test_cycles_of_the_manifest_are_those_between_steps():
    network, plans, top = made("sequences")
    entries = [layer_entry(*pair) for pair in zip(network.stages, plans, strict=True)]
    shown = play(top, marked(network, top, sequences(network, [8])), 320)
    ends = [cycle for cycle, _, _ in taken(shown, "s_axis")][1::2]
    assert len(ends) == 8 and set(np.diff(ends)[3:]) == {entries[0]["cycles"]}


def test_a_small_layer_without_a_state_waits_for_its_banks():
    network, plans, top = made("vectors")
    every, cycles = re.findall(r"two pass every (\d+) cycles, so `cycles` is ([\d.]+)\.\s", PAGE)[0]
    assert layer_entry(network.stages[0], plans[0])["cycles"] == float(cycles) == int(every) / 2
    ends = [cycle for cycle, _, last in taken(play(top, marked(network, top, sequences(network, [9])), 130)) if last]
    assert set(np.array(ends[2:]) - ends[:-2]) == {int(every)}


def test_a_single_sequence_takes_the_steps_before_its_last_and_the_latency():
    """Within a step, as the first one waits for no state. The latency is that of a last step with nothing under way."""
    network, plans, top = made("sequences")
    cycles = layer_entry(network.stages[0], plans[0])["cycles"]
    sent = marked(network, top, sequences(network, [6]))
    waiting = play(top, sent, 400, valid=lambda cycle, beat: beat < 10 or cycle >= 300)
    latency = taken(waiting)[-1][0] - taken(waiting, "s_axis")[-1][0]
    through = play(top, sent, 400)
    assert abs(taken(through)[-1][0] - (5 * cycles + latency)) <= cycles


def test_the_timing_diagram_is_a_simulation():
    network, _, top = made("vectors")
    sent = marked(network, top, sequences(network, [1, 1]))
    shown = play(top, sent, 40, reset={0}, valid=lambda at, _: at not in (0, 4), ready=lambda at: at not in (27, 28))
    names = {word: name for (word, _), name in zip(sent, ("a0", "a1", "a2", "b0", "b1", "b2"), strict=True)}
    names |= {word: name for (_, word, _), name in zip(taken(shown), ("y0", "y1", "z0", "z1"), strict=True)}
    assert len(names) == 10
    diagram = drawn(shown, names, (range(9), range(25, 34)))
    assert f"```\n{diagram}\n```" in PAGE, diagram


def drawn(shown, names, spans):
    """Ports in columns of cycles; data as names while valid is set."""
    def cell(port, cycle):
        ports = shown[cycle]
        if not port:
            return str(cycle)
        if port.endswith("tdata"):
            return names[ports[port]] if ports[port.replace("tdata", "tvalid")] else "--"
        if port.endswith("tlast") and not ports[port.replace("tlast", "tvalid")]:
            return "-"
        return str(ports[port])

    return "\n".join((f"{port or 'cycle':<14}" + "  …".join(
        "".join(f"{cell(port, cycle):>4}" for cycle in span) for span in spans)).rstrip()
        for port in ("", "rst", *PORTS))


def test_the_configuration_port_answers_after_three_cycles():
    top = made("reloadable")[2]
    shown = trace(top, {"cfg_re": [0, 1, 0, 0, 0, 0], "cfg_addr": [1] * 6})
    assert shown["cfg_rvalid"] == [0, 0, 0, 0, 1, 0]
