"""A run folder of what was made in Python, on which the commands go on."""
from pathlib import Path
from typing import Any

from circulant.experiment import parse
from circulant.run.kept import keep_data, keep_float
from circulant.run.place import clear, require_free
from circulant.run.run_folder import Run, record, sha256
from circulant.run.steps import blocks, write_network
from circulant.sim.document import Document
from circulant.sim.golden.network import Network
from circulant.sim.passes.bases import matrices
from circulant.sim.public import public
from circulant.sim.quantize.quantize import grids
from circulant.sim.quantize.quantize_like import quantize_like
from circulant.sim.real.float_model import Model
from circulant.sim.refusal import Refusal
from circulant.training.data.dataset import Dataset

__all__ = ["save_run"]

COMPARED = 64
"""Samples on which the mathematics of the model is compared with torch."""

WIDTHS = {"weight_bits": "weight", "spectrum_bits": "spectrum", "product_bits": "product", "output_bits": "output"}
"""Bits of each matrix, and the format of a product that has them."""


@public
def save_run(folder: str | Path, model: Any, network: Network, data: Dataset, *, name: str | None = None,
             force: bool = False) -> Path:
    """A run folder in which the model is trained and quantized, for `circulant generate`, `simulate` and `report`.

    `circulant quantize` makes other integers of the model. The folder keeps the model's weights (``model.pt``, a state
    dict), its mathematics layer by layer, the data and the network; it runs none of the model's code, so there is no
    training it further there.

    Parameters:
        model: a trained `torch.nn.Module`.
        network: made of it by `circulant.export`.
        data: of whose test set the vectors are.
        name: of the experiment; that of the folder without it.
        force: whether a run that is in the folder is replaced, with all that commands made of it.

    Returns:
        The folder.

    Raises:
        Refusal: when the network is not of this model, the folder holds a run or cannot be written, or a name cannot
            be that of an experiment; as `circulant.training.reference` and `circulant.training.score`.
    """
    from circulant import training
    from circulant.training.store import save_state

    folder = Path(folder)
    require_free(folder, force=force)
    exact = training.reference(model, data.train_x[:COMPARED], name=network.name)
    _require_same(exact, network)
    sizes = {key: matrix["block_size"] for key, matrix in blocks(model).items()}
    run = Run(folder, parse({"name": name or folder.absolute().name, "data": {"name": "saved"},
                             "model": {"kind": "saved"}, "compression": {"block_size": sizes},
                             "quantization": _widths(network)}))
    run.require_writable()
    task = training.task_of(data)
    score = training.evaluate(model, data)
    clear(folder)
    save_state(run.path("model.pt"), model)
    hashes = {"model": sha256(run.path("model.pt")), **keep_float(run, exact), **keep_data(run, data)}
    record(run, "train", {
        "hashes": hashes, "metric": task.metric, task.metric: {"circulant": score}, "matrices": blocks(model),
        "history": [], "seconds": 0.0, "processor_seconds": 0.0, "machine": training.machine("cpu")})
    write_network(run, network, exact, data, {"like": None, "picking": {}, "finetuning": {}, "never": []})
    return folder


def _require_same(exact: Model, network: Network) -> None:
    """Check that a network has the integers that a model gives in its formats.

    Raises:
        Refusal: when it does not.
    """
    try:
        same = quantize_like(exact, network).hash == network.hash
    except Refusal:
        same = False
    if not same:
        raise Refusal(f"The network {network.name!r} must be of the model as it is, but it has other layers or "
                      "weights; make it with circulant.export(model, data.train_x)")


def _widths(network: Network) -> Document:
    """The widths that a network has, as [quantization] says them: one number, or those of each matrix."""
    found: dict[str, dict[str, int]] = {name: {} for name in (*WIDTHS, "twiddle_bits")}
    for layer in network.layers:
        for path, product in matrices(layer).items():
            for name, tensor in WIDTHS.items():
                found[name][path] = getattr(product, tensor).width
            found["twiddle_bits"][path] = product.twiddle_bits
    told: Document = {name: next(iter(widths.values())) if len(set(widths.values())) == 1 else widths
                            for name, widths in found.items() if widths}
    rows = any(grid.row_shifts for grid in grids(network).values())
    return {"activation_bits": network.input_format.width, "weight_scale": "row" if rows else "matrix",
            "multiplier": network.multiplier, **told}
