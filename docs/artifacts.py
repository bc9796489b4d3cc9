"""The members of the files of a run as tables, made of the rules that their readers check."""
from collections.abc import Iterator, Mapping

from circulant.run.record_rules import rule_of
from circulant.sim.design import MANIFEST
from circulant.sim.files.schema import Kinds, Later, Listing, Mapped, Null, Rule, Table, Where
from circulant.sim.golden.network_file import NETWORK, NODE
from circulant.sim.passes import rules

PARTS: dict[str, Rule] = {"format": rules.FORMAT, "product": rules.PRODUCT, "window": rules.WINDOW,
                          "activation table": rules.PWL}
"""Rules that many members have, by the words for them; each has a table of its own."""

ALIKE = {id(rule): name for name, rule in PARTS.items()} | dict.fromkeys(
    (id(rules.CANDIDATE), id(rules.ACTIVATION)), "activation table")
STEPS = {"train": "training.json", "quantize": "quantization.json", "generate": "generation.json",
         "simulate": "verification.json"}


def page() -> str:
    """Every table, with its heading."""
    parts = ["## network.json", _table(NETWORK)]
    parts += [text for kind, table in NODE.rule().tables.items()
              for text in (f"### Layers of the kind {kind}", _table(table))]
    for name, rule in PARTS.items():
        parts += [f"### {name.capitalize()}", _table(rule)]
    parts += ["## manifest.json", _table(MANIFEST)]
    for step, name in STEPS.items():
        parts += [f"## {name}", f"The record of `circulant {step}`.", _table(rule_of(step, {"metric": "METRIC"}))]
    return "\n\n".join(parts)


def _table(rule: Rule) -> str:
    rows = [f"| `{place}` | {words}{'' if needed else '; may be missing'} |" for place, words, needed in _rows(rule)]
    return "\n".join(["| member | value |", "|---|---|", *rows])


def _rows(rule: Rule, place: str = "", needed: bool = True) -> Iterator[tuple[str, str, bool]]:
    """Places, values in words, and whether they must be there, of a value and all that is in it."""
    inner = rule
    while isinstance(inner, Null | Where):
        inner = inner.rule
    if place and id(inner) in ALIKE:
        yield place, ("null or " if isinstance(rule, Null) else "") + f"{_article(ALIKE[id(inner)])}", needed
    elif isinstance(inner, Table):
        if place and not place.endswith("[]"):
            yield place, rule.words, needed
        for members, must in ((inner.members, True), (inner.optional, False)):
            yield from _members(members, place, must)
    elif isinstance(inner, Listing) and not isinstance(inner.rule, Later | Kinds):
        yield place, rule.words, needed
        if id(inner.rule) in ALIKE or isinstance(inner.rule, Table | Where | Listing | Mapped):
            yield from _rows(inner.rule, f"{place}[]", needed)
    elif isinstance(inner, Listing | Kinds | Later):
        yield place, "a list of layers" if isinstance(inner, Listing) else "a layer", needed
    else:
        yield place, rule.words, needed
        if isinstance(inner, Mapped) and isinstance(inner.rule, Table):
            yield from _rows(inner.rule, f"{place}.NAME", needed)


def _members(members: Mapping[str, Rule], place: str, must: bool) -> Iterator[tuple[str, str, bool]]:
    for name, rule in members.items():
        yield from _rows(rule, f"{place}.{name}" if place else name, must)


def _article(name: str) -> str:
    return f"{'an' if name[0] == 'a' else 'a'} {name}"
