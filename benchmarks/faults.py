"""Wrong bits in memories: circuits beside the golden model, accuracy by bit error rate and block size, training."""
from pathlib import Path
from typing import Any, NamedTuple

from circulant.experiment import Experiment, load
from circulant.faults import figures
from circulant.faults.campaign import Plan, campaign, played
from circulant.run import steps
from circulant.run.run_folder import STEPS, Run
from circulant.sim.golden.network import Network

__all__ = ["BLOCKS", "DESIGNS", "FOLDER", "measure"]

FOLDER = Path("build") / "faults"
"""Run folders and draws, so that a call that is interrupted goes on; ``make clean`` removes them."""

BLOCKS = (1, 4, 8, 16)
"""Block sizes whose accuracy is measured, of digits-gru with 8-bit spectra."""

RATES = (1e-4, 1e-3, 3e-3, 1e-2)

DRAWS, SINGLES = 30, 96
"""Draws at each rate, and of one fault: a share of the latter is known to ± 0.1 with a confidence of 0.95."""

CONFIDENCE = 0.95

EIGHT = "quantization.weight_bits=8"

NOISE = ("quantization.finetune_epochs=120", "quantization.finetune_rate=0.005", "quantization.finetune_clip=2")
"""Fine-tuning with noise; its rate is that of the row."""

DESIGNS = {
    "digits-gru": (EIGHT,),
    "digits-perceptron": (EIGHT, "data.layout=flat", "model.kind=mlp", "model.hidden=64"),
    "digits-cnn": (EIGHT, "data.layout=image", "model.kind=cnn", "training.dense_epochs=5", "training.admm_epochs=5",
                   "training.retrain_epochs=5"),
}
"""Networks that are played beside the golden model, as changes of digits-gru."""


def _made(name: str, overrides: tuple[str, ...], *, generates: bool = False) -> Run:
    """The run folder of a design, with what is missing in it."""
    folder = FOLDER / name
    experiment: Experiment = load("digits-gru", overrides)
    run = Run(folder, experiment)
    if steps.finished(run) is None:
        steps.train(run, resume=None)
    if not run.path(STEPS["quantize"].record).exists():
        steps.quantize(run)
    if generates and not run.path(STEPS["generate"].record).exists():
        steps.generate(run)
    return run


class Curve(NamedTuple):
    """Bits of the weights of a network, and its accuracies at each rate, and with one fault."""

    bits: int
    accuracy: figures.Summary


def _curve(name: str, overrides: tuple[str, ...]) -> Curve:
    run = _made(name, overrides)
    plan = Plan(rates=RATES, draws=DRAWS, singles=SINGLES)
    draws = campaign(run, plan, run.path("faults") / "draws.jsonl")
    network = Network.load(run.folder)
    bits = sum(each.bits for path, each in network.memories.items() if path.endswith(".weights"))
    return Curve(bits, figures.summary(draws, network.memories, "accuracy", CONFIDENCE))


def _row(curve: Curve) -> str:
    percent, found = "{:.1f}".format, curve.accuracy
    rates = [f"{row['rate']:g}: {percent(100 * row['mean'])} (worst {percent(100 * row['least'])})"
             for row in found["rates"]]
    return (f"{100 * found['score']:.1f} %, {curve.bits:,} bits; {'; '.join(rates)}; one fault: "
            f"{percent(100 * found['single']['all']['mean'])} (worst {percent(100 * found['single']['all']['least'])})")


def measure(runs: int, parts: tuple[str, ...]) -> dict[str, Any]:
    """The figures of docs/faults.md.

    Parameters:
        runs: under Verilator, of all `DESIGNS` together.
        parts: of "circuits", "blocks", "noise".
    """
    table, found = dict[str, str](), dict[str, Any]()
    if "blocks" in parts:
        curves = {k: _curve(f"k{k}", (EIGHT, f"compression.block_size={k}")) for k in BLOCKS}
        found["blocks"] = {k: each._asdict() for k, each in curves.items()}
        table |= {f"k = {k}": _row(each) for k, each in curves.items()}
    if "noise" in parts:
        taught = {rate: _curve(f"k8-noise-{rate:g}", (EIGHT, *NOISE, f"quantization.finetune_noise={rate:g}"))
                  for rate in (1e-3, 1e-2)}
        found["noise"] = {rate: each._asdict() for rate, each in taught.items()}
        table |= {f"k = 8, trained at {rate:g}": _row(each) for rate, each in taught.items()}
    if "circuits" in parts:
        plan, found["circuits"] = Plan(memories=("weights", "bias"), rates=(1e-3, 1e-2)), {}
        for n, (name, overrides) in enumerate(DESIGNS.items()):
            count = (runs + n) // len(DESIGNS)
            result = played(_made(name, overrides, generates=True), plan, count, 100)
            found["circuits"][name] = result._asdict()
            table[f"{name}: runs equal to golden"] = f"{result.equal} of {result.runs}"
            table[f"{name}: one wrong bit in a program or table"] = ", ".join(
                f"{count} {end}" for end, count in result.ends.items())
    return {"benchmark": "faults", "table": table, **found}
