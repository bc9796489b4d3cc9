"""Experiment files: TOML that is read into one frozen, validated tree, and written back.

An experiment is found by the name of a shipped one, by the path of a TOML file, or by a run folder, which keeps the
experiment that made it.
"""
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.items import Item

from circulant import sources
from circulant.boards.device import devices
from circulant.hardware import Hardware
from circulant.sim.arith.multiplier import check_multiplier
from circulant.sim.files import files, toml
from circulant.sim.files.schema import shown
from circulant.sim.files.writing import atomic_text
from circulant.sim.refusal import Refusal, listed, nearest
from circulant.sim.settings import Table, key, keys, read, title
from circulant.training.settings import CompressionSettings, DataSettings, ModelSettings, TrainingSettings

__all__ = [
    "Board", "Experiment", "Quantization", "Simulation", "Training",
    "brief", "load", "parse", "project", "reference", "save", "shipped",
]

FILE = "experiment.toml"
"""The name under which a run folder keeps its experiment."""

LIMIT = 1 << 20
"""Bytes of an experiment."""

DEFAULT = "digits-gru"


@dataclass(frozen=True)
class Training(TrainingSettings):
    __doc__ = TrainingSettings.__doc__

    dense: str = key("", "run folder whose dense model is used, relative to the folder of the experiment file; "
                     "empty: train one")


@dataclass(frozen=True)
class Quantization(Table):
    """Bit widths, given or chosen by measurement; the binary points follow from the data. See quantization.md."""

    weight_bits: int | dict[str, int] = key(12, "bits of the weights' spectra", low=2, high=18)
    weight_scale: str = key("matrix", "what has its own binary point: each matrix, or each block row of it, for few "
                            "bits", choices=("matrix", "row"))
    activation_bits: int = key(16, "bits of inputs, gates, states and outputs", low=4, high=24)
    spectrum_bits: int | dict[str, int] = key(0, "bits of the data's spectra", low=4, high=26,
                                              zero="activation_bits + 1")
    product_bits: int | dict[str, int] = key(0, "bits of sums of products before the inverse transform", low=4, high=32,
                                             zero="activation_bits + 8")
    input_bits: int = key(0, "bits of the network's inputs", low=4, high=24, zero="activation_bits")
    output_bits: int | dict[str, int] = key(0, "bits of pre-activations, and of the outputs of Linear layers",
                                            low=4, high=24, zero="activation_bits")
    state_bits: int | dict[str, int] = key(0, "bits of gates and states", low=4, high=24, zero="activation_bits")
    cell_bits: int | dict[str, int] = key(0, "bits of an LSTM's cell", low=4, high=24, zero="activation_bits")
    twiddle_bits: int | dict[str, int] = key(16, "fraction bits of twiddle factors", low=4, high=20)
    multiplier: str = key("exact", "products of spectra: exact, truncated:N without the N lowest columns of partial "
                          "products, or mitchell, sums of logarithms; the last two take no DSP blocks, see faults.md")
    activation_table: str = key("pwl", "tables of sigmoid and tanh: line segments of any length (pwl), or values at "
                                "equal distances, interpolated linearly (lut)", choices=("pwl", "lut"))
    activation_error: float = key(0.0005, "largest error of such a table, apart from the rounding of its values",
                                  low=1e-6, high=0.1)
    segments: int = key(0, "largest number of segments in a table, a power of two for a lut",
                        low=3, high=1024, zero="as many as activation_error asks for")
    calibration: int = key(0, "training samples to which the formats are fitted, spread over all of them",
                           low=1, high=10**9, zero="all")
    budget: float = key(0.0, "points of the metric that narrower bit widths may cost",
                        low=1e-6, high=100, zero="the given bit widths")
    search: str = key("greedy", "how bit widths are chosen: step by step by sensitivity, or as the cheapest of all "
                      "combinations", choices=("greedy", "exhaustive"))
    pick: tuple[str, ...] = key((), "kinds of bit widths to choose, such as weight_bits; empty: all")
    pick_on: str = key("train", "part of the data on which the loss is measured; with test, the accuracy on the test "
                       "set is biased by the choice", choices=("train", "test"))
    pick_by: str = key("margins", "how the loss is measured: estimated from the margins of decisions that "
                       "quantization uses up, or as the metric", choices=("margins", "metric"))
    samples: int = key(1000, "number of samples of that part", low=1, high=10**9, zero="all")
    margin: float = key(1.0, "safety factor on the distance from the unquantized outputs", low=1, high=1000)
    memory_share: float = key(0.5, "weight of the memory in the cost; multipliers have the rest", low=0, high=1)
    dsp: str = key("none", "operand widths of a DSP block; a wider product takes several blocks. none: a product "
                   "costs the product of its operand widths", choices=("none", "27x18", "25x18", "18x18"))
    finetune_epochs: int = key(0, "epochs of training on the weights' integers; the gradient ignores their rounding",
                               low=1, high=10000, zero="none")
    joint_epochs: int = key(0, "epochs of ADMM towards weights that are both block-circulant and integers, before the "
                            "fine-tuning", low=1, high=10000, zero="none")
    finetune_rate: float = key(1e-3, "learning rate of the fine-tuning and of that ADMM", low=1e-8, high=10)
    finetune_noise: float = key(0.0, "probability with which each bit of the weights is flipped in each forward pass "
                                "of the fine-tuning; see faults.md", low=1e-9, high=0.5, zero="none")
    finetune_sensitivity: float = key(0.0, "the same probability in a penalty on what flipped bits do to the outputs, "
                                      "to first order", low=1e-9, high=0.5, zero="none")
    finetune_clip: int = key(0, "bits by which the fine-tuning cuts the range of the weights, so that a flipped bit is "
                             "less; their step is as many bits finer", low=1, high=6, zero="none")
    finetune_labels: float = key(0.0, "share of the labels in the loss of the fine-tuning; the rest is the distance "
                                 "from the outputs before it", low=0, high=1)

    def contradictions(self) -> list[str]:
        try:
            check_multiplier(self.multiplier)
        except Refusal as refusal:
            return [f"quantization.multiplier: {refusal}"]
        return []


@dataclass(frozen=True)
class Board(Table):
    """The FPGA that the design must fit."""

    device: str = key("none", "FPGA whose multipliers and memory the design must not exceed",
                      choices=("none", *devices()))


@dataclass(frozen=True)
class Simulation(Table):
    """Samples and disturbances of the simulation."""

    samples: int = key(0, "number of test samples, the first ones; each is simulated once, and some again with stalls "
                       "and resets", low=1, high=10**9, zero="all")
    drawn: int = key(32, "generated samples that exercise the circuit, chosen by the coverage of the golden model, "
                     "with stalls and short resets; never more than the test samples", low=1, high=10**6, zero="none")


TABLES: tuple[type[Table], ...] = (
    DataSettings, ModelSettings, CompressionSettings, Training, Quantization, Hardware, Board, Simulation)


@dataclass(frozen=True)
class Experiment:
    """One run in data: what is learned, by which network, how it is compressed, quantized and built.

    Parameters:
        name: names the run folder and the network. In the file it may stand above all tables; without it, the file's
            own name is taken.
        texts: of the Python files that it names, as they were when it was read, by table.
    """

    name: str = DEFAULT
    data: DataSettings = field(default_factory=DataSettings)
    model: ModelSettings = field(default_factory=ModelSettings)
    compression: CompressionSettings = field(default_factory=CompressionSettings)
    training: Training = field(default_factory=Training)
    quantization: Quantization = field(default_factory=Quantization)
    hardware: Hardware = field(default_factory=Hardware)
    board: Board = field(default_factory=Board)
    simulation: Simulation = field(default_factory=Simulation)
    texts: Mapping[str, bytes] = field(default_factory=dict, compare=False, repr=False)

    def tables(self, names: Iterable[str] | None = None) -> dict[str, dict[str, Any]]:
        """The named tables, or all of them, as plain dictionaries."""
        return {name: asdict(getattr(self, name)) for name in (_BY_NAME if names is None else names)}

    def identity(self, names: Iterable[str] | None = None) -> dict[str, dict[str, Any]]:
        """The tables with what Python files hold in place of where they lie."""
        return sources.identify(self.tables(names), self.texts or sources.texts(self.tables(("data", "model"))))


_BY_NAME = {title(table): table for table in TABLES}


def shipped(kind: str = "experiments") -> tuple[str, ...]:
    """Names of the experiments that come with the package, or of the "sweeps"."""
    folder = resources.files("circulant").joinpath(kind)
    return tuple(sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml")))


def load(source: str | Path = DEFAULT, overrides: Iterable[str] = ()) -> Experiment:
    """The experiment of a shipped name, a ``.toml`` file or a run folder, with ``key=value`` texts laid over it.

    Raises:
        Refusal: unknown experiment, broken TOML, or one line for each unknown key and each illegal value.
    """
    name, origin, text, base = _find(str(source))
    try:
        tables = toml.parse(text)
    except ValueError as error:
        raise Refusal(f"{origin} must be TOML: {error}") from None
    if base is not None:
        sources.anchor(tables, base)
        if Path(origin).name == FILE:
            sources.restore(base, tables)
    overrides = tuple(overrides)
    for override in overrides:
        given = _parse_override(override)
        sources.anchor(given, Path())
        _merge(tables, given)
    return parse(tables, name, origin, overrides)


def parse(tables: Mapping[str, Any], name: str = DEFAULT, origin: str = "experiment",
          overrides: Sequence[str] = ()) -> Experiment:
    """The experiment that plain tables describe.

    Parameters:
        overrides: ``key=value`` texts that are in the tables already, and are named where their values are refused.

    Raises:
        Refusal: one line for each unknown table, unknown key and illegal value, up to a number.
    """
    given = dict(tables)
    name = given.pop("name", name)
    problems = []
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", name):
        problems = [f"name must be letters, digits, '_', '-' and '.', as it names a folder, not {shown(name)}"]
    tables_are = "; the tables are " + ", ".join(_BY_NAME)
    problems += [f"there is no table [{word[:60]}]{nearest(word, _BY_NAME) or tables_are}"
                for word in given if word not in _BY_NAME]
    made: dict[str, Any] = {}
    for word, table in _BY_NAME.items():
        made[word], wrong = read(table, given.get(word, {}))
        problems += wrong
    if problems:
        raise Refusal(listed([f"{_blamed(problem, origin, overrides)}: {problem}" for problem in problems]))
    experiment = Experiment(name, **made)
    return replace(experiment, texts=sources.texts(experiment.tables(("data", "model"))))


def _blamed(problem: str, origin: str, overrides: Sequence[str]) -> str:
    """Where a value that is refused comes from: the last override of its key, or what it is laid over."""
    refused = problem.partition(" ")[0]
    return next((f"{origin} with {each if len(each) < 200 else each[:60] + '…'}" for each in reversed(overrides)
                 if f"{each.partition('=')[0].strip()}.".startswith(f"{refused}.")), origin)


def project(source: str | Path) -> Path | None:
    """The experiment of a folder that `circulant new` made, ``NAME/NAME.toml``; None where it is none."""
    folder = Path(source)
    file = folder / f"{folder.resolve().name}.toml"
    return file if folder.is_dir() and not (folder / FILE).exists() and file.is_file() else None


def save(experiment: Experiment, folder: str | Path) -> None:
    """Write ``experiment.toml`` into a run folder, every key with its meaning beside it, and copies of the Python files
    that it names."""
    sources.keep(Path(folder), experiment.tables(("data", "model")), experiment.texts)
    document = tomlkit.document()
    document.add("name", experiment.name)
    for word, table in _BY_NAME.items():
        entry = tomlkit.table()
        for name, (rule, _, _) in keys(table).items():
            item = _item(getattr(getattr(experiment, word), name))
            item.comment(rule.doc)
            entry.add(name, item)
        document.add(word, entry)
    atomic_text(Path(folder) / FILE, tomlkit.dumps(document))


def brief(experiment: Experiment) -> str:
    """The experiment as TOML, with those keys alone that differ from their defaults."""
    document = tomlkit.document()
    document.add("name", experiment.name)
    for word, table in _BY_NAME.items():
        mine = getattr(experiment, word)
        changed = {name: getattr(mine, name) for name, (_, _, default) in keys(table).items()
                   if getattr(mine, name) != default}
        if changed:
            entry = tomlkit.table()
            for name, value in changed.items():
                entry.add(name, _item(value))
            document.add(word, entry)
    return tomlkit.dumps(document)


def _item(value: Any) -> Item:
    """A value of a file; a table of its own would take the keys behind it."""
    item = tomlkit.item(value)
    if isinstance(value, Mapping):
        item = tomlkit.inline_table()
        item.update(value)
    return item


def reference() -> str:
    """Every key with type, default and legal values, as the Markdown tables of docs/experiment.md."""
    parts, each = [], "or a table from matrix name to such a number"
    for word, table in _BY_NAME.items():
        rows = "".join(f"| `{word}.{name}` | {rule.doc} | {rule.rule(kind)} | `{json.dumps(default)}` |\n"
                       for name, (rule, kind, default) in keys(table).items()).replace(each, "or by matrix")
        parts.append(f"### [{word}]\n\n{table.__doc__}\n\n"
                     f"| key | meaning | legal values | default |\n|---|---|---|---|\n{rows}")
    return "\n".join(parts)


def _find(source: str) -> tuple[str, str, str, Path | None]:
    """Name, what to call it in a message, and text of an experiment, and the folder from which its paths start."""
    if source in shipped():
        file = resources.files("circulant").joinpath("experiments", f"{source}.toml")
        return source, source, file.read_text("utf-8"), None
    path = project(source) or Path(source)
    near = "" if path.name in shipped() else nearest(path.name, shipped())
    if path.is_dir():
        name, path = path.resolve().name, path / FILE
        if not path.exists():
            raise Refusal(f"{source} is no run folder, {FILE} is missing in it; "
                          f"run `circulant train EXPERIMENT --out {source}` first")
    elif not path.exists() and path.suffix == ".toml":
        raise Refusal(f"An experiment must be a file that exists, but there is no {source}; give the "
                      f"path of one, or a shipped experiment ({', '.join(shipped())})")
    elif not path.exists() and len(path.parts) > 1 and not near:
        raise Refusal(f"A run folder must exist, but there is no {source}; run `circulant train EXPERIMENT --out "
                      f"{source}` first, or give another one")
    elif not path.exists():
        raise Refusal(f"An experiment must be a shipped one ({', '.join(shipped())}), a .toml file or a run folder, "
                      f"not {source!r}{near}")
    else:
        name = path.stem
    try:
        return name, str(path), files.read_text(path, LIMIT), path.parent
    except UnicodeDecodeError as error:
        raise Refusal(f"{path} must be TOML in UTF-8: {error}") from None
    except OSError as error:
        raise Refusal(f"{path} cannot be read: {files.reason(error)}") from None


def _parse_override(text: str) -> dict[str, Any]:
    word, equals, value = text.partition("=")
    word, value = word.strip(), value.strip()
    if equals and "\n" not in text:
        for spelling in (value, json.dumps(value)):  # A word that is no TOML value stands for itself.
            try:
                tables = toml.parse(f"{word} = {spelling}")
            except ValueError:
                continue
            if all(isinstance(entry, dict) for entry in tables.values()):
                return tables
    raise Refusal(f"--set takes table.key=value, for instance hardware.multipliers=32, not {shown(text)}")


def _merge(into: dict[str, Any], tables: Mapping[str, Any]) -> None:
    """Tables laid over others, key by key; an empty one clears."""
    for word, value in tables.items():
        if value and isinstance(value, Mapping) and isinstance(into.get(word), dict):
            _merge(into[word], value)
        else:
            into[word] = value
