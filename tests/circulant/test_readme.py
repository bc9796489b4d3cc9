"""What a user reads first is true: the README's program runs, its links lead somewhere, its figures are measured."""
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks import digits, golden
from benchmarks.commands import main
from circulant.sim.refusal import Refusal

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def program():
    (text,) = re.findall(r"```python\n(.*?)```", README, re.S)
    return text


def test_the_program_is_short():
    assert len(program().strip().splitlines()) <= 25


def test_the_program_runs_and_verifies(tmp_path):
    done = subprocess.run([sys.executable, "-W", "error", "-c", program()], cwd=tmp_path, capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stderr
    found = re.fullmatch(r"accuracy (0\.\d\d|1\.00), 3600 words, 0 mismatches, (\d+) cycles\n", done.stdout)
    assert found, done.stdout
    assert float(found[1]) > 0.8, "a few epochs already read most digits"
    assert {"top.v", "manifest.json"} <= {path.name for path in (tmp_path / "reader").iterdir()}


@pytest.mark.soak
def test_the_example_runs_and_verifies(tmp_path):
    done = subprocess.run([sys.executable, "-W", "error", str(ROOT / "examples/torch_to_verilog.py"), "design", "1"],
                          cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert re.search(r"3,600 output words, 0 mismatches, \d+ cycles per step\n$", done.stdout), done.stdout


def test_there_are_exactly_two_commands():
    commands = [line.split("#")[0].strip() for block in re.findall(r"```sh\n(.*?)```", README, re.S)
                for line in block.splitlines()]
    assert commands == ["make run", "make test"]
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert all(re.search(rf"^{command.removeprefix('make ')}:", makefile, re.M) for command in commands)


def test_the_table_has_the_rows_that_the_benchmark_measures():
    report = {"accuracy": {"dense": 1.0, "circulant": 1.0, "quantized": 1.0},
              "compression": {"weights_dense": 8, "weights_circulant": 1, "ratio": 8.0},
              "hardware": {"multipliers": 1, "cycles_per_step": 1.0, "floor_cycles": 1, "cycles_per_sequence": 1.0,
                           "floor_cycles_sequence": 1, "memory_bits": 1},
              "verification": {"words": 1, "sequences": 1, "mismatches": 0}}
    rows = re.findall(r"^\| ([^|]*) \| ([^|]*) \|$", README.partition("## Measured")[2].partition("\n## ")[0], re.M)
    assert [name for name, _ in rows[1:] if set(name) != {"-"}] == list(digits.table(report, 1.0))
    assert all(value for _, value in rows)


def test_shell_commands_of_the_documents_exist():
    from circulant.cli import cli

    names = {name for path in DOCUMENTS for name in re.findall(r"^circulant (\w+)", path.read_text("utf-8"), re.M)}
    assert names
    assert names <= set(cli.commands)


def test_the_benchmarks_name_themselves():
    done = CliRunner().invoke(main, ["digit"])
    assert done.exit_code == 2
    assert "No such command 'digit'" in done.stderr and "digits" in done.stderr


def test_the_benchmark_of_the_golden_model(monkeypatch):
    monkeypatch.setattr(golden, "SEQUENCES", 40)
    monkeypatch.setattr(golden, "REPEATS", 1)
    figures = golden.measure()
    assert figures["gru64_sequences_per_s"] > 100
    assert figures["gru64_c_sequences_per_s"] > 100
    assert all(value.endswith(" sequences/s") for value in figures["table"].values())
    with pytest.raises(Refusal, match=r"^The benchmark golden has no experiment whose keys could be set, not a=1, b=2; "
                                      r"leave out --set$"):
        golden.measure(("a=1", "b=2"))
