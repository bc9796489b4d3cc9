"""hls4ml: converts torch into C++ for HLS, and emulates that with g++. Verilog needs a vendor's tool."""
import contextlib
import io
import warnings
from pathlib import Path
from typing import Any

import hls4ml
import numpy as np
import torch
from shapes import MODELS, Recurrent, error, exact, main, model, rate, samples, timed
from torch import nn

COUNT = 500
FORMAT = "ap_fixed<18,8>"


def converted(net: nn.Module, shape: tuple[int, ...], folder: Path, *, last: str) -> Any:
    """A compiled emulator, with the CPU seconds of conversion and of g++."""
    quiet = io.StringIO()
    with contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet), warnings.catch_warnings():
        warnings.simplefilter("ignore")

        def convert() -> Any:
            config = hls4ml.utils.config_from_pytorch_model(net, shape, backend="Vitis", default_precision=FORMAT,
                                                            channels_last_conversion=last)
            return hls4ml.converters.convert_from_pytorch_model(net, hls_config=config, backend="Vitis",
                                                                output_dir=str(folder), io_type="io_parallel")

        made, converting = timed(convert)
        _, building = timed(made.compile)
    return made, converting, building


def measure(name: str, folder: Path) -> dict[str, Any]:
    if name == "faults":
        return {"faults": faults(folder)}
    made, converting, building = converted(model(name), MODELS[name][1], folder / "hls",
                                           last="off" if name == "lstm" else "full")
    x = samples(name, COUNT)
    if name == "cnn":
        x = np.ascontiguousarray(x)
    outputs = made.predict(x)
    sources = [str(path) for path in sorted((folder / "hls" / "firmware").rglob("*"))
               if path.suffix in (".h", ".cpp") and not {"ap_types", "nnet_utils", "weights"} & set(path.parts)]
    return {"format": FORMAT, "convert_s": converting, "build_s": building,
            "samples_per_s": rate(lambda: made.predict(x), COUNT), "error": error(outputs, exact(name, x)),
            "sources": sources, "reason": _synthesis(made)}


def _synthesis(made: Any) -> str:
    """Why there is no Verilog of it here."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            made.build()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


class Sequence(nn.Module):
    """A GRU that returns all of its steps."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(16, 32, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.rnn(x)[0]


class Projected(nn.Module):
    """An LSTM whose hidden state is projected to 4 values."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.LSTM(16, 16, proj_size=4, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.rnn(x)[0][:, -1]


def faults(folder: Path) -> dict[str, str]:
    """Outcomes of three models that it converts to something else without a message, by model."""
    found = {}
    for name, net, last in (("input of a GRU, default settings", Recurrent(nn.GRU), "full"),
                            ("GRU that returns all steps", Sequence(), "off"),
                            ("LSTM with proj_size=4", Projected(), "off")):
        torch.manual_seed(0)
        x = samples("lstm", 20)
        with torch.no_grad():
            wanted = net.eval()(torch.from_numpy(x)).numpy()
        try:
            made = converted(net, (8, 16), folder / name.replace(" ", "_").replace(",", ""), last=last)[0]
            outputs = made.predict(x)
        except Exception as reason:
            found[name] = f"refused: {type(reason).__name__}: {' '.join(str(reason).split())[:120]}"
            continue
        if outputs.size != wanted.size:
            found[name] = f"{outputs[0].size} values of a sequence, where torch gives {wanted[0].size}; no message"
        else:
            difference = error(outputs, wanted)
            found[name] = f"greatest difference {difference:.2g} of the greatest output; no message"
    return found


if __name__ == "__main__":
    main(measure)
