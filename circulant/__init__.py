"""circulant: from a torch model to a block-circulant network in Verilog that equals its golden model bit for bit.

``import circulant`` loads nothing but this file: every name below is fetched when it is first used, and one whose extra
is not installed says which one it needs.
"""
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from circulant.hw import Design, generate
    from circulant.kit import write_kit
    from circulant.run.save_run import save_run
    from circulant.sim.cosim import Verification, verify
    from circulant.sim.golden.faults import Fault
    from circulant.sim.golden.network import Network
    from circulant.sim.refusal import Refusal, ToolError
    from circulant.sim.vectors import Vectors
    from circulant.training import (
        ConversionReport,
        Dataset,
        compress,
        export,
        find_rate,
        from_onnx,
        initialise,
        inspect,
        load_data,
        train_admm,
        train_direct,
    )

__version__ = "0.1.0"

__all__ = [
    "load_data", "Dataset",
    "inspect", "ConversionReport", "compress", "initialise", "find_rate", "train_admm", "train_direct",
    "export", "from_onnx",
    "Network", "Vectors", "Fault",
    "generate", "Design", "write_kit",
    "verify", "Verification",
    "save_run",
    "Refusal", "ToolError",
]

_HOME = {
    "load_data": "training", "Dataset": "training",
    "inspect": "training", "ConversionReport": "training", "compress": "training", "initialise": "training",
    "find_rate": "training", "train_admm": "training", "train_direct": "training", "export": "training",
    "from_onnx": "training",
    "Network": "sim.golden.network", "Vectors": "sim.vectors",
    "Fault": "sim.golden.faults",
    "generate": "hw", "Design": "hw", "write_kit": "kit",
    "verify": "sim.cosim", "Verification": "sim.cosim",
    "save_run": "run.save_run",
    "Refusal": "sim.refusal", "ToolError": "sim.refusal",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from circulant.extras import extras

    with extras(f"{__name__}.{name}"):
        value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
