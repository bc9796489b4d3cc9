"""Whether a mutant is the circuit itself in other words, proved by Yosys for its module by itself.

What the module's instances give is free, and what they take is compared: a proof holds for whatever is around it. The
registers of both have the same values at first; by induction they keep them. A mutant that is the same only for what
this circuit gives its module is not proved here.
"""
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from benchmarks.mutation.mutants import Mutant

__all__ = ["available", "equivalent"]

SECONDS = 10
INSTANCE = re.compile(r"(  \(\* [^\n]*\*\)\n)?^  (\w+) (?:#\([^;]*?\) )?(\w+) \(\n((?:    \.[^\n]*\n)+)  \);\n",
                      re.MULTILINE)
SCRIPT = """\
read_verilog -sv gold.v; prep -top {top}; memory_map; opt_clean; rename {top} gold; design -stash gold
read_verilog -sv gate.v; prep -top {top}; memory_map; opt_clean; rename {top} gate; design -stash gate
design -copy-from gold gold; design -copy-from gate gate
equiv_make gold gate both; hierarchy -top both; opt_clean
equiv_struct both; equiv_simple -undef both; equiv_induct -undef both; equiv_status -assert both
"""


def available() -> bool:
    """Whether Yosys is on the PATH."""
    return shutil.which("yosys") is not None


def equivalent(verilog: str, mutant: Mutant) -> bool:
    """Proof that the module of a mutant does the same; False where there is none."""
    statement = mutant.statement
    start = verilog.rindex(f"module {statement.module} (", 0, statement.start)
    end = verilog.index("endmodule", start) + len("endmodule")
    old = verilog[statement.start:statement.end]
    new = (old.replace(f"({mutant.was})", f"({mutant.now})", 1) if mutant.kind == "enable"
           else old[:old.rindex(mutant.was)] + mutant.now + old[old.rindex(mutant.was) + len(mutant.was):])
    headers = {match[1]: _directions(match[0]) for match in re.finditer(r"^module (\w+).*?\);", verilog,
                                                                        re.MULTILINE | re.DOTALL)}
    gold, gate = (_alone(text, headers) for text in (
        verilog[start:end], verilog[start:statement.start] + new + verilog[statement.end:end]))
    with tempfile.TemporaryDirectory(prefix="circulant-") as temporary:
        folder = Path(temporary)
        (folder / "gold.v").write_text(gold)
        (folder / "gate.v").write_text(gate)
        try:
            done = subprocess.run(["yosys", "-q", "-"], input=SCRIPT.format(top=statement.module), text=True,
                                  cwd=folder, capture_output=True, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return False
    return done.returncode == 0


def _directions(header: str) -> dict[str, tuple[str, str]]:
    """Direction and range of each port."""
    return {name: (way, bits) for way, bits, name in re.findall(
        r"\b(input|output)(?: reg)?\s*(\[[^\]]+\])?\s*(\w+)", header)}


def _alone(module: str, headers: dict[str, dict[str, tuple[str, str]]]) -> str:
    """A module without its instances: what they give comes through ports, what they take goes out through ports."""
    ports: list[str] = []
    lines: list[str] = []

    def cut(match: re.Match[str]) -> str:
        kind, instance, body = match[2], match[3], match[4]
        known = headers.get(kind)
        if known is None:
            return match[0]
        said = []
        for port, value in re.findall(r"\.(\w+)\(((?:[^()]|\([^()]*\))*)\)", body):
            way, bits = known.get(port, ("input", ""))
            if not value or port in ("clk", "rst"):
                continue
            name = f"cut_{instance}_{port}"
            bits = bits if "WIDTH" not in bits and "ADDRESS" not in bits else "[255:0]"
            ports.append(f"{'input' if way == 'output' else 'output'} {bits} {name}")
            said.append(f"  assign {value} = {name};" if way == "output" else f"  assign {name} = {value};")
        lines.extend(said)
        return ""

    text = INSTANCE.sub(cut, module)
    head, _, rest = text.partition("\n);")
    head = re.sub(r"\s*//[^\n]*", "", head)
    more = "".join(f",\n  {port}" for port in ports)
    return f"{head}{more}\n);{rest.replace('endmodule', chr(10).join(lines) + chr(10) + 'endmodule')}\n"
