"""elastic-ai.creator: its layers in torch emulate the VHDL that they write; GHDL elaborates it where it is found."""
import contextlib
import io
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import torch
from elasticai.creator.file_generation.on_disk_path import OnDiskPath
from elasticai.creator.nn import Sequential
from elasticai.creator.nn.fixed_point import Linear, ReLU
from elasticai.creator.nn.fixed_point.lstm.layer import FixedPointLSTMWithHardActivations, LSTMNetwork
from shapes import error, exact, main, model, rate, samples, timed

COUNT = 200
TOPS = {"perceptron": "network", "lstm": "lstm_network"}
"""The entities that its designs are."""

BITS = {"total_bits": 16, "frac_bits": 8}


def measure(name: str, folder: Path) -> dict[str, Any]:
    if name == "cnn":
        raise NotImplementedError("elastic-ai.creator 0.67 has no convolution over images")
    net, converting = timed(lambda: network(name))
    x = samples(name, COUNT)

    def run() -> np.ndarray:
        with torch.no_grad():
            return np.asarray(net(torch.from_numpy(x)))

    found: dict[str, Any] = {"format": "fixed point of 16 bits, 8 behind the point", "convert_s": converting,
                             "build_s": 0.0, "samples_per_s": rate(run, COUNT)}
    if name == "perceptron":
        found["error"] = error(run(), exact(name, x))
    target = folder / "vhdl"
    with contextlib.redirect_stdout(io.StringIO()):
        place = OnDiskPath(target.name, str(folder))
        _, found["generate_s"] = timed(lambda: net.create_design("network").save_to(place))
    sources = sorted(str(path) for path in target.rglob("*.vhd"))
    return found | {"sources": sources, "reason": analysed(sources, TOPS[name], folder)}


def network(name: str) -> Any:
    """The model in layers of the creator; the perceptron with the weights of the others' one.

    Its LSTM has hard activations and a Linear behind it, so that no weights make it the others' model.
    """
    if name == "lstm":
        torch.manual_seed(0)
        return LSTMNetwork([FixedPointLSTMWithHardActivations(**BITS, input_size=16, hidden_size=32, bias=True),
                            Linear(in_features=32, out_features=32, **BITS)]).eval()
    made = Sequential(Linear(in_features=16, out_features=64, **BITS), ReLU(total_bits=16),
                      Linear(in_features=64, out_features=10, **BITS)).eval()
    with torch.no_grad():
        for mine, given in zip(made.parameters(), model(name).parameters(), strict=True):
            mine.copy_(given)
    return made


def analysed(sources: list[str], top: str, folder: Path) -> str:
    """The first error that GHDL reports, that GHDL is missing, or that the design was elaborated."""
    ghdl = shutil.which("ghdl")
    if ghdl is None:
        return "VHDL, and GHDL is not installed"
    work = folder / "work"
    work.mkdir(exist_ok=True)
    options = ["--std=08", "-fsynopsys", f"--workdir={work}"]
    subprocess.run([ghdl, "-i", *options, *sources], check=True, capture_output=True)
    done = subprocess.run([ghdl, "-m", *options, top], capture_output=True, text=True, cwd=work)
    if done.returncode == 0:
        return "VHDL, elaborated by GHDL; not simulated"
    lines = [line for line in done.stderr.splitlines() if ".vhd:" in line] or done.stderr.splitlines()
    return f"VHDL that GHDL refuses: {lines[0].rpartition('/')[2][:160]}"


if __name__ == "__main__":
    main(measure)
