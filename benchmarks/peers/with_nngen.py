"""NNgen: operators with integer weights become Verilog around an AXI4 memory; evaluated in numpy, run by Icarus."""
import contextlib
import io
import math
import os
from pathlib import Path
from typing import Any

import nngen as ng
import numpy as np
import veriloggen as vg
import veriloggen.thread as vthread
from shapes import MODELS, error, exact, main, model, rate, samples, seconds, timed
from veriloggen import simulation
from veriloggen.types import axi

COUNT = 20
CHUNK, WORD = 64, 32
INPUT, WEIGHT, OUTPUT = 5, 6, 8
"""Fraction bits."""


def measure(name: str, folder: Path) -> dict[str, Any]:
    if name == "lstm":
        raise NotImplementedError("NNgen has no recurrent operator (its issue 5)")
    os.chdir(folder)
    (inputs, outputs), converting = timed(lambda: graph(name))
    x = samples(name, COUNT)
    integers = np.round(x * 2 ** INPUT).astype(np.int64)
    if name == "cnn":
        integers = integers.transpose(0, 2, 3, 1)

    def run() -> np.ndarray:
        return np.stack([ng.eval([outputs], x=each[None])[0][0] for each in integers])

    golden = run()
    found: dict[str, Any] = {
        "format": "int16", "convert_s": converting, "build_s": 0.0, "samples_per_s": rate(run, COUNT),
        "error": error(golden / 2 ** OUTPUT, exact(name, x))}
    with contextlib.redirect_stdout(io.StringIO()):
        target, found["generate_s"] = timed(lambda: ng.to_veriloggen([outputs], "net", silent=True,
                                                                     config={"maxi_datawidth": WORD}))
        target.to_verilog("net.v")
    found |= {"sources": [str(folder / "net.v")], "top": "net", "simulator": "Icarus Verilog"}
    start = seconds()
    said = simulated(target, inputs, outputs, integers[0], golden[0])
    cycles = [line.rpartition(" ")[2] for line in said.splitlines() if "execution cycles" in line]
    return found | {"simulation_build_s": 0.0, "simulation_s": seconds() - start, "words": int(golden[0].size),
                    "mismatches": said.count("differs"), "cycles": int(cycles[0])}


def graph(name: str) -> tuple[Any, Any]:
    """The placeholder and the output of the model, its weights and biases set."""
    weights = [weight.detach().numpy() for weight in model(name).parameters()]
    if name == "cnn":
        x = ng.placeholder(ng.int16, shape=(1, *MODELS[name][1][1:], 1), name="x")
        convolved = ng.conv2d(x, variable(weights[0].transpose(0, 2, 3, 1), "w0", WEIGHT), strides=(1, 1, 1, 1),
                              bias=variable(weights[1], "b0", INPUT + WEIGHT), padding=(0, 0, 0, 0),
                              act_func=ng.relu, sum_dtype=ng.int64)
        hidden = ng.reshape(ng.max_pool_serial(convolved, ksize=(1, 2, 2, 1), strides=(1, 2, 2, 1)), [1, -1])
        weights[2] = weights[2].reshape(10, 4, 5, 5).transpose(0, 2, 3, 1).reshape(10, 100)
        first = convolved
    else:
        x = ng.placeholder(ng.int16, shape=(1, *MODELS[name][1]), name="x")
        hidden = first = ng.matmul(x, variable(weights[0], "w0", WEIGHT),
                                   bias=variable(weights[1], "b0", INPUT + WEIGHT),
                                   transposed_b=True, act_func=ng.relu, sum_dtype=ng.int64)
    y = ng.matmul(hidden, variable(weights[2], "w1", WEIGHT), bias=variable(weights[3], "b1", OUTPUT + WEIGHT),
                  transposed_b=True, sum_dtype=ng.int64, name="y")
    first.attribute(par_ich=1, par_och=2, cshamt_out=INPUT + WEIGHT - OUTPUT)
    y.attribute(par_ich=2, par_och=2, cshamt_out=WEIGHT)
    return x, y


def variable(value: np.ndarray, name: str, fraction: int) -> Any:
    made = ng.variable(ng.int16, shape=value.shape, name=name)
    made.set_value(np.round(value * 2 ** fraction).astype(np.int64))
    return made


def simulated(target: Any, inputs: Any, outputs: Any, x: np.ndarray, golden: np.ndarray) -> str:
    """Output of the test bench: a model of the memory, the start over AXI4-Lite, and each word beside golden's."""
    def above(address: int) -> int:
        return math.ceil(address / CHUNK) * CHUNK

    parameters = ng.export_ndarray([outputs], CHUNK)
    variables = above(inputs.addr + inputs.memory_size)
    check = above(variables + len(parameters))
    memory = np.zeros([2 ** 20], dtype=np.int64)
    axi.set_memory(memory, x[None], WORD, 16, mem_offset=inputs.addr, num_align_words=2)
    axi.set_memory(memory, parameters, WORD, 8, mem_offset=variables)
    axi.set_memory(memory, golden[None], WORD, 16, mem_offset=check, num_align_words=2)

    bench = vg.Module("test")
    bench.copy_params(target)
    ports = bench.copy_sim_ports(target)
    clock, negative = ports["CLK"], ports["RESETN"]
    reset = bench.Wire("RST")
    reset.assign(vg.Not(negative))
    ram = axi.AxiMemoryModel(bench, "memory", clock, reset, datawidth=WORD, memimg=memory, memimg_name="memory.out",
                             memimg_datawidth=WORD)
    ram.connect(ports, "maxi")
    host = vthread.AXIMLite(bench, "host", clock, reset, noio=True)
    host.connect(ports, "saxi")
    counter = bench.Reg("counter", 32, initval=0)
    vg.Seq(bench, "count", clock, reset)(counter.inc())
    words, results, rest = outputs.shape[1], outputs.addr, above(check + outputs.memory_size)

    def control() -> None:
        ng.sim.set_global_addrs(host, rest)
        start = counter.value
        ng.sim.start(host)
        ng.sim.wait(host)
        end = counter.value
        print("# execution cycles: %d" % (end - start))  # noqa: UP031 - its compiler knows no other.
        for n in range(words):
            got = ram.read_word(n, results, 16)
            wanted = ram.read_word(n, check, 16)
            if vthread.verilog.NotEql(got, wanted):
                print("differs", n, got, wanted)
        vthread.finish()

    vthread.Thread(bench, "control", clock, reset, control).start()
    bench.Instance(target, "dut", params=bench.connect_params(target), ports=bench.connect_ports(target))
    simulation.setup_clock(bench, clock, hperiod=5)
    simulation.setup_reset(bench, negative, bench.make_reset(), period=100, polarity="low")
    return str(simulation.Simulator(bench, sim="iverilog").run(outputfile="simulation.out"))


if __name__ == "__main__":
    main(measure)
