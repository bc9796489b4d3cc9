"""What holds for all tests: threads, the cache of what they compile, and how many only `make soak` runs."""
import gc
import os
import signal
from contextlib import suppress
from pathlib import Path

import hypothesis
import numpy as np
import pytest

signal.signal(signal.SIGINT, signal.default_int_handler)
"""A shell's background job ignores this signal, and so would every program that a test interrupts."""

os.environ["OMP_NUM_THREADS"] = "1"
"""Two workers fill two cores; more threads of torch and of numpy would spin while they wait for each other."""

hypothesis.settings.register_profile("soak", max_examples=1000, deadline=None)

COMPILED = ("c", "objects", "verilator")
"""Stores of the cache whose keys are hashes of all that was compiled, so that they serve later runs as well."""

DEAREST = ("hw/chips/test_folders.py", "test_end_to_end.py", "sim/cosim/test_verification.py", "test_zoo.py",
           "circulant/test_readme.py", "test_lengths.py", "test_docs.py", "training/loop/test_trainer.py",
           "hw/kinds/test_recurrent.py", "circulant/test_project.py", "test_bidirectional.py",
           "hw/test_resources.py", "hw/bus/test_bus_top.py", "circulant/sweep/test_cells.py",
           "test_reload.py", "hw/kinds/test_elementwise.py",
           "hw/kinds/test_linear.py", "test_four_state.py", "circulant/sweep/test_cluster.py", "hw/test_planner.py",
           "training/loop/test_communication.py")
"""Files that take most processor time, which come first: a worker takes whole files, and one would end alone."""

MOST_GARBAGE = 3_000_000
"""New objects before garbage is looked for: some 300 MB. Nearly all that is new while a circuit is elaborated
lives as long as it, and with Python's 700 the search took a fifth of the time of such tests, a third of collection."""

gc.set_threshold(MOST_GARBAGE)

_left_out, _file = pytest.StashKey[int](), pytest.StashKey[Path]()


@pytest.fixture(scope="session", autouse=True)
def cache_of_the_run(tmp_path_factory, pytestconfig):
    """A user's cache folder for all workers of this run; what was compiled is found again by the next one."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "cache"
    folder.mkdir(exist_ok=True)
    for name in COMPILED:
        kept = pytestconfig.rootpath / "build" / "compiled" / name
        kept.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            (folder / name).symlink_to(kept)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CIRCULANT_CACHE", str(folder))
        # A run builds more than a user's cache keeps, so that the next one would find none of it.
        patch.setattr("circulant.sim.cosim.build.KEPT", 80)
        patch.setattr("circulant.hw.c.compiler.KEPT", 400)
        yield folder


@pytest.fixture(autouse=True)
def _own_numbers(request, monkeypatch):
    """Random numbers of a test that do not depend on which tests of its file came before."""
    if hasattr(request.module, "RNG"):
        monkeypatch.setattr(request.module, "RNG", np.random.default_rng(0))


def pytest_configure(config):
    """Few cycles of each circuit are simulated, so the compiler need not optimise; in a soak it does, as for users."""
    if config.getoption("--hypothesis-profile") != "soak":
        os.environ.setdefault("CIRCULANT_OPT_FAST", "-O0")


def pytest_collection_modifyitems(config, items):
    rank = {config.rootpath / "tests" / name: n for n, name in enumerate(DEAREST)}
    items.sort(key=lambda item: rank.get(item.path, len(rank)))


def pytest_collection_finish():
    """No garbage is looked for among the tests and the modules, which live to the end."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Garbage of a file goes before the next one begins, and what is left then, modules and caches, is not looked
    through again: that took a third of a second for each of hundreds of files."""
    stash = item.session.stash
    if stash.get(_file, None) != item.path:
        stash[_file] = item.path
        gc.collect()
        gc.freeze()


def pytest_deselected(items):
    if items:
        stash = items[0].config.stash
        stash[_left_out] = stash.get(_left_out, 0) + sum(item.get_closest_marker("soak") is not None for item in items)


def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["soak"] = session.config.stash.get(_left_out, 0)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Each worker deselects the same tests, and pytest-xdist does not tell."""
    node.config.stash[_left_out] = getattr(node, "workeroutput", {}).get("soak", 0)


def pytest_terminal_summary(terminalreporter, config):
    if count := config.stash.get(_left_out, 0):
        terminalreporter.write_line(f"{count} deselected, which make soak runs")
