"""alkaid: traces torch, unrolls all products into adders; C++ interpreter, Verilog, and a binding to Verilator."""
from pathlib import Path
from typing import Any

import numpy as np
from alkaid.codegen import RTLModel
from alkaid.converter import trace_model
from alkaid.trace import FVArrayInput, trace
from shapes import MODELS, error, exact, main, model, rate, samples, so_far, timed

COUNT, SIMULATED = 4000, 200


def measure(name: str, folder: Path) -> dict[str, Any]:
    def converted() -> Any:
        inputs = FVArrayInput((1, *MODELS[name][1])).quantize(1, 1, 5)
        return trace(*trace_model(model(name), inputs=inputs, framework="torch"))

    logic, converting = timed(converted)
    x = samples(name, COUNT)
    flat = x.reshape(COUNT, -1).astype(np.float64)
    outputs = logic.predict(flat, n_threads=1)
    rtl = RTLModel(logic, folder / "rtl", "net", latency_cutoff=5)
    found = {"format": "exact: widths grow", "convert_s": converting, "build_s": 0.0,
             "samples_per_s": rate(lambda: logic.predict(flat, n_threads=1), COUNT),
             "error": error(outputs, exact(name, x))}
    _, found["generate_s"] = timed(rtl.write)
    found |= {"sources": [str(path) for path in sorted((folder / "rtl" / "src").rglob("*.v"))], "top": "net",
              "simulator": "Verilator"}
    so_far(found)
    _, found["simulation_build_s"] = timed(lambda: rtl.compile(openmp=False, nproc=1))
    simulated, found["simulation_s"] = timed(lambda: rtl.predict(flat[:SIMULATED], n_threads=1))
    found["mismatches"] = int(np.count_nonzero(simulated != outputs[:SIMULATED]))
    found |= {"words": int(simulated.size), "cycles": 1, "latency_spaced": rtl.latency}
    return found


if __name__ == "__main__":
    main(measure)
