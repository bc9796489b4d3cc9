"""The phones of TIMIT, folded from 61 to 48 to train and to 39 to score (Lee and Hon, IEEE ASSP 37(11), 1989)."""
from circulant.sim.refusal import Refusal

__all__ = ["PHONES_39", "PHONES_48", "PHONES_61", "fold", "folding"]

_NAMES = """
aa ae ah ao aw ax ax-h axr ay b bcl ch d dcl dh dx eh el em en eng epi er ey f g gcl h# hh hv ih ix iy jh k kcl l m n ng
nx ow oy p pau pcl q r s sh t tcl th uh uw ux v w y z zh
"""
PHONES_61 = tuple(_NAMES.split())
"""As they stand in the .PHN files."""

TO_48 = {
    "ax-h": "ax", "axr": "er", "em": "m", "eng": "ng", "hv": "hh", "nx": "n", "ux": "uw",
    "bcl": "vcl", "dcl": "vcl", "gcl": "vcl", "kcl": "cl", "pcl": "cl", "tcl": "cl", "h#": "sil", "pau": "sil",
}
TO_39 = {"ao": "aa", "ax": "ah", "el": "l", "en": "n", "ix": "ih", "zh": "sh", "cl": "sil", "vcl": "sil", "epi": "sil"}
DELETED = "q"
"""The glottal stop, which the folded sets do not have."""

PHONES_48 = tuple(sorted({TO_48.get(phone, phone) for phone in PHONES_61 if phone != DELETED}))
PHONES_39 = tuple(sorted({TO_39.get(phone, phone) for phone in PHONES_48}))

_SETS = {39: PHONES_39, 48: PHONES_48, 61: PHONES_61}


def fold(phone: str, size: int) -> str | None:
    """A phone of any of the sets in the set of ``size`` (39, 48 or 61) phones; None where it is deleted."""
    if size == 61:
        return phone
    if phone == DELETED:
        return None
    phone = TO_48.get(phone, phone)
    return TO_39.get(phone, phone) if size == 39 else phone


def folding(symbols: tuple[str, ...], size: int = 39) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """How classes that were trained are scored: a class for each of ``symbols``, 0 for the deleted, and their names.

    ``symbols`` begin with the blank, and so do the names that are returned.

    Raises:
        Refusal: when a symbol is no phone of TIMIT.
    """
    names = (symbols[0], *_SETS[size])
    index = {name: number for number, name in enumerate(names)}
    classes = [0]
    for symbol in symbols[1:]:
        folded = fold(symbol, size)
        if folded is not None and folded not in index:
            raise Refusal(f"A symbol that is folded must be a phone of TIMIT, not {symbol!r}; score as it was trained")
        classes.append(0 if folded is None else index[folded])
    return tuple(classes), names
