"""What docs/security.md promises: what is read is data, and nothing of it is executed."""
import ast
import io
import json
import os
import pickle
import re
import zipfile
from functools import cache

import numpy as np
import pytest
import torch

from circulant.report.interactive import Page, interactive
from circulant.sim import artifact
from circulant.sim.golden.network_file import VERSION
from circulant.sim.refusal import Refusal
from circulant.sim.vectors import Vectors
from circulant.training.data.files import load_array, load_npz
from circulant.training.loop.checkpoint import Checkpoint
from circulant.training.store import load_trained
from tests.sources import ROOT, python_files, tree

SOURCES = python_files("circulant", "training", "sim", "hw", "boards", "benchmarks", "examples")


@cache
def calls():
    """All calls of our own sources: the nodes of each path."""
    return {path: [node for node in ast.walk(tree(path)) if isinstance(node, ast.Call)]
            for path in SOURCES}


class Bomb:
    """Makes a folder when it is unpickled."""

    def __init__(self, path):
        self._path = str(path)

    def __reduce__(self):
        return os.mkdir, (self._path,)


def called(node):
    """The full name of what is called, as far as it is written out."""
    names, function = [], node.func
    while isinstance(function, ast.Attribute):
        names, function = [function.attr, *names], function.value
    return ".".join([getattr(function, "id", ""), *names])


def keyword(node, name):
    return next((ast.unparse(each.value) for each in node.keywords if each.arg == name), None)


def test_the_bomb_goes_off(tmp_path):
    pickle.loads(pickle.dumps(Bomb(tmp_path / "struck")))
    assert (tmp_path / "struck").is_dir()


def advises_nothing(refused):
    """A refusal does not say how to load a file with the code in it, as torch and numpy do."""
    said = str(refused.value)
    assert not re.search(r"allow_pickle|weights.only|pickle\.load|pickled data|trust", said), said


@pytest.mark.parametrize("read", [load_trained, lambda path: Checkpoint(path, {}).load()], ids=["model", "checkpoint"])
@pytest.mark.parametrize("legacy", [False, True])
def test_a_pickle_in_a_model_is_refused_and_not_executed(read, legacy, tmp_path):
    path = tmp_path / "model.pt"
    torch.save({"format": Bomb(tmp_path / "struck")}, path, _use_new_zipfile_serialization=not legacy)
    with pytest.raises(Refusal, match="cannot be read") as refused:
        read(path)
    advises_nothing(refused)
    assert not (tmp_path / "struck").exists()


def test_an_array_of_objects_is_refused_and_not_executed(tmp_path):
    """In ``weights.npz`` of a network, in vectors, and in data of one's own."""
    member = io.BytesIO()
    np.save(member, np.array([Bomb(tmp_path / "struck")], dtype=object), allow_pickle=True)
    for name in ("weights.npz", "vectors.npz"):
        with zipfile.ZipFile(tmp_path / name, "w") as file:
            file.writestr("header.npy", member.getvalue())
    (tmp_path / "data.npy").write_bytes(member.getvalue())
    with pytest.raises(Refusal):
        Vectors.load(tmp_path / "vectors.npz")
    with pytest.raises(Refusal):
        artifact.read_npz(tmp_path / "weights.npz", "circulant-weights", VERSION)
    (tmp_path / "data.npz").write_bytes(pickle.dumps([1]))
    for read, name in ((load_array, "data.npy"), (load_array, "data.npz"), (load_npz, "data.npz")):
        with pytest.raises(Refusal) as refused:
            read(tmp_path / name)
        advises_nothing(refused)
    with pytest.raises(Refusal, match="holds Python objects"):
        load_npz(tmp_path / "vectors.npz")
    assert not (tmp_path / "struck").exists()


def test_every_reader_of_torch_and_numpy_refuses_pickles():
    loads = [(path, node) for path, nodes in calls().items() for node in nodes
             if called(node) in ("torch.load", "np.load")]
    assert len(loads) >= 5
    for path, node in loads:
        if called(node) == "torch.load":
            assert keyword(node, "weights_only") == "True", f"{path}, line {node.lineno}"
        assert keyword(node, "allow_pickle") in (None, "False"), f"{path}, line {node.lineno}"


USER_CODE = ROOT / "sim/files/user_code.py"
"""The one file that runs Python which an experiment names; tests/sim/files/test_user_code.py says when."""


def test_nothing_of_ours_unpickles_evaluates_or_connects():
    forbidden = {"pickle", "marshal", "shelve", "dill", "joblib", "yaml", "urllib", "http", "requests", "socket"}
    for path in SOURCES:
        nodes = list(ast.walk(tree(path)))
        modules = {name.name for node in nodes if isinstance(node, ast.Import) for name in node.names}
        modules |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
        assert not {module.partition(".")[0] for module in modules} & forbidden, path
        for node in calls()[path]:
            runs = {"eval", "os.system", "os.popen"} | ({"exec"} if path != USER_CODE else set())
            assert called(node) not in runs, f"{path}, line {node.lineno}"
            assert keyword(node, "shell") in (None, "False"), f"{path}, line {node.lineno}"


def test_a_report_escapes_what_it_shows_and_loads_nothing():
    made = [node for path, nodes in calls().items() for node in nodes if called(node) == "jinja2.Environment"
            and path.is_relative_to(ROOT / "circulant") and path.parent.name != "kit"]  # A kit is no page.
    assert made and all(keyword(node, "autoescape") == "True" for node in made)
    for page in (ROOT / "circulant/templates").glob("*.html"):
        text = re.sub(r"'[^'{}]*' \| safe\b", "", page.read_text("utf-8"))  # Text of the template's own may be.
        assert not re.search(r"https?://|<script[^>]*\ssrc\b", text), page
        if page.name == "explore.html":  # Its pictures answer to a pointer: scripts of ours, and data as JSON.
            text = re.sub(r'<script>|<script type="application/json" id="data">|{{ (plotly|data) \| safe }}', "", text)
        assert not re.search(r"<script|\|\s*safe\b", text), page


def test_data_cannot_end_the_script_that_holds_them():
    evil = "</script><script>alert(1)</script><!--"
    page = interactive(Page("page", "sub", [], [], experiments={"a": evil}))
    held = page.partition('id="data">')[2].partition("</script>")[0]
    assert "<" not in held
    assert json.loads(held)["experiments"] == {"a": evil}
