import json
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from rich.console import Console

from circulant.experiment import Board, load
from circulant.hw.plan import families
from circulant.hw.plan.families import FAMILIES
from circulant.report.page import page, settings
from circulant.report.plots import draw
from circulant.report.report import collect, compression, hardware, write
from circulant.report.summary import rows, summary, title
from circulant.run.run_folder import Run
from circulant.sim import artifact
from circulant.sim.golden.network import Network
from circulant.sim.refusal import Refusal
from tests.circulant.conftest import LAYERS, make_generated, make_quantized, make_simulated

PNG = b"\x89PNG\r\n\x1a\n"


def test_report_json_holds_every_figure(finished):
    write(finished)
    report = artifact.read_json(finished.path("report.json"), "circulant-report", 1)
    assert report["accuracy"] == {"dense": 0.98, "projected": 0.9, "circulant": 0.97, "quantized": 0.96}
    assert {name: report["compression"][name] for name in ("weights_dense", "weights_circulant", "ratio")} == {
        "weights_dense": 288, "weights_circulant": 72, "ratio": 4.0}
    assert {name: report["verification"][name] for name in ("sequences", "words", "mismatches", "simulator")} == {
        "sequences": 7, "words": 21, "mismatches": 0, "simulator": "Verilator 5.48.0"}
    assert report["hardware"] == {
        "multipliers": 20, "memory_bits": 4000, "multiplications_per_step": 130, "cycles_per_step": 10.0,
        "floor_cycles": 7, "cycles_per_sequence": 52.0, "steps_per_sequence": 5.0,
        "floor_cycles_sequence": 34, "latency_spaced": 40.0, "latency_contiguous": 55.0,
        "latency_spaced_predicted": None, "latency_contiguous_predicted": None, "estimates": [],
        "layers": LAYERS}
    assert report["experiment"] == json.loads(json.dumps(finished.experiment.tables()))
    assert report["hashes"]["network"] == Network.load(finished.folder).hash
    gates = next(each for each in report["ranges"] if each["name"] == "gru.gates.output")
    assert gates["format"] == {"width": 16, "frac": Network.load(finished.folder).layers[0].pre_format.frac}
    assert gates["count"] == 7 * 5 * 16 == sum(gates["bits"])
    assert set(report["hashes"]["files"]) == {"hardware/manifest.json", "hardware/top.v", "hardware/gru_weights.hex"}
    assert {"python", "circulant", "numpy", "simulator"} <= set(report["versions"])
    assert report["seconds"] == {"train": 1.0, "quantize": 1.0, "generate": 1.0, "simulate": 1.0}


def test_pictures_and_page(finished):
    write(finished)
    for name in ("training", "accuracy", "cycles", "schedule", "ranges"):
        assert finished.path(f"{name}.png").read_bytes().startswith(PNG)
    text = finished.path("report.html").read_text()
    assert "21 output words of 7 sequences equal the golden model, bit for bit" in text

    class Check(HTMLParser):
        images, addresses, links = 0, (), ()

        def handle_starttag(self, tag, attributes):
            given = dict(attributes)
            self.images += tag == "img" and given["src"].startswith("data:image/png;base64,")
            self.addresses += tuple(value for name, value in attributes if name == "src" or (
                name == "href" and tag != "a"))
            self.links += (given["href"],) if tag == "a" else ()

    assert "<td><code>gru.gates.output</code></td><td>16, " in text
    assert ('<td class="number">12</td><td class="number">8 (1.50×)</td><td class="long">latency: each step waits for '
            "the state of the step before</td>") in text
    assert ('<td class="number">24</td><td class="number">24 (1.00×)</td><td class="long">multipliers: the array works '
            "in every cycle</td>") in text

    check = Check()
    check.feed(text)
    assert check.images == 5
    assert all(address.startswith("data:") for address in check.addresses), "the page must need no other file"
    assert "report.json" in check.links and "hardware/top.v" in check.links
    assert all(finished.path(link).is_file() for link in check.links)


def test_approximate_products_are_named(finished):
    assert dict(rows(collect(finished)))["multipliers"] == "20"
    make_quantized(finished, multiplier="truncated:5")
    make_generated(finished)
    make_simulated(finished)
    assert dict(rows(collect(finished)))["multipliers"] == (
        "20; products of spectra are approximate (truncated:5)")


def test_a_run_is_called_by_its_experiment_and_by_its_folder_where_that_has_another_name(finished):
    found = collect(finished)
    assert found["folder"] == finished.folder.name and summary(found).title == title(found)
    assert title(found | {"folder": found["name"]}) == found["name"]
    assert title(found | {"folder": "other"}) == f"{found['name']} in other"
    write(finished)
    assert f"<h1>{title(found)}</h1>" in finished.path("report.html").read_text()


def test_speed_is_stated_at_a_clock_that_is_assumed(finished):
    found = collect(finished, 200)
    assert found["clock"] == {"mhz": 200, "steps_per_second": 20e6, "sequences_per_second": 200e6 / 52,
                              "latency_spaced_us": 0.2, "latency_contiguous_us": 0.275,
                              "cycles_per_step_us": 0.05, "source": "assumed"}
    assert dict(rows(found))["at 200 MHz (assumed)"] == (
        "3,846,154 sequences/s of 5 steps, 0.05 µs a step, latency 0.2 µs spaced, 0.275 µs contiguous")
    assert dict(rows(collect(finished)))["at 100 MHz (assumed)"].startswith("1,923,077 sequences/s")


def test_the_clock_of_a_device_is_an_estimate_and_one_that_is_asked_for_goes_before_it(finished):
    run = Run(finished.folder, replace(finished.experiment, board=Board("LFE5U-25F")))
    for mhz, clock, source in ((0, 109, "estimated ± 30%"), (80, 80, "asked for")):
        run = replace(run, experiment=replace(run.experiment, hardware=replace(
            run.experiment.hardware, clock_mhz=mhz)))
        make_generated(run)
        make_simulated(run)
        assert f"at {clock} MHz ({source})" in dict(rows(collect(run)))


@pytest.mark.parametrize("mhz", [0, -1.0, float("nan"), float("inf")])
def test_a_clock_is_above_zero(finished, mhz):
    with pytest.raises(Refusal, match=r"^--mhz must be a clock in MHz above 0, not .*; give the clock"):
        collect(finished, mhz)


def test_without_a_device_the_smallest_that_holds_the_design_is_named(finished):
    found = collect(finished)
    assert "device" not in found["hardware"] and found["smallest"]["name"] == "LFE5U-12F"
    assert found["smallest"]["resources"]["dsps"] == {"used": 26, "held": 28, "share": 26 / 28}
    write(finished)
    text = finished.path("report.html").read_text()
    assert "LFE5U-12F (ECP5), the smallest known device that holds the design; board.device is not set" in text
    assert "92.9% (26 of 28)" in text and 'style="width: 92.9%"' in text


def test_confusion_and_error_have_their_place(finished):
    record = json.loads(finished.path("quantization.json").read_text())
    figures = collect(finished)
    shown = page(figures | {"outcome": {"names": ["no", "<yes>"], "confusion": [[3, 1], [0, 4]]}},
                 dict.fromkeys(("training", "accuracy", "cycles", "schedule", "ranges"), b""))
    assert "<th>&lt;yes&gt;</th>" in shown and ">given by the quantized network</th>" in shown
    assert '--part: 0.750; --mark: var(--right)">3</td>' in shown and '--part: 0.550; --mark: var(--wrong)">1<' in shown
    assert record.get("outcome", {}) == {} == figures["outcome"]
    numbers = {"target": [0.0, 1.0], "output": [0.1, 0.8], "rmse": 0.158, "worst": 0.2}
    assert draw(figures | {"outcome": numbers}, [])["error"].startswith(PNG)
    assert dict(rows(figures | {"outcome": numbers}))["error, quantized"] == "0.158 RMS, 0.2 at most"


def test_keys_that_are_not_the_defaults_come_first(finished):
    found = {(each.table, each.key): each for each in settings(collect(finished)["experiment"])}
    assert found["model", "hidden"] == ("model", "hidden", "8", "64", True)
    assert [key for key, each in found.items() if each.changed] == [("model", "hidden"), ("hardware", "objective")]
    assert found["data", "name"].value == "digits" and found["model", "peephole"].value == "false"


def test_the_page_shows_a_mismatch(finished):
    make_simulated(finished, mismatches=2)
    write(finished)
    assert "2 of 21 output words differ from the golden model" in finished.path("report.html").read_text()


def test_compression_counts_whole_blocks_but_not_in_what_the_dense_model_has():
    found = compression({"a": {"groups": 3, "rows": 5, "columns": 6, "block_size": 4},
                         "b": {"groups": 1, "rows": 7, "columns": 9, "block_size": 1}})
    assert (found["weights_dense"], found["weights_circulant"], found["ratio"]) == (90, 3 * 16, 90 / 48)
    assert set(found["matrices"]) == {"a", "b"}


def test_without_any_compressed_matrix():
    assert compression({"b": {"groups": 1, "rows": 7, "columns": 9, "block_size": 1}})["ratio"] == 1.0


def test_a_device_gives_shares(finished):
    run = Run(finished.folder, replace(finished.experiment, board=Board("LFE5U-25F")))
    make_generated(run)
    make_simulated(run)
    found = collect(run)["hardware"]["device"]
    assert (found["name"], found["series"], found["doubts"]) == ("LFE5U-25F", "ECP5", [])
    resources = found["resources"]
    assert resources["dsps"] == {"used": 26, "held": 28, "share": 26 / 28}
    assert resources["block_rams"] == {"used": 4, "held": 56, "share": 4 / 56}
    assert resources["luts"]["error"] == FAMILIES["ecp5"].errors[0] and resources["luts"]["held"] == 24288
    shown = dict(rows(collect(run)))["share of LFE5U-25F"]
    assert shown.startswith("92.9% of the DSP blocks, 7.1% of the block RAMs, ")
    assert shown.endswith(f"% of the flip-flops (± {FAMILIES['ecp5'].errors[1]:.0%})")


def test_what_may_not_fit_is_a_warning_of_the_report(finished, monkeypatch):
    monkeypatch.setitem(families.FAMILIES, "ecp5", replace(FAMILIES["ecp5"], luts={"block": 120.0}, errors=(0.1, 0.1)))
    run = Run(finished.folder, replace(finished.experiment, board=Board("LFE5U-25F")))
    make_generated(run)
    make_simulated(run)
    assert dict(rows(collect(run)))["warning"].startswith("LFE5U-25F may be too small: about 24,1")


def test_a_design_of_which_nothing_was_counted_is_to_be_generated_again(finished):
    run = Run(finished.folder, replace(finished.experiment, board=Board("LFE5U-25F")))
    record = make_generated(run)
    del record["hardware"]["resources"]
    with pytest.raises(Refusal, match=r"generation\.json must say what the design is made of, .*circulant generate"):
        hardware(run, record["hardware"], dict.fromkeys(
            ("cycles_per_step", "cycles_per_sequence", "latency_spaced", "latency_contiguous", "steps_per_sequence"),
            1.0))


def test_a_design_larger_than_its_device_is_refused(finished):
    run = Run(finished.folder, replace(finished.experiment, board=Board("iCE40UP5K")))
    make_generated(run)
    make_simulated(run)
    with pytest.raises(Refusal, match=r"^A design must fit iCE40UP5K, but it needs 26 of 8 DSP blocks \(18 too many\) "
                                      r"and a place for 2 memories"):
        write(run)
    assert not run.path("report.json").exists()


def test_an_unfinished_run_has_no_report(finished):
    finished.path("verification.json").unlink()
    with pytest.raises(Refusal, match=r"verification\.json is missing; run `circulant simulate "):
        write(finished)
    assert not [path for path in finished.folder.iterdir() if path.name.startswith("report")]


def test_the_summary_says_what_matters(finished):
    console = Console(width=100)
    with console.capture() as captured:
        console.print(summary(collect(finished)))
    said = captured.get()
    for words in ("98.00%", "96.00%", "288 → 72 (4.0× fewer)", "10 (floor 7, 1.43×)", "52 (floor 34)",
                  "40 cycles into an idle circuit", "55 cycles in a closed loop",
                  "7 sequences, 21 words, 0 mismatches (Verilator 5.48.0)"):
        assert words in said, words


def test_a_report_leaves_the_experiment_as_it_is(finished):
    write(finished)
    assert load(finished.folder) == finished.experiment
