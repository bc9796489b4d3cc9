"""The floor of a design is ⌈multiplications / multipliers⌉, and is computed here alone."""
import ast

import pytest

from benchmarks.size import ROOT
from circulant.sim.figures import Figures, floor


@pytest.mark.parametrize(("multiplications", "multipliers", "cycles"), [
    (100, 10, 10), (101, 10, 11), (0, 10, 0), (7, 0, 7), (2.5, 1, 3), (2 ** 60 + 1, 2, 2 ** 59 + 1)])
def test_a_floor(multiplications, multipliers, cycles):
    assert floor(multiplications, multipliers) == cycles


def test_the_figures_of_sequences_and_of_vectors():
    steps = Figures.of({"multipliers": 10, "memory_bits": 1, "multiplications": {"per_step": 95, "per_sequence": 6}})
    assert (steps.multiplications, steps.floor, steps.floor_of(2.5)) == (95, 10, 25)
    layers = [{"cycles": 12.5, "per": "step"}, {"cycles": 40, "per": "sequence"}]
    made = Figures(3, 5, 7, memory_bits=9, cycles=12.5, latency_spaced=21, estimates=("cycles",))
    assert Figures.of(made.as_json() | {"layers": layers}) == made
    assert Figures.of(made.as_json() | {"layers": layers[1:]}).cycles == 40, "a vector has no steps"
    vectors = Figures(10, 0, 31)
    assert (vectors.multiplications, vectors.floor, vectors.floor_of(1)) == (31, 4, 4)


def floors(source: str) -> list[int]:
    """Lines that divide by multipliers and round up."""
    def divides(node: ast.AST) -> bool:
        return isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv | ast.Div) and (
            "multipliers" in ast.unparse(node.right))

    nodes = list(ast.walk(ast.parse(source)))
    rounded = [node.args for node in nodes if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("ceil")]
    rounded += [[node.operand] for node in nodes if isinstance(node, ast.UnaryOp)]
    return sorted(each.lineno for args in rounded for each in args if divides(each))


def test_the_floor_is_computed_in_one_place():
    assert floors("a = -(-b // c.multipliers)\nd = math.ceil(e / f['multipliers'])\ng = -(-b // h)") == [1, 2]
    sources = [path for folder in ("circulant", "training", "sim", "hw", "boards", "benchmarks")
               for path in sorted((ROOT / folder).rglob("*.py"))]
    assert len(sources) > 300
    found = {str(path.relative_to(ROOT)): lines for path in sources if (lines := floors(path.read_text("utf-8")))}
    assert list(found) == ["sim/figures.py"]
