"""Widths picked by measurement: the cheapest formats within a budget of accuracy.

1. Sensitivity: every width alone is lowered bit by bit, and the noise at the outputs measured on a few samples.
2. A path: from the widths to start from, always the step down that saves the most for the noise that it adds, as if
   the noises of different tensors added up.
3. A bisection finds the last place of the path that keeps the budget, measured on all samples.
4. A descent: whichever width can still go down by a bit within the budget does, the greatest saving first, until none
   can. So the outcome rests on the measured loss alone; the model of the noise only says where to begin.

The exhaustive search measures every combination, the cheapest first, and ends at the first that keeps the budget.
"""
import itertools
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from circulant.sim.golden.network import Network
from circulant.sim.passes.bitwidths import DERIVED, Widths
from circulant.sim.quantize.bitwidth_cost import CostModel
from circulant.sim.quantize.bitwidth_space import FIELDS, Place, clip_of, clips_of, least, searched_bitwidths, step
from circulant.sim.quantize.evaluations import Evaluations
from circulant.sim.quantize.quantize import Peaks, quantize
from circulant.sim.real.float_model import Model
from circulant.sim.refusal import Refusal, nearest

__all__ = ["LOUDER", "MOST", "SearchResult", "Row", "search_bitwidths"]

MOST = 4096
"""Combinations of an exhaustive search at the most."""

LOUD = 0.05
"""Noise, in parts of the outputs' square, below which a step of the path is worth a thought."""

LOUDER = 2.0
"""The descent may add so much to the noise of the place on the path where only errors are counted: samples that all
happen to come out right are no reason to go on."""

Progress = Callable[[str, int, int, str], None]


class Row(NamedTuple):
    """A width that was picked.

    Members:
        name: of a field of `Widths`, behind that of its layer.
        start, picked: before and after; they are equal for one that was given.
        fixed: whether it was given.
        clip: integer bits that the format has less than the data needs.
        noise: what this width alone adds to the noise at the outputs; None where it was not measured.
    """

    name: str
    start: int
    picked: int
    fixed: bool
    clip: int
    noise: float | None


@dataclass(frozen=True)
class SearchResult:
    """The outcome of a search.

    Parameters:
        budget, lost_start, lost: points.
        cost: in parts of that of the widths to start from.
        evaluations: networks that were measured, and ``cached`` those of them that were known before.
    """

    widths: Widths
    network: Network
    rows: tuple[Row, ...]
    search: str
    budget: float
    lost_start: float
    lost: float
    cost: float
    evaluations: int
    cached: int


class _Search:
    def __init__(self, model: Model, peaks: Peaks, start: Widths, evaluations: Evaluations, price_of: Callable[
            [Network], CostModel], fields: Collection[str], progress: Progress | None) -> None:
        self._model, self._peaks, self._widths, self._evaluations = model, peaks, start, evaluations
        self._progress = progress or (lambda task, done, total, note: None)
        network = quantize(model, peaks, **start.as_dict())
        self._price = price_of(network)
        self.fixed = {name for name in searched_bitwidths(network, FIELDS) if self._given(name)}
        self.free = [name for name in searched_bitwidths(network, fields) if name not in self.fixed]
        self.start: Place = {name: self._value(name) for name in searched_bitwidths(network, FIELDS)}
        self.noises: dict[str, dict[int, float]] = {}
        self.clips: dict[str, dict[int, int]] = {}

    def _given(self, name: str) -> bool:
        """Whether the user says this width: by its name, or by a field that could have followed from another."""
        place, _, field = name.rpartition(".")
        if field in DERIVED and getattr(self._widths, field):
            return True
        own = [key for key in self._widths.tensors if key.rpartition(".")[2] == field]
        return any(key.rpartition(".")[0] == place or key.startswith(f"{place}.") for key in own)

    def _value(self, name: str) -> int:
        place, _, field = name.rpartition(".")
        own = self._widths.of(place) if place else self._widths
        derived = {"spectrum_bits": own.spectrum, "product_bits": own.product, "input_bits": own.input,
                   "output_bits": own.output, "state_bits": own.state, "cell_bits": own.cell}
        return int(derived.get(field) or getattr(own, field))

    def widths(self, place: Mapping[str, int]) -> Widths:
        layers = {name: value for name, value in place.items() if "." in name and name not in self.fixed}
        whole: dict[str, Any] = {
            name: value for name, value in place.items() if "." not in name and name not in self.fixed}
        return replace(self._widths, tensors={**layers, **self._widths.tensors}, **whole)

    def network(self, place: Mapping[str, int]) -> Network:
        return quantize(self._model, self._peaks, **self.widths(place).as_dict())

    def cost(self, place: Mapping[str, int]) -> float:
        return self._price(self.widths(place))

    def noise(self, place: Mapping[str, int]) -> float:
        """Infinite where no network has these widths."""
        try:
            return self._evaluations.noise(self.network(place))
        except Refusal:
            return math.inf

    def lost(self, place: Mapping[str, int]) -> float:
        """Infinite where no network has these widths."""
        try:
            network = self.network(place)
        except Refusal:
            return math.inf
        return self._evaluations.lost(network)

    def measure(self) -> None:
        """The noise of every width of every knob alone, down to where it drowns everything."""
        base = self.noise(self.start)
        for done, name in enumerate(self.free):
            self._progress("sensitivity of widths", done, len(self.free), name)
            rows, clips = self.noises.setdefault(name, {}), self.clips.setdefault(name, {})
            rows[self.start[name]] = 0.0
            for bits in range(self.start[name] - 1, least(name) - 1, -1):
                tried = {clip: self.noise(self.start | step(name, bits, clip)) for clip in clips_of(name)}
                clips[bits] = min(tried, key=lambda clip: (tried[clip], clip))
                rows[bits] = max(tried[clips[bits]] - base, 0.0)
                if not rows[bits] <= LOUD:
                    break
        self._progress("sensitivity of widths", len(self.free), len(self.free), "")

    def path(self) -> list[Place]:
        """Places from the start on, each cheaper than the one before."""
        place, places = dict(self.start), [dict(self.start)]
        while True:
            cost, options = self.cost(place), []
            for name in self.free:
                bits, rows = place[name] - 1, self.noises[name]
                if bits in rows and rows[bits] <= LOUD:
                    following = place | step(name, bits, self.clips[name][bits])
                    added = rows[bits] - rows[place[name]]
                    options.append(((cost - self.cost(following)) / max(added, 1e-12), name, following))
            if not options:
                return places
            place = max(options, key=lambda option: option[:2])[2]
            places.append(place)

    def last(self, places: list[Place], budget: float) -> Place:
        """The last one that keeps the budget, if every one before does."""
        low, high, done = 0, len(places), 0
        total = math.ceil(math.log2(high))
        while high - low > 1:
            middle = (low + high) // 2
            lost, done = self.lost(places[middle]), done + 1
            self._progress("path within the budget", min(done, total), total, f"{lost:.2f} points lost")
            low, high = (middle, high) if lost <= budget else (low, middle)
        return places[low]

    def descend(self, place: Place, budget: float, louder: float) -> Place:
        """Down by a bit wherever the budget allows, until nowhere."""
        bound, before, turn = louder * self.noise(place), dict[str, int](), 0
        while place != before:
            before, turn = place, turn + 1
            cost, here = self.cost(place), place
            order = [name for name in self.free if here[name] > least(name)]
            order.sort(key=lambda name: self.cost(here | {name: here[name] - 1}) - cost)
            for done, name in enumerate(order):
                self._progress(f"one bit less, round {turn}", done, len(order), name)
                ways = [place | step(name, place[name] - 1, clip)
                        for clip in clips_of(name, place.get(clip_of(name), 0))]
                for way in sorted(ways, key=self.noise):
                    if self.noise(way) <= bound and self.lost(way) <= budget:
                        place = way
                        break
            self._progress(f"one bit less, round {turn}", len(order), len(order), "")
        return place

    def cheapest(self, budget: float) -> Place:
        """The cheapest of all combinations that keeps the budget.

        Raises:
            Refusal: when there are too many of them.
        """
        ranges = [range(least(name), self.start[name] + 1) for name in self.free]
        count = math.prod(map(len, ranges))
        if count > MOST:
            raise Refusal(f"An exhaustive search must have at most {MOST:,} combinations, not {count:,} of "
                          f"{len(self.free)} widths; give some of them, pick fewer kinds, or search greedily")
        every = [self.start | dict(zip(self.free, values, strict=True)) for values in itertools.product(*ranges)]
        every.sort(key=lambda place: (self.cost(place), *(-place[name] for name in self.free)))
        for done, place in enumerate(every):
            lost = self.lost(place)
            self._progress("every combination", done, len(every), f"{lost:.2f} points lost")
            if lost <= budget:
                return place
        raise AssertionError("the widths to start from keep the budget")


def search_bitwidths(model: Model, peaks: Peaks, start: Widths, evaluations: Evaluations, *, budget: float,
         price: Callable[[Network], CostModel] | None = None, search: str = "greedy", fields: Collection[str] = FIELDS,
         louder: float = LOUDER, progress: Progress | None = None) -> SearchResult:
    """The cheapest widths that lose no more than ``budget`` points.

    Parameters:
        peaks: what calibration data shows of the model; they say where the binary points are.
        start: the greatest widths. What ``start.tensors`` names stays as it is; so does what could follow from
            ``activation_bits``, and is not 0.
        evaluations: what is lost.
        price: the cost of a network of this shape; that of half memory, half multipliers if None.
        search: "greedy" or "exhaustive".
        fields: what is picked, the rest stays.
        louder: how far the descent may add to the noise; infinite where the loss says by itself how near the next
            error is, as that of `sim.quantize.margins`.

    Raises:
        Refusal: when the data never exercises a tensor, even the start loses more than the budget, nothing is left to
            be picked, or an exhaustive search has too many combinations.
    """
    if search not in ("greedy", "exhaustive"):
        raise Refusal(f"The search must be 'greedy' or 'exhaustive', not {search!r}"
                      f"{nearest(search, ('greedy', 'exhaustive'))}")
    if not budget >= 0 or budget == math.inf:
        raise Refusal(f"The budget must be at least 0 points of the metric, not {budget!r}; 0.1 is a usual value")
    if never := peaks.never:
        raise Refusal(f"Calibration data must exercise every tensor whose width is chosen, but {', '.join(never[:4])} "
                      f"{'are' if len(never) > 1 else 'is'} always zero; give representative data")
    made = _Search(model, peaks, start=start, evaluations=evaluations,
                   price_of=price or (lambda network: CostModel(network, start)), fields=fields, progress=progress)
    if not made.free:
        raise Refusal("At least one width must be left to choose, but all are given; leave out some of "
                      f"{', '.join(made.start)}")
    lost_start = made.lost(made.start)
    if lost_start > budget:
        raise Refusal(f"The budget must be at least {lost_start:.3g} points, which the largest widths lose already, "
                      f"not {budget:g}; raise it, or weight_bits and activation_bits")
    if search == "exhaustive":
        place = made.cheapest(budget)
    else:
        made.measure()
        place = made.descend(made.last(made.path(), budget), budget, louder)
    rows = tuple(Row(name, made.start[name], picked=place[name], fixed=name in made.fixed,
                     clip=place.get(clip_of(name), 0),
                     noise=made.noises.get(name, {}).get(place[name])) for name in made.start)
    return SearchResult(made.widths(place), network=made.network(place), rows=rows, search=search, budget=budget,
                        lost_start=lost_start, lost=made.lost(place),
                        cost=made.cost(place), evaluations=evaluations.made + evaluations.found,
                        cached=evaluations.found)
