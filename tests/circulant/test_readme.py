"""What a user reads first is true: the README's program runs, its links lead somewhere, its figures are measured."""
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks import digits
from benchmarks.commands import main

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


SCORE = "print((network.run(data.test_x).real.argmax(-1) == data.test_y).mean())"


def program(path="README.md"):
    return re.findall(r"```python\n(.*?)```", (ROOT / path).read_text("utf-8"), re.S)[0]


def test_the_first_screen_is_short():
    assert len(program().partition("\n\n")[2].strip().splitlines()) == 6
    assert len(README.split()) <= 900


def test_the_program_runs_and_verifies(tmp_path):
    """After the model of the tutorial that the README names."""
    assert "](docs/tutorials/own-model.md)" in README
    whole = "\n".join((program("docs/tutorials/own-model.md"), program(), SCORE))
    assert whole.count("epochs=15") == 2
    quick = whole.replace("epochs=15", "epochs=8")
    done = subprocess.run([sys.executable, "-W", "error", "-c", quick], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = re.fullmatch(r"3600 words, 0 mismatches, (\d+) cycles\n(0\.\d+|1\.0)\n", done.stdout)
    assert found, done.stdout
    assert float(found[2]) > 0.8, "a few epochs already read most digits"
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


def test_the_stacks_are_those_of_the_record():
    kept = json.loads((ROOT / "docs/measured/stacks.json").read_text("utf-8"))["stacks"]
    cycles = {(f"{one['layers']} × {one['cell'].upper()} {one['hidden']}", one["block"]):
              (one["published"]["V80"], one["latency_spaced"]) for one in kept}
    rows = re.findall(r"^\| (\d × \w+ \d+) \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \|$", README, re.M)
    assert len(rows) == 7
    for name, *figures in rows:
        published, eight, sixteen = (int(figure.replace(",", "")) for figure in figures)
        assert (cycles[name, 8], cycles[name, 16]) == ((published, eight), (published, sixteen)), name


def test_the_table_has_the_rows_that_the_benchmark_measures():
    report = {"accuracy": {"dense": 1.0, "circulant": 1.0, "quantized": 1.0},
              "compression": {"weights_dense": 8, "weights_circulant": 1, "ratio": 8.0},
              "hardware": {"multipliers": 1, "cycles_per_step": 1.0, "floor_cycles": 1, "cycles_per_sequence": 1.0,
                           "floor_cycles_sequence": 1, "memory_bits": 1},
              "verification": {"words": 1, "sequences": 1, "mismatches": 0}}
    section = (ROOT / "docs/results.md").read_text("utf-8").partition("\n## From data to Verilog\n")[2]
    rows = re.findall(r"^\| ([^|]*) \| ([^|]*) \|$", section.partition("\n## ")[0], re.M)
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
