"""The folding of TIMIT's phones, as Lee and Hon's table has it."""
import pytest

from circulant.sim.refusal import Refusal
from circulant.training.data.phones import PHONES_39, PHONES_48, PHONES_61, fold, folding

SOUNDS = [("ao", "ao", "aa"), ("aa", "aa", "aa"), ("ax-h", "ax", "ah"), ("ax", "ax", "ah"),
          ("axr", "er", "er"), ("ix", "ix", "ih"),
          ("ux", "uw", "uw"), ("el", "el", "l"), ("em", "m", "m"), ("en", "en", "n"), ("eng", "ng", "ng"),
          ("nx", "n", "n"), ("hv", "hh", "hh"), ("zh", "zh", "sh"), ("dx", "dx", "dx"), ("bcl", "vcl", "sil"),
          ("dcl", "vcl", "sil"), ("gcl", "vcl", "sil"), ("pcl", "cl", "sil"), ("tcl", "cl", "sil"),
          ("kcl", "cl", "sil"), ("h#", "sil", "sil"), ("pau", "sil", "sil"), ("epi", "epi", "sil"), ("q", None, None)]


def test_sizes():
    assert [len(set(phones)) for phones in (PHONES_61, PHONES_48, PHONES_39)] == [61, 48, 39]
    assert set(PHONES_39) < set(PHONES_48)


@pytest.mark.parametrize(("phone", "in_48", "in_39"), SOUNDS)
def test_each_phone(phone, in_48, in_39):
    assert (fold(phone, 61), fold(phone, 48), fold(phone, 39)) == (phone, in_48, in_39)


def test_all_others_stay():
    named = {phone for phone, *_ in SOUNDS}
    assert all(fold(phone, 39) == phone for phone in PHONES_61 if phone not in named)
    assert all(fold(phone, 39) == fold(fold(phone, 48), 39) for phone in PHONES_61 if phone != "q")


@pytest.mark.parametrize("phones", [PHONES_39, PHONES_48, PHONES_61])
def test_classes_that_were_trained_are_scored_as_39(phones):
    classes, names = folding(("<blank>", *phones))
    assert names == ("<blank>", *PHONES_39)
    assert [names[number] if number else None for number in classes[1:]] == [fold(phone, 39) for phone in phones]
    assert classes[0] == 0


def test_a_symbol_that_is_no_phone():
    with pytest.raises(Refusal, match=r"^A symbol that is folded must be a phone of TIMIT, not 'AA'; score as it was "):
        folding(("<blank>", "AA"))
