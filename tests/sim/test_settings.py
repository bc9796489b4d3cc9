import subprocess
import sys
from dataclasses import FrozenInstanceError, dataclass

import pytest

from circulant.sim.refusal import Refusal
from circulant.sim.settings import Table, choices, key, keys, read
from tests.refused import refused

SIZES = "a power of two from 1 to 64, or a table from matrix name to such a number"


@dataclass(frozen=True)
class Sample(Table):
    count: int = key(4, "how many", low=2, high=18)
    rate: float = key(0.5, "how fast", low=0.0)
    kind: str = key("gru", "which", choices=("gru", "lstm"))
    size: int | dict[str, int] = key(8, "how large", low=1, high=64, power_of_two=True)
    loud: bool = key(False, "whether")
    bits: int = key(0, "how wide", low=4, high=26, zero="count + 1")
    phones: int = key(39, "how many", choices=(39, 48))
    names: tuple[str, ...] = key((), "which")
    widths: tuple[int, ...] = key((), "how wide each", low=1, high=9)


def test_defaults_are_legal():
    assert Sample() == Sample(4, rate=0.5, kind="gru", size=8, loud=False, bits=0, phones=39, names=(), widths=())


def test_tables_are_frozen():
    with pytest.raises(FrozenInstanceError):
        Sample().count = 5


@pytest.mark.parametrize(("given", "sentence"), [
    ({"count": 1}, "sample.count must be an integer from 2 to 18, not 1"),
    ({"count": 19}, "sample.count must be an integer from 2 to 18, not 19"),
    ({"count": True}, "sample.count must be an integer from 2 to 18, not True"),
    ({"count": 4.0}, "sample.count must be an integer from 2 to 18, not 4.0"),
    ({"count": "4"}, "sample.count must be an integer from 2 to 18, not '4'"),
    ({"rate": -1}, "sample.rate must be a number of at least 0.0, not -1"),
    ({"rate": float("nan")}, "sample.rate must be a number of at least 0.0, not nan"),
    ({"rate": float("inf")}, "sample.rate must be a number of at least 0.0, not inf"),
    ({"rate": 10**400}, "sample.rate must be a number of at least 0.0, not an integer of 1,329 bits"),
    ({"count": 10**5000}, "sample.count must be an integer from 2 to 18, not an integer of 16,610 bits"),
    ({"phones": 40}, "sample.phones must be one of 39, 48, not 40"),
    ({"phones": "48"}, "sample.phones must be one of 39, 48, not '48'"),
    ({"kind": "gruu"}, "sample.kind must be one of 'gru', 'lstm', not 'gruu'; did you mean 'gru'?"),
    ({"size": 12}, f"sample.size must be {SIZES}, not 12"),
    ({"size": 0}, f"sample.size must be {SIZES}, not 0"),
    ({"size": {"a": 8, "b": 9}}, f"sample.size must be {SIZES}, not {{'a': 8, 'b': 9}}"),
    ({"size": [8]}, f"sample.size must be {SIZES}, not [8]"),
    ({"bits": 3}, "sample.bits must be an integer from 4 to 26, or 0 for count + 1, not 3"),
    ({"names": [1]}, "sample.names must be a list of strings, not [1]"),
    ({"widths": 3}, "sample.widths must be a list, each an integer from 1 to 9, not 3"),
    ({"widths": [3, 10]}, "sample.widths must be a list, each an integer from 1 to 9, not [3, 10]"),
    ({"widths": [True]}, "sample.widths must be a list, each an integer from 1 to 9, not [True]"),
    ({"loud": 1}, "sample.loud must be true or false, not 1"),
])
def test_illegal_values(given, sentence):
    assert refused(Sample, **given) == sentence


@pytest.mark.parametrize("given", [
    {"count": 2}, {"count": 18}, {"rate": 0.0}, {"kind": "lstm"}, {"size": 1}, {"size": 64}, {"size": {"a": 8, "b": 1}},
    {"size": {}}, {"loud": True}, {"bits": 0}, {"bits": 4}])
def test_legal_values(given):
    name, value = given.popitem()
    assert getattr(Sample(**{name: value}), name) == value


def test_an_integer_is_a_number():
    assert type(Sample(rate=3).rate) is float


def test_all_problems_at_once():
    with pytest.raises(Refusal) as refusal:
        Sample(count=0, kind="x", loud="no")
    assert [problem.split()[0] for problem in refusal.value.problems] == ["sample.count", "sample.kind", "sample.loud"]
    assert str(refusal.value) == "; ".join(refusal.value.problems)


@dataclass(frozen=True)
class PairSettings(Table):
    least: int = key(1, "from", low=0, high=9)
    most: int = key(2, "to", low=0, high=9)

    def contradictions(self):
        return [] if self.least <= self.most else [f"pair.most must be at least {self.least}, not {self.most}"]


def test_values_that_contradict_each_other():
    with pytest.raises(Refusal, match=r"^pair\.most must be at least 3, not 2$"):
        PairSettings(3)
    assert read(PairSettings, {"least": 3}) == (None, ["pair.most must be at least 3, not 2"])
    with pytest.raises(Refusal, match=r"^pair\.least must be an integer from 0 to 9, not 'a'$"):
        PairSettings("a", 2)


def test_choices():
    assert choices(Sample, "kind") == ("gru", "lstm")
    assert choices(Sample, "count") == ()


def test_read_collects_unknown_keys_and_illegal_values():
    made, problems = read(Sample, {"cout": 3, "zzz": 1, "rate": "x"})
    assert made is None
    assert problems == ["[sample] has no key 'cout'; did you mean 'count'?",
                        "[sample] has no key 'zzz'; its keys are count, rate, kind, size, loud, bits, phones, names, "
                            "widths",
                        "sample.rate must be a number of at least 0.0, not 'x'"]


def test_read_refuses_what_is_no_table():
    assert read(Sample, 3) == (None, ["[sample] must be a table of keys, not 3"])


def test_read_makes_a_table():
    assert read(Sample, {"count": 5}) == (Sample(count=5), [])


def test_keys_tell_rule_type_and_default():
    rule, kind, default = keys(Sample)["count"]
    assert (rule.doc, rule.low, rule.high, kind, default) == ("how many", 2, 18, int, 4)


def test_defaults_load_no_validator():
    program = ("import sys; from circulant.experiment import Experiment; Experiment(); "
               "sys.exit('pydantic' in sys.modules and 'an experiment of defaults must load no pydantic, but it does')")
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_table_of_matrices_has_names_as_keys():
    with pytest.raises(Refusal, match=r"^sample\.size must be a power of two"):
        Sample(size={1: 8})
