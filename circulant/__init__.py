"""circulant: from a torch model to a block-circulant network in Verilog that equals its golden model bit for bit.

``import circulant`` loads nothing but this file: every name below is fetched when it is first used, and one whose extra
is not installed says which one it needs.
"""
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


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from circulant.extras import extras
    from circulant.sim.public import fetched

    with extras(f"{__name__}.{name}"):
        return fetched(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
