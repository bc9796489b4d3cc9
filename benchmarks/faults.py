"""Wrong bits in memories: circuits beside the golden model, accuracy by bit error rate and block size, training."""
import json
import shutil
from collections.abc import Callable, Mapping
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from circulant.boards.synthesis import synthesize
from circulant.experiment import Experiment, load, save
from circulant.faults import figures
from circulant.faults.campaign import Flipped, Plan, Simulated, campaign, flipped, played
from circulant.hw.faults import sites
from circulant.hw.planner import plan as plan_of
from circulant.progress import Show, silent
from circulant.run import steps
from circulant.run.run_folder import STEPS, Run
from circulant.run.sizing import options
from circulant.sim.arith.codes import Code
from circulant.sim.files.writing import atomic_text
from circulant.sim.golden.network import Network

__all__ = ["BLOCKS", "DESIGNS", "FOLDER", "measure"]

FOLDER = Path("build") / "faults"
"""Run folders and draws, so that a call that is interrupted goes on; ``make clean`` removes them."""

BLOCKS = (1, 4, 8, 16)
"""Block sizes whose accuracy is measured, of digits-gru with 8-bit spectra."""

RATES = (1e-4, 1e-3, 3e-3, 1e-2)

DRAWS, SINGLES = 30, 384
"""Draws at each rate, and of one fault: a share of the latter is known to ± 0.05 with a confidence of 0.95."""

CONFIDENCE = 0.95

FLIPS = 800
"""Flips of registers: a share is known to ± 0.035 with that confidence."""

COUNTED = {0.60: 4, 0.59: 24, 0.58: 146, 0.57: 772, 0.56: 2732, 0.55: 7520, 0.54: 23706}
"""Wrong bits of all block RAMs of a VC707 by their supply in V, as Salami et al. published them with their paper of
MICRO 2018. From 0.61 V on none was wrong; below 0.54 V the device stops. There, says their paper of FPL 2018, block
RAMs take 36.1 % less power than at 0.61 V."""

CAPACITY = 1030 * 36 * 1024
"""Bits of these block RAMs, check bits included."""

SAVED = 0.361

EIGHT = "quantization.weight_bits=8"

class Way(NamedTuple):
    """A way to fine-tune: rate of the noise, bits cut, rate of the penalty on sensitivity, share of the labels."""

    noise: float
    clip: int
    sensitivity: float = 0.0
    labels: float = 0.7

    def __str__(self) -> str:
        return (f"noise {self.noise:g}, {self.clip} bits cut, sensitivity {self.sensitivity:g}, "
                f"labels {self.labels:g}")


WAYS = (Way(0.01, 2), Way(0.003, 1))

FURTHER = (Way(0.005, 1, labels=1.0), Way(0.0, 1), Way(0.0, 1, 0.001), Way(0.003, 1, 0.01, 1.0),
           Way(0.01, 2, 0.003, 1.0))
"""Ways that are tried besides, of digits."""

TAUGHT = {"digits": ("k8", "digits-gru", "data.held_out=287", 90, (*WAYS, *FURTHER)),
          "FSDD": ("fsdd", "fsdd-gru", "data.held_out=540", 12, WAYS)}
"""Runs and experiments that are trained against errors with k = 8; a fifth of the training set that judges the ways;
epochs; and the ways, of which for each rate that one is taken whose mean on the held-out samples is best."""

AGAINST = (1e-3, 1e-2)
"""Bit error rates that they are trained against."""

MULTIPLIERS = ("exact", "truncated:5", "truncated:7", "mitchell")
"""Multipliers of digits-gru with k = 8 and 8 bits of weights and activations."""

THROUGH = ("quantization.finetune_epochs=20", "quantization.finetune_rate=0.002", "quantization.finetune_labels=0.5")
"""A fine-tuning through their products."""

DESIGNS = {
    "digits-gru": (EIGHT,),
    "digits-perceptron": (EIGHT, "data.layout=flat", "model.kind=mlp", "model.hidden=64"),
    "digits-cnn": (EIGHT, "data.layout=image", "model.kind=cnn", "training.dense_epochs=5", "training.admm_epochs=5",
                   "training.retrain_epochs=5"),
}
"""Networks that are played beside the golden model, as changes of digits-gru."""


class Curve(NamedTuple):
    """Bits of the weights of a network, check bits included, and its accuracies at each rate, and with one fault."""

    bits: int
    accuracy: figures.Summary


Kind = TypeVar("Kind", Flipped, Simulated)


class _Bench(NamedTuple):
    """Run folders and their figures, each made once, with progress."""

    show: Show

    def told(self, run: Run) -> Show:
        """Progress under the name of a run."""
        return lambda task, done, total, note="": self.show(f"{run.folder.name}: {task}", done, total, note)

    def made(self, name: str, overrides: tuple[str, ...], *, experiment: str = "digits-gru", trained: str = "",
             generates: bool = False) -> Run:
        """The run folder of a design, with what is missing in it.

        Parameters:
            trained: of the run of the same training, that is copied.
        """
        made: Experiment = load(experiment, overrides)
        run = Run(FOLDER / name, made)
        if trained and not run.path(STEPS["train"].record).exists():
            run.folder.mkdir(parents=True, exist_ok=True)
            save(made, run.folder)
            for file in ("model.pt", STEPS["train"].record):
                shutil.copy(FOLDER / trained / file, run.folder)
        if steps.finished(run) is None:
            steps.train(run, self.told(run), resume=None)
        if not run.path(STEPS["quantize"].record).exists():
            steps.quantize(run, self.told(run))
        if generates and not run.path(STEPS["generate"].record).exists():
            steps.generate(run, self.told(run))
        return run

    def of(self, k: int) -> Run:
        return self.made(f"k{k}", (EIGHT, f"compression.block_size={k}"))

    def curve(self, run: Run, *, protection: str = "none", rates: tuple[float, ...] = RATES, singles: int = 0) -> Curve:
        plan = Plan(rates=rates, draws=DRAWS, singles=singles, protection=protection)
        draws = campaign(run, plan, run.path("faults") / "draws.jsonl", show=self.told(run))
        network = Network.load(run.folder)
        bits = sum(each.words * Code(each.word_bits, protection).bits for path, each in network.memories.items()
                   if path.endswith(".weights"))
        return Curve(bits, figures.summary(draws, network.memories, "accuracy", CONFIDENCE))

    def taught(self, data: str) -> dict[float, tuple[Way, Run]]:
        """By rate the way that the held-out samples choose, and the run that was trained so on the whole training
        set."""
        folder, experiment, held, epochs, ways = TAUGHT[data]

        def run(way: Way, *more: str) -> Run:
            base = f"{folder}{'-held' * len(more)}"
            self.made(base, (EIGHT, *more), experiment=experiment)
            return self.made("-".join((base, *(f"{each:g}" for each in way))), (
                EIGHT, *more, f"quantization.finetune_epochs={epochs}", "quantization.finetune_rate=0.005",
                *(f"quantization.finetune_{name}={value:g}" for name, value in way._asdict().items())),
                experiment=experiment, trained=base)

        held_out = {way: self.curve(run(way, held), rates=AGAINST).accuracy for way in ways}
        for way, found in held_out.items():
            self.show(f"{data}, held out, {way}: {found['score']:.2%} without faults, " + ", ".join(
                f"{row['mean']:.2%} at {row['rate']:g}" for row in found["rates"]), 1, 1)
        best = {rate: max(ways, key=lambda way: held_out[way]["rates"][n]["mean"]) for n, rate in enumerate(AGAINST)}
        return {rate: (way, run(way)) for rate, way in best.items()}

    def multiplied(self, name: str) -> dict[str, float]:
        """Accuracies with the products of a multiplier, of integers as they are and trained through it, and what Yosys
        makes of the design for UltraScale."""
        self.of(8)
        given = (EIGHT, "quantization.activation_bits=8", f"quantization.multiplier={name}", "hardware.family=xilinx")
        folder = f"k8-{name.replace(':', '-')}"
        runs = [self.made(folder, given, trained="k8", generates=True),
                self.made(f"{folder}-through", (*given, *THROUGH), trained="k8")]
        plain, tuned = (json.loads(run.path(STEPS["quantize"].record).read_text())["accuracy"]["quantized"]
                        for run in runs)
        kept = runs[0].path("synthesis-xcu.json")
        if not kept.exists():
            found = synthesize(runs[0].path("hardware"), "xcu")
            atomic_text(kept, json.dumps({"luts": found.luts, "dsps": found.dsps}))
        return {"plain": plain, "tuned": tuned, **json.loads(kept.read_text())}

    def every_flip(self) -> dict[str, int]:
        """How many of all single flips of the images of digits-gru, and of all double ones in one group of check bits,
        its decoders put right and see."""
        run = self.made("digits-gru", DESIGNS["digits-gru"])
        network = Network.load(run.folder)
        given = options(run.experiment, network)
        plans = plan_of(network, given["multipliers"], streams=given["streams"], levels=given["levels"],
                        objective=given["objective"])
        found = dict.fromkeys(("words", "single", "right", "double", "seen"), 0)
        codes, tell = sites(network, plans, "secded"), self.told(run)
        for n, (image, code) in enumerate(codes.codes.items()):
            tell("every flip", n, len(codes.codes))
            words = codes.bits(image)
            patterns = [np.eye(code.bits, dtype=bool)]
            for data, checks, _ in code.parts:
                pairs = np.array(list(combinations([*data, *checks], 2)))
                pattern = np.zeros((len(pairs), code.bits), bool)
                np.put_along_axis(pattern, pairs, True, 1)
                patterns.append(pattern)
            for word in words:
                one, two = code.decode(word ^ patterns[0]), code.decode(word ^ np.concatenate(patterns[1:]))
                found["words"] += 1
                found["single"] += code.bits
                found["right"] += int(((one.data == word[:code.width]).all(1) & one.corrected & ~one.uncorrected).sum())
                found["double"] += len(two.data)
                found["seen"] += int((two.uncorrected & ~two.corrected).sum())
        return found


def _kept(run: Run, name: str, kind: type[Kind], made: Callable[[], Kind]) -> Kind:
    """The figures that another call found of the same network, or those that are made now."""
    path, sha = run.path("faults") / f"{name}.json", Network.load(run.folder).hash
    if path.exists() and (kept := json.loads(path.read_text()))["network"] == sha:
        return kind(**kept["figures"])
    found = made()
    path.parent.mkdir(exist_ok=True)
    atomic_text(path, json.dumps({"network": sha, "figures": found._asdict()}))
    return found


def _row(curve: Curve) -> str:
    percent, found = "{:.1f}".format, curve.accuracy
    rates = [f"{row['rate']:g}: {percent(100 * row['mean'])} (worst {percent(100 * row['least'])})"
             for row in found["rates"]]
    one = "" if "single" not in found else (
        f"; one fault: {percent(100 * found['single']['all']['mean'])} "
        f"(worst {percent(100 * found['single']['all']['least'])})")
    return f"{100 * found['score']:.1f} %, {curve.bits:,} bits; {'; '.join(rates)}{one}"


def measure(runs: int, parts: tuple[str, ...], show: Show = silent) -> Mapping[str, object]:
    """The figures of docs/faults.md.

    Parameters:
        runs: under Verilator, of all `DESIGNS` together.
        parts: of "blocks", "noise", "protection", "voltage", "registers", "circuits", "multipliers".
        show: progress, under the names of the run folders.
    """
    bench, table, found = _Bench(show), dict[str, str](), dict[str, object]()
    if "blocks" in parts:
        curves = {k: bench.curve(bench.of(k), singles=SINGLES) for k in BLOCKS}
        found["blocks"] = {k: each._asdict() for k, each in curves.items()}
        table |= {f"k = {k}": _row(each) for k, each in curves.items()}
    if "noise" in parts:
        found["noise"] = noise = dict[str, object]()
        for data in TAUGHT:
            taught, (folder, experiment, _, epochs, _) = bench.taught(data), TAUGHT[data]
            plain = bench.curve(bench.made(folder, (EIGHT,), experiment=experiment))
            table[f"{data}, k = 8"] = _row(plain)
            for rate, (way, run) in taught.items():
                hard = bench.curve(run)
                mean = next(row["mean"] for row in hard.accuracy["rates"] if row["rate"] == rate)
                noise[f"{data} {rate:g}"] = {"way": way._asdict(), **hard._asdict()}
                table[f"{data}, k = 8, trained against {rate:g}"] = (
                    f"{100 * (plain.accuracy['score'] - mean):.1f} points lost at {rate:g}; {_row(hard)}; {way}, "
                    f"{epochs} epochs")
    if "protection" in parts:
        dense = bench.curve(bench.of(1))
        guarded = {f"k = {k}, SECDED": bench.curve(bench.of(k), protection="secded") for k in BLOCKS}
        guarded["k = 8, trained, SECDED"] = bench.curve(bench.taught("digits")[1e-2][1], protection="secded")
        found["protection"] = {name: each._asdict() for name, each in guarded.items()}
        table["k = 1, no check bits"] = _row(dense)
        for name, curve in guarded.items():
            ahead = [mine["rate"] for mine, its in zip(curve.accuracy["rates"], dense.accuracy["rates"], strict=True)
                     if mine["mean"] >= its["mean"]]
            table[name] = f"{_row(curve)}; no worse than dense at {', '.join(f'{rate:g}' for rate in ahead)}"
        every = found["every flip"] = bench.every_flip()
        table["SECDED in digits-gru"] = (
            f"{every['right']:,} of {every['single']:,} flips put right, {every['seen']:,} of {every['double']:,} "
            f"double ones seen, {every['words']} words")
    if "voltage" in parts:
        rates = tuple(count / CAPACITY for count in COUNTED.values())
        rows = {f"k = {k}{', ' + kind if kind != 'none' else ''}": bench.curve(
            bench.of(k), protection=kind, rates=rates) for k in BLOCKS for kind in ("none", "secded")}
        rows["k = 8, trained"] = bench.curve(bench.taught("digits")[1e-3][1], rates=rates)
        found["voltage"] = {name: each._asdict() for name, each in rows.items()}
        table |= {f"{name}, from {max(COUNTED)} to {min(COUNTED)} V": _row(each) for name, each in rows.items()}
        own, coded = rows["k = 8"].bits, rows["k = 8, secded"].bits
        table["power of the weights of k = 8 at 0.54 V beside 0.61 V"] = (
            f"{SAVED:.1%} less, with check bits {1 - (1 - SAVED) * coded / own:.1%}")
    if "registers" in parts:
        run = bench.made("digits-gru", DESIGNS["digits-gru"], generates=True)
        turned = _kept(run, f"flips-{FLIPS}", Flipped, partial(flipped, run, FLIPS, show=bench.told(run)))
        found["registers"] = turned._asdict()
        table |= {f"digits-gru: {what}": said for what, said in figures.registers(turned, CONFIDENCE).items()}
    if "circuits" in parts:
        plan = Plan(memories=("weights", "bias"), rates=(1e-3, 1e-2))
        found["circuits"] = circuits = dict[str, object]()
        for n, (name, overrides) in enumerate(DESIGNS.items()):
            count = (runs + n) // len(DESIGNS)
            run = bench.made(name, overrides, generates=True)
            result = _kept(run, f"circuits-{count}", Simulated, partial(played, run, plan, count, 100,
                                                                          show=bench.told(run)))
            circuits[name] = result._asdict()
            table[f"{name}: runs equal to golden"] = f"{result.equal} of {result.runs}"
            table[f"{name}: one wrong bit in a program or table"] = ", ".join(
                f"{count} {end}" for end, count in result.ends.items())
    if "multipliers" in parts:
        found["multipliers"] = multipliers = {name: bench.multiplied(name) for name in MULTIPLIERS}
        table |= {f"{name} products": (
            f"{100 * each['plain']:.1f} %, trained through them {100 * each['tuned']:.1f} %; {each['luts']:,} look-up "
            f"tables, {each['dsps']} DSP blocks") for name, each in multipliers.items()}
    return {"benchmark": "faults", "table": table, **found}
