"""Memory macros: the model, a table, and what is refused."""
import pytest

from circulant.boards.asic.macros import LARGE, SMALL, model, read_table
from circulant.sim.refusal import Refusal

TABLE = "[ram64]\nwords = 64\nwidth = 16\narea = 5000\naccess = 900\n"


def test_the_model_gives_the_published_macros():
    found = model(0.0, 1.8, 1)
    names = [found(256, 32), found(512, 32)]
    small, large = (found.chosen[name] for name in names)
    assert (small.area, large.area) == (pytest.approx(SMALL), pytest.approx(LARGE))
    assert small.access == pytest.approx(5013) and small.leakage == pytest.approx(911.8)
    assert small.cycle(1, rest=1) == pytest.approx(5013 + 2083)


def test_other_libraries_scale_it():
    found = model(4 * 3.7536, 0.9, 1)
    other = found.chosen[found(256, 32)]
    assert other.area == pytest.approx(4 * SMALL)
    assert other.access == pytest.approx(5013 * 2 / 4)


def test_few_bits_stay_flip_flops():
    assert model(0.0, 1.8)(16, 128) == ""


def test_fixed_contents_become_a_macro_from_a_size_of_their_own():
    found = model(0.0, 1.8, 1_000, None, 10_000)
    assert (found(100, 99, rom=True), found(100, 100, rom=True)) == ("", "rom_100x100")
    assert found(100, 10) == "ram_100x10" and found.chosen["rom_100x100"].rom


def test_a_table_has_the_word(tmp_path):
    file = tmp_path / "macros.toml"
    file.write_text(TABLE)
    found = model(0.0, 1.8, 1, file)
    assert (found(50, 16), found(50, 17), found(65, 16)) == ("ram64", "", "")
    assert found.chosen["ram64"].area == 5000
    assert found(50, 16, rom=True) == ""
    file.write_text(TABLE + "rom = true\n")
    found = model(0.0, 1.8, 1, file)
    assert (found(50, 16), found(50, 16, rom=True)) == ("", "ram64")


@pytest.mark.parametrize(("text", "message"), [
    ("words", "must be a TOML file, but .* is none"),
    (TABLE.replace("900", "-1"), "must have positive numbers for words, width, area and access, but 'ram64' has none "
                                 "for access; add it"),
    ("ram = 3", "but 'ram' has none for words"),
])
def test_another_table_is_refused(tmp_path, text, message):
    (tmp_path / "macros.toml").write_text(text)
    with pytest.raises(Refusal, match=message):
        read_table(tmp_path / "macros.toml")
