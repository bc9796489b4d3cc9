"""The command that takes an ONNX file to a run folder, in which every later command goes on."""
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from circulant.extras import extras
from circulant.sim.document import Document
from circulant.sim.refusal import Refusal

if TYPE_CHECKING:
    from circulant.sim.golden.network import Network
    from circulant.sim.real.float_model import Model
    from circulant.training import ConversionReport, Dataset

__all__ = ["import_onnx"]

COMPARED = 256
"""Samples whose outputs are compared with those of the quantized file."""


@click.command("import", short_help="Convert an ONNX file into a run folder")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.onnx")
@click.option("--data", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.npz",
              help="Required. Array x of representative inputs (N, …), the batch first; or a data set with targets, "
                   "see docs/data.md. Formats are fitted to the training set; the test set becomes test vectors.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
              help="Run folder.  [default: runs/FILE]")
@click.option("--weight-bits", type=int, default=12, show_default=True, metavar="N", help="Bit width of weights.")
@click.option("--activation-bits", type=int, default=16, show_default=True, metavar="N",
              help="Bit width of activations.")
@click.option("--ignore-quantizers", is_flag=True,
              help="Ignore the quantizers of the file, and fit all formats to the data.")
@click.option("--output", metavar="NAME", help="Output to keep, of a file with several.")
@click.option("--force", is_flag=True, help="Replace a run that is in the run folder, with all that was made of it.")
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON.")
def import_onnx(file: Path, data: Path | None, out: Path | None, weight_bits: int, activation_bits: int, *,
                ignore_quantizers: bool, output: str | None, force: bool, as_json: bool) -> int:
    """Convert FILE.onnx and quantize it into a run folder, for circulant generate, simulate and report.

    docs/onnx.md lists the supported operators; from Python, circulant.from_onnx gives the torch module.

    \b
    Example:
      circulant import net.onnx --data calibration.npz
      circulant generate runs/net --multipliers 64
      circulant simulate runs/net
    """
    with extras("circulant import", "torch", "onnx"):
        from circulant import training
        from circulant.run.place import require_free
        from circulant.run.save_run import save_run
        from circulant.training.data.files import load_npz
    for path, what, way in ((file, "An ONNX file", "name another"),
                            (data, "The data of --data", "write it with numpy.savez('FILE.npz', x=inputs)")):
        if path is None:
            raise Refusal(f"Formats are fitted to inputs, which --data names, but it is not given; {way}, or see first "
                          f"what becomes of the file: circulant inspect {file}")
        if not path.is_file():
            raise Refusal(f"{what} must be a file that exists, but {path} does not; {way}")
    assert data is not None
    folder = out or Path("runs") / file.stem
    require_free(folder, force=force)
    path = data.absolute()
    given = load_npz(path)
    has_targets = any(key.endswith("y") for key in given)
    known = training.load_data("npz", path=str(path)) if has_targets else None
    x = load_npz(path, ("x",))["x"].astype(np.float32) if known is None else known.train_x
    lengths = given.get("lengths") if known is None else known.train_lengths
    model = training.from_onnx(file, x[:2], quantizers=not ignore_quantizers, output=output)
    report = training.inspect(model, x[:2])
    if not as_json:
        click.echo(str(report))
    exact = training.reference(model, x, name=file.stem)
    network = training.export(model, x, lengths=lengths, weight_bits=weight_bits, activation_bits=activation_bits,
                              name=file.stem)
    save_run(folder, model, network, known or _imitated(exact, report, x, lengths), force=force)
    quantized = None if lengths is not None or ignore_quantizers else _beside_quantizers(file, network, x, model)
    if as_json:
        click.echo(json.dumps({"folder": str(folder), "network": network.hash, "inspection": report.as_json(),
                               "quantizers": quantized}, indent=1, ensure_ascii=False))
        return 0
    if quantized:
        click.echo(f"Against the quantized file: {quantized['equal']:,} of {quantized['values']:,} output values are "
                   f"equal, greatest difference {quantized['greatest_difference']:.6g}")
    click.echo(f"{folder}/network.json: network {network.hash[:12]}; go on with: circulant generate {folder}")
    return 0


def _beside_quantizers(file: Path, network: "Network", x: Any, model: Any) -> Document | None:
    """How many outputs of the network are those of the file, computed with its quantizers; None where it has none."""
    from circulant.training.models.quantizer import Quantizer
    from circulant.training.onnx.quant import file_outputs

    if model.batch != 0 or not any(isinstance(module, Quantizer) for module in model.modules()):
        return None
    wanted = file_outputs(file, x[:COMPARED])
    if wanted is None:
        return None
    difference = np.abs(network.run(x[:len(wanted)]).real - wanted)
    return {"values": difference.size, "equal": int((difference == 0).sum()),
            "greatest_difference": float(difference.max())}


def _imitated(exact: "Model", report: "ConversionReport", x: Any, lengths: Any) -> "Dataset":
    """A data set whose targets are what the float network gives, for both parts: its outputs, or the class that they
    name where the file ends with a softmax. Scores then say how near the integers are to the file."""
    from circulant.training import Dataset

    y = exact.run(x, lengths=lengths)
    classes = any(entry.note.startswith("dropped") for entry in report)
    targets = y.argmax(-1) if classes else y.astype(np.float32)
    return Dataset("imported", x, targets, x, targets, classes=y.shape[-1],
                   task="classification" if classes else "regression", train_lengths=lengths, test_lengths=lengths)
