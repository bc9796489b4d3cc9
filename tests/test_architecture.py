"""The picture of the folders, enforced over the syntax trees: who may import whom, and that tests mirror sources."""
import ast
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks import size
from tests.sources import ROOT, python_files, tree

FOLDERS = {"circulant": ROOT / "circulant"} | {
    f"circulant.{name}": ROOT / name for name in ("training", "sim", "hw", "boards")}
"""The folders by package: circulant/ holds a relative link to each of the others."""

OURS = {
    "circulant": {"circulant", "circulant.training", "circulant.training.data", "circulant.training.onnx",
                  "circulant.training.settings", "circulant.sim", "circulant.sim.cosim", "circulant.hw",
                  "circulant.hw.c", "circulant.boards"},
    "circulant.training": {"circulant.training", "circulant.training.data", "circulant.training.onnx",
                           "circulant.training.settings", "circulant.sim"},
    "circulant.training.onnx": {"circulant.training", "circulant.training.onnx", "circulant.sim"},
    "circulant.training.data": {"circulant.training.data", "circulant.training.settings", "circulant.sim"},
    "circulant.training.settings": {"circulant.training.settings", "circulant.sim"},
    "circulant.boards": {"circulant.boards", "circulant.hw", "circulant.sim", "circulant.sim.cosim"},
    "circulant.hw": {"circulant.hw", "circulant.hw.ctext", "circulant.sim"},
    "circulant.hw.c": {"circulant.hw.c", "circulant.hw.ctext", "circulant.sim"},
    "circulant.hw.ctext": {"circulant.hw.ctext", "circulant.sim"},
    "circulant.sim": {"circulant.sim"},
    "circulant.sim.cosim": {"circulant.sim.cosim", "circulant.sim"},
}
"""Which packages of ours a package may import: the arrows of the picture. A folder below obeys its package's row, and
has one of its own where it may do less or more."""

THEIRS = {
    "circulant": {"numpy", "click", "rich", "tomlkit", "jinja2", "matplotlib", "optuna", "distributed"},
    "circulant.training": {"numpy", "torch", "rapidfuzz", "rich"},
    "circulant.training.data": {"numpy", "scipy", "sklearn", "PIL"},
    "circulant.training.onnx": {"numpy", "torch", "onnx"},
    "circulant.training.settings": set(),
    "circulant.boards": {"numpy", "amaranth", "amaranth_boards", "serial"},
    "circulant.hw": {"numpy", "amaranth"},
    "circulant.hw.c": {"numpy", "jinja2"},
    "circulant.hw.ctext": {"numpy", "jinja2"},
    "circulant.sim": {"numpy", "scipy", "pydantic", "pydantic_core"},
    "circulant.sim.cosim": {"numpy", "cocotb", "cocotb_tools", "find_libpython"},
}
"""Which other packages it may import, besides the standard library."""

ORDER = {
    "circulant": "progress extras exits sources project hardware experiment kit run completion arguments doctor report "
                 "rates share sweep explore estimate faults partition inspection commands board_commands asic_command "
                 "onnx_import cli __main__",
    "circulant.training": "settings archive models data blocks task neutral onnx kinds capture scoring conversion loop "
                          "trial store",
    "circulant.sim": "document refusal figures metrics arith guard child files settings public shape artifact passes "
                     "kinds real vectors golden configuration registers error quantize design chips exercise cosim",
    "circulant.hw": "emit ctext stream reload arith array unit components plan kinds c beats planner plan_cache ports "
                    "bus top resources foreseen design chips cost_table reload_words faults",
    "circulant.boards": "yosys_json absorb device levels tools budget estimate link pll board synthesis placement "
                        "floorplan flow asic build simulated host program projects carrier",
}
"""The subfolders and files of a folder: each imports only from those before it."""


C_OF_A_KIND = re.compile(r"circulant\.hw\.kinds\.(\w+\.)?\w+_c(\.|$)")
"""Modules that write C beside the unit of a kind: they obey the rules of `circulant.hw.ctext`, without amaranth."""


def owner(module: str) -> str:
    """The package with rules that a module of ours obeys; an empty string for modules of others."""
    if C_OF_A_KIND.match(module):
        return "circulant.hw.ctext"
    return max((package for package in OURS if f"{module}.".startswith(f"{package}.")), key=len, default="")


def module_name(path: Path) -> str:
    """The name under which a source file is imported."""
    package, folder = next((package, folder) for package, folder in FOLDERS.items() if path.is_relative_to(folder))
    below = path.relative_to(folder).with_suffix("").parts
    return ".".join((package, *(part for part in below if part != "__init__")))


SOURCES = {path: owner(module_name(path)) for path in python_files(*FOLDERS.values())}


def only_wrong(found: Mapping[Any, list[str]]) -> dict[str, list[str]]:
    """What was found wrong, by file; a file is a path below the root or the name of a module."""
    return {str(name.relative_to(ROOT)) if isinstance(name, Path) else name: wrong
            for name, wrong in found.items() if wrong}


def imported(tree: ast.AST, package: str) -> Iterator[tuple[int, str]]:
    """Line and full name of everything that a file of ``package`` imports, wherever in the file it does so."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")
                base = ".".join([*parents[:len(parents) - node.level + 1], *filter(None, [base])])
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in (
                "import_module", "__import__") and node.args and isinstance(node.args[0], ast.Constant):
            yield node.lineno, str(node.args[0].value)


def violations(source: ast.Module, package: str) -> list[str]:
    """Imports of a file of ``package`` that it must not have."""
    found = []
    for line, module in imported(source, package):
        ours, root = owner(module), module.partition(".")[0]
        if ours:
            if ours not in OURS[package]:
                found.append(f"line {line}: {package} must not import {ours}")
        elif root not in THEIRS[package] and root not in sys.stdlib_module_names:
            found.append(f"line {line}: {package} must not import {root}")
    return found


def test_every_package_has_its_folder_and_its_rules():
    assert set(OURS) == set(THEIRS)
    for package, folder in FOLDERS.items():
        assert (folder / "__init__.py").is_file(), f"{package} must be a package"
        assert package == "circulant" or (FOLDERS["circulant"] / folder.name).resolve() == folder
    for package in OURS:
        assert package in SOURCES.values()


def room(module: str, package: str) -> str:
    """The subfolder or file of a package that a module belongs to; an empty string for the package itself."""
    below = module.removeprefix(package).lstrip(".")
    name = below.partition(".")[0]
    return "" if package == "circulant" and f"circulant.{name}" in FOLDERS else name


def backward(source: ast.Module, module: str, package: str) -> list[str]:
    """Imports of a module from its own package that stand behind it in the order."""
    order, here, found = ORDER[package].split(), room(module, package), []
    for line, name in imported(source, module.rpartition(".")[0]):
        there = room(name, package) if f"{name}.".startswith(f"{package}.") else ""
        if there in order and order.index(there) > order.index(here):
            found.append(f"line {line}: {here} must not import {there}, which stands behind it")
    return found


@pytest.mark.parametrize("package", FOLDERS)
def test_the_order_names_every_subfolder_and_file(package):
    folder = FOLDERS[package]
    names = {path.stem for path in folder.iterdir() if not path.is_symlink() and path.name != "__init__.py"
             and (path.suffix == ".py" or (path / "__init__.py").is_file())}
    assert set(ORDER[package].split()) == names


def test_imports_between_subfolders_run_one_way():
    found = {}
    for path in SOURCES:
        module = module_name(path)
        package = next(package for package in reversed(FOLDERS) if f"{module}.".startswith(f"{package}."))
        if room(module, package):
            found[module] = backward(tree(path), module, package)
    assert len(found) > 250
    assert only_wrong(found) == {}


def test_the_order_sees_an_import_that_runs_back():
    def seen(source: str, module: str) -> list[str]:
        return backward(ast.parse(source), module, "circulant.hw")

    assert seen("from circulant.hw.kinds.conv.conv import ConvLayer", "circulant.hw.array.engine") == [
        "line 1: array must not import kinds, which stands behind it"]
    assert seen("from circulant.hw import design", "circulant.hw.plan.step_cost")
    assert not seen("from circulant.hw.arith.fft import FftShape", "circulant.hw.array.engine")


def test_imports_follow_the_picture():
    assert len(SOURCES) > 300
    assert only_wrong({path: violations(tree(path), package) for path, package in SOURCES.items()}) == {}


@pytest.mark.parametrize(("package", "source", "culprit"), [
    ("circulant.sim", "import torch", "torch"),
    ("circulant.sim", "from circulant.training import compress", "circulant.training"),
    ("circulant.sim", "from circulant import training", "circulant.training"),
    ("circulant.sim", "def f():\n    import matplotlib.pyplot as plt", "matplotlib"),
    ("circulant.sim", "from circulant.sim import cosim", "circulant.sim.cosim"),
    ("circulant.sim", "from .cosim import verify", "circulant.sim.cosim"),
    ("circulant.sim", "from circulant import Network", "circulant"),
    ("circulant.sim.cosim", "from amaranth.hdl import Module", "amaranth"),
    ("circulant.sim.cosim", "from circulant.hw.design import Design", "circulant.hw"),
    ("circulant.hw", "import circulant.training.data", "circulant.training.data"),
    ("circulant.training.data", "import torch", "torch"),
    ("circulant.training.settings", "import torch", "torch"),
    ("circulant.training.settings", "from circulant.training.models.models import MODELS", "circulant.training"),
    ("circulant.training.data", "from circulant.training.models.models import build", "circulant.training"),
    ("circulant.hw", "try:\n    import torch.nn\nexcept ImportError:\n    pass", "torch"),
    ("circulant.hw", "import importlib\nimportlib.import_module('torch')", "torch"),
    ("circulant.hw", "from ..training import export", "circulant.training"),
    ("circulant.training", "from circulant import hw", "circulant.hw"),
    ("circulant.training", "from circulant.boards.device import fits", "circulant.boards"),
    ("circulant.training", "import amaranth", "amaranth"),
    ("circulant.boards", "from circulant.training import compress", "circulant.training"),
    ("circulant", "import torch", "torch"),
    ("circulant", "from amaranth import Module", "amaranth"),
    ("circulant", "import cocotb", "cocotb"),
])
def test_the_check_sees_a_forbidden_import(package, source, culprit):
    found = violations(ast.parse(source), package)
    assert len(found) == 1
    assert found[0].endswith(f"{package} must not import {culprit}")


@pytest.mark.parametrize(("package", "source"), [
    ("circulant.sim", "import math, numpy as np\nfrom scipy import special\nfrom circulant.sim import fixed"),
    ("circulant.sim", "from . import fft\nfrom .fixed import Format"),
    ("circulant.sim.cosim", "import cocotb\nfrom circulant.sim.artifact import read_json"),
    ("circulant.hw", "from amaranth.lib import stream\nfrom circulant.sim.arith.fixed import Format"),
    ("circulant.training", "from torch import nn\nfrom circulant.sim import reference"),
    ("circulant.boards", "from circulant.hw import generate\nfrom circulant.sim.refusal import Refusal"),
    ("circulant", "from circulant import training, hw, boards\nfrom circulant.sim.cosim import verify"),
])
def test_the_check_lets_the_picture_pass(package, source):
    assert violations(ast.parse(source), package) == []


def mirrored(test: Path) -> Path:
    """The source that a test file is about: tests/sim/arith/test_fft.py is about sim/arith/fft.py."""
    name = test.name.removeprefix("test_").replace("init.py", "__init__.py")
    return ROOT / test.parent.relative_to(ROOT / "tests") / name


WITHOUT_A_SOURCE = {
    "tests/circulant/test_readme.py",  # What a user reads first.
    "tests/training/test_known_faults.py",  # What is wrong elsewhere.
    "tests/circulant/test_api.py",     # What every public function refuses.
    "tests/hw/emit/test_lint.py",  # What Verilator says of a design.
    "tests/training/loop/test_trainer_direct.py",  # Trainings inside the set, from a dense model or without one.
    "tests/training/loop/test_trainer_search.py",  # Trainings whose block sizes are learned.
    "tests/circulant/sweep/test_own_model.py",  # A sweep over a network of a user's own.
    "tests/benchmarks/test_properties.py",  # Networks and files that hypothesis draws.
    "tests/sim/cosim/test_foreign_driver.py",  # A driver of streams that is not ours.
    "tests/sim/kinds/test_images.py",  # Networks over images, of several kinds.
    "tests/sim/kinds/test_sample_kind.py",  # A kind that a test adds.
    "tests/hw/kinds/test_latency.py",  # The latencies of all units over images.
    "tests/hw/c/test_splits.py",  # Whole test splits through the C.
    "tests/hw/test_stream_proofs.py",  # Properties that all units with streams have in common.
    "tests/hw/test_bidirectional_proofs.py",  # The same of units for both directions, which are several files.
    "tests/hw/test_circuit.py",   # The simulation in which these tests run, beside Amaranth's.
    "tests/hw/test_cnn.py",       # Random networks over images.
    "tests/hw/test_protection.py",  # Designs whose memories have check bits, of all kinds.
    "tests/hw/test_random.py",    # Random layers through all units.
}

MIRRORS = [path for path in sorted((ROOT / "tests").glob("*/**/test_*.py"))
           if str(path.relative_to(ROOT)) not in WITHOUT_A_SOURCE]


def test_a_test_file_mirrors_a_source():
    assert len(MIRRORS) > 200
    strays = [str(test.relative_to(ROOT)) for test in MIRRORS if not mirrored(test).is_file()]
    assert strays == [], "each must be named after the module that it tests"


def test_the_mirror_sees_a_test_without_a_source():
    assert not mirrored(ROOT / "tests/sim/test_no_such_module.py").is_file()
    assert mirrored(ROOT / "tests/circulant/test_init.py") == ROOT / "circulant/__init__.py"


@pytest.mark.parametrize("package", FOLDERS)
def test_every_folder_is_tested(package):
    tests = ROOT / "tests" / FOLDERS[package].relative_to(ROOT)
    assert any(path.parent == tests for path in MIRRORS)


MOST_ANY = 60
"""Occurrences of `typing.Any` in hw/ at the most, imports counted."""


def any_count(source: ast.Module) -> int:
    """How often a file says ``Any``, in its imports too."""
    return sum(getattr(node, "id", getattr(node, "name", None)) == "Any" for node in ast.walk(source)
               if isinstance(node, ast.Name | ast.alias))


def test_hardware_says_what_it_takes():
    counts = {str(path.relative_to(ROOT)): any_count(tree(path)) for path in SOURCES
              if path.is_relative_to(ROOT / "hw")}
    assert sum(counts.values()) <= MOST_ANY, {path: count for path, count in counts.items() if count}


def test_each_any_is_counted():
    source = "from typing import Any, Self\ndef f(x: Any) -> dict[str, Any]: ...\nAnything = 1  # Any"
    assert any_count(ast.parse(source)) == 3


LINES = {
    "circulant": 10_828,
    "training": 15_930,
    "sim": 18_083,
    "hw": 27_950,
    "boards": 6_515,
    "benchmarks": 7_676,
    "examples": 1_200,
    "docs": 200,
    "tests": 56_958,
}
"""Lines of Python of each folder at the most; a change that needs more says why in its commit."""

WORDS = {"docs": 61_000, "readme": 900, "changelog": 1_060}
"""Words of Markdown at the most; the README is a first screen, and `git log` is the longer changelog."""


def beyond(budget: Mapping[str, int], found: Mapping[str, int]) -> list[str]:
    """What is larger than its budget, and what has none, in sentences."""
    return [f"{name} has {count:,}, its budget is {budget.get(name, 0):,}: take out what serves nobody, or raise the "
            "budget and say why in the commit" for name, count in found.items() if count > budget.get(name, 0)]


def test_the_size_is_within_its_budget():
    found = size.measure()
    assert beyond(LINES, found["lines"] | {"tests": found["tests"]}) == []
    assert beyond(WORDS, found["words"]) == []


def test_what_is_beyond_its_budget_is_named():
    assert beyond({"sim": 2, "hw": 21_230}, {"sim": 1_002, "hw": 21_230, "new": 1}) == [
        f"{what}: take out what serves nobody, or raise the budget and say why in the commit"
        for what in ("sim has 1,002, its budget is 2", "new has 1, its budget is 0")]


UNTYPED = re.compile(r"dict\[str, Any\]|\bJson\b|\bFound\b")

MOST_UNTYPED = 79
"""Lines that say `UNTYPED` at the most: dictionaries with string keys, whose members no type checker knows."""


def untyped(source: str) -> int:
    """How many lines say a dictionary of anything, or a name for one."""
    return sum(UNTYPED.search(line) is not None for line in source.splitlines())


def test_records_are_typed():
    sources = [*SOURCES, *python_files("benchmarks")]
    counts = {str(path.relative_to(ROOT)): untyped(path.read_text("utf-8")) for path in sources}
    assert sum(counts.values()) <= MOST_UNTYPED, {path: count for path, count in counts.items() if count}


def test_each_untyped_line_is_counted():
    assert untyped("def f(x: dict[str, Any]) -> Json:\n    found: Found = {}\nFounder = JsonText = dict[str, int]") == 2


LISTED = {"Progress", "Sequential", "add_row", "call", "frame", "given", "ignore_patterns", "of_torch", "python_files",
          "reshape", "save_for_backward", "set_memory", "start", "tensors", "torchrun", "transpose"}
"""Calls whose positional arguments are a list of like things: of libraries, a command line, shapes, samples."""


def test_a_call_has_at_most_five_positional_arguments():
    sources = [*SOURCES, *python_files("benchmarks", "examples", "tests")]
    found = [f"{path.relative_to(ROOT)}:{call.lineno}: {ast.unparse(call.func)}"
             for path in sources for call in ast.walk(tree(path))
             if isinstance(call, ast.Call) and sum(not isinstance(each, ast.Starred) for each in call.args) > 5
             and (call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id",
                                                                                      "")) not in LISTED]
    assert len(sources) > 300
    assert not found
