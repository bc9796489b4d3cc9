"""What a battery has to give: the mean power of a netlist that is at rest nearly all the time."""
import json
from pathlib import Path

design = json.loads(Path("asic.json").read_text())
report = json.loads(Path("report.json").read_text())
assert design["activity"]["words"] > 0 and design["activity"]["mismatches"] == 0
assert design["fmax_mhz"] >= 5
mean = design["mean_power"]
assert mean["inferences_per_second"] == 10 and mean["busy"] < 0.01
assert mean["clock_stopped_uw"] < mean["clock_running_uw"] < 1000 * design["power_mw"], "rest is no work"
assert design["leakage_uw"] < mean["clock_stopped_uw"], "an inference takes energy"
