"""Block sizes as standard cells: the page has the figures that are kept."""
import json
from pathlib import Path


def test_the_page_has_the_kept_figures():
    docs = Path(__file__).parents[2] / "docs"
    page = (docs / "asic.md").read_text()
    for row in json.loads((docs / "measured/blocks.json").read_text())["rows"]:
        shape = f"| {row['block_size']} | {row['multipliers']} × {row['cycles']:g} |"
        lines = [line for line in page.splitlines() if line.startswith(shape)]
        assert any(f" | {row['energy_nj_total']:,.0f} nJ | " in line for line in lines), shape
        assert f" | {row['multiplications']:,.0f} | " in page and row["activity"]["mismatches"] == 0
