"""hw/emit/choices.py: a process as trees. What they choose is what its statements assign, for every input."""
import random

from circulant.hw.emit.choices import Choice, Segment, leaves, lowest, segments, selectors
from circulant.hw.emit.rtlil import Case, Chunk, Switch, single_bits

SIZES = {"a": 4, "b": 4, "s": 2, "t": 1}


def number(bits, values):
    """Value of bits, those of wires from ``values``."""
    return sum((values[name] >> low & 1 if name else low) << n for n, (name, low, _) in enumerate(single_bits(bits)))


def matches(pattern, value):
    return all(digit in ("-", f"{value >> len(pattern) - 1 - at & 1}") for at, digit in enumerate(pattern))


def assigned(process, values, before):
    """Meaning of statements, one after the other: the definition."""
    for each in process:
        if isinstance(each, Switch):
            chosen = next((case for case in each.cases if not case.patterns or not each.selector or any(
                matches(pattern, number(each.selector, values)) for pattern in case.patterns)), None)
            before = assigned(chosen.body, values, before) if chosen else before
        else:
            (_, low, width), bits = each
            mask = ((1 << width) - 1) << low
            before = before & ~mask | number(bits, values) << low
    return before


def chosen(tree, values):
    """Meaning of a tree."""
    while isinstance(tree, Choice):
        value = number(tree.selector, values)
        tree = next((its for patterns, its in tree.cases if any(matches(each, value) for each in patterns)),
                    tree.otherwise)
    return number(tree, values)


def drawn(rng, depth):
    """Statements that assign to parts of a wire y of four bits."""
    found = []
    for _ in range(rng.randrange(1, 3)):
        if depth and rng.random() < 0.6:
            name = rng.choice("st")
            size = SIZES[name]
            patterns = rng.sample(["00", "01", "10", "11", "1-", "-0"] if size == 2 else ["0", "1"], size)
            cases = [Case([each], drawn(rng, depth - 1)) for each in patterns]
            if rng.random() < 0.5:
                cases.append(Case([], drawn(rng, depth - 1)))
            found.append(Switch((Chunk(name, 0, size),), cases))
        else:
            low = rng.randrange(3)
            width = rng.randrange(1, 5 - low)
            name = rng.choice(["a", "b", ""])
            found.append((Chunk("y", low, width), (Chunk(name, rng.randrange(5 - width) if name else 1, width),)))
    return found


def test_drawn_processes_mean_the_same_as_trees():
    rng = random.Random(0)
    for _ in range(150):
        process = [(Chunk("y", 0, 4), (Chunk("", 0, 4),)), *drawn(rng, 3)]
        made = {}

        def name(tree, width, made=made):
            made[f"$choice{len(made)}"] = tree
            return (Chunk(f"$choice{len(made) - 1}", 0, width),)

        found = segments(process, name)
        assert [each.low for each in found] == [sum(each.width for each in found[:n]) for n in range(len(found))]
        for _ in range(12):
            values = {wire: rng.randrange(1 << size) for wire, size in SIZES.items()}
            for each, tree in made.items():
                values[each] = chosen(tree, values)
            value = sum(chosen(each.value, values) << each.low for each in found)
            assert value == assigned(process, values, 0), process


def test_bits_that_are_chosen_alike_are_one_segment():
    y = [(Chunk("y", 0, 4), (Chunk("a", 0, 4),)), Switch((Chunk("t", 0, 1),), [
        Case(["1"], [(Chunk("y", 2, 2), (Chunk("b", 2, 2),)), (Chunk("y", 0, 2), (Chunk("b", 0, 2),))])])]
    whole = segments(y, lambda tree, width: ())
    assert [(each.low, each.width) for each in whole] == [(0, 4)]
    assert whole[0].value.cases == ((("1",), (Chunk("b", 0, 4),)),)
    assert whole[0].value.otherwise == (Chunk("a", 0, 4),)
    assert list(leaves(whole[0].value)) == [(Chunk("b", 0, 4),), (Chunk("a", 0, 4),)]
    assert list(selectors(whole[0].value)) == [(Chunk("t", 0, 1),)]
    assert list(leaves(lowest(whole[0].value, 2))) == [(Chunk("b", 0, 2),), (Chunk("a", 0, 2),)]


def test_a_choice_that_chooses_nothing_is_none():
    same = [(Chunk("y", 0, 4), (Chunk("a", 0, 4),)),
            Switch((Chunk("t", 0, 1),), [Case(["1"], [(Chunk("y", 0, 4), (Chunk("a", 0, 4),))])])]
    assert segments(same, lambda tree, width: ()) == [Segment(0, 4, (Chunk("a", 0, 4),))]


def test_the_last_of_all_patterns_needs_no_test():
    whole = [(Chunk("y", 0, 1), (Chunk("", 0, 1),)), Switch((Chunk("t", 0, 1),), [
        Case([digit], [(Chunk("y", 0, 1), (Chunk(name, 0, 1),))]) for digit, name in ("0a", "1b")])]
    (segment,) = segments(whole, lambda tree, width: ())
    assert [patterns for patterns, _ in segment.value.cases] == [("0",)]
    assert segment.value.otherwise == (Chunk("b", 0, 1),)
