"""The command that takes an ONNX file to a golden network and its vectors, and on demand to a verified design."""
import json
from pathlib import Path
from typing import Any

import click

from circulant.exits import WRONG
from circulant.extras import extras
from circulant.sim.refusal import Refusal

__all__ = ["import_onnx"]


@click.command("import", short_help="From an ONNX file to a golden network")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.onnx")
@click.option("--data", type=click.Path(path_type=Path, dir_okay=False), required=True, metavar="FILE.npz",
              help="Inputs x (N, …) like the data to come, the batch first, and lengths (N,) where sequences differ; "
                   "formats are fitted to them, and all become test vectors.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
              help="Folder of the results; without it runs/FILE.")
@click.option("--weight-bits", type=int, default=12, show_default=True, metavar="N", help="Width of weights.")
@click.option("--activation-bits", type=int, default=16, show_default=True, metavar="N", help="Width of activations.")
@click.option("--multipliers", type=int, metavar="N", help="Also generate DIR/hardware with at most so many.")
@click.option("--simulate", is_flag=True, help="And verify it under Verilator.")
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON.")
def import_onnx(file: Path, data: Path, out: Path | None, weight_bits: int, activation_bits: int,
                multipliers: int | None, simulate: bool, as_json: bool) -> int:
    """Convert FILE.onnx, quantize it, and write network.json, weights.npz and vectors.npz.

    docs/onnx.md lists the operators that are known; from Python, circulant.from_onnx gives the torch module.

    \b
    Example:
      circulant import net.onnx --data calibration.npz --multipliers 64 --simulate
    """
    if simulate and multipliers is None:
        raise Refusal("--simulate must come with --multipliers, as there is no design to simulate without; give a "
                      "number")
    with extras("circulant import", "torch", "onnx"):
        from circulant import training
        from circulant.training.data.files import load_npz, locate
    given = load_npz(locate("import", str(data)), ("x",))
    model = training.from_onnx(file, given["x"][:2])
    report = training.inspect(model, given["x"][:2])
    if not as_json:
        click.echo(str(report))
    report.require_exportable()
    network = training.export(model, given["x"], lengths=given.get("lengths"), weight_bits=weight_bits,
                              activation_bits=activation_bits, name=file.stem)
    folder, vectors = out or Path("runs") / file.stem, network.vectors(given["x"], lengths=given.get("lengths"))
    network.save(folder)
    vectors.save(folder / "vectors.npz")
    done: dict[str, Any] = {"folder": str(folder), "network": network.hash, "inspection": report.as_json()}
    if multipliers is not None:
        with extras("circulant import --multipliers", "amaranth"):
            from circulant.hw import generate
        design = generate(network, multipliers=multipliers)
        design.write(folder / "hardware")
        done["design"] = {"multipliers": design.multipliers, "memory_bits": design.memory_bits}
    wrong = 0
    if simulate:
        from circulant.sim.cosim import verify

        check = verify(folder / "hardware", vectors)
        wrong = check.mismatches
        done["verification"] = {"words_compared": check.words_compared, "mismatches": wrong}
    click.echo(json.dumps(done, indent=1, ensure_ascii=False) if as_json else _words(done))
    return WRONG if wrong else 0


def _words(done: dict[str, Any]) -> str:
    lines = [f"{done['folder']}/network.json: network {done['network'][:12]}"]
    if "design" in done:
        design = done["design"]
        lines.append(f"{done['folder']}/hardware: {design['multipliers']} multipliers, {design['memory_bits']:,} bits "
                     "of memory")
    if "verification" in done:
        check = done["verification"]
        lines.append(f"{check['words_compared']:,} words compared, {check['mismatches']:,} mismatches")
    return "\n".join(lines)
