"""The smallest changes that make a network fit a device: each is planned anew before it is told."""
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from circulant.boards.device import Device, devices
from circulant.boards.estimate import variants
from circulant.boards.estimate.estimate import Estimated, Options, estimate, estimated
from circulant.hw.plan_cache import plans_of
from circulant.sim.document import Document
from circulant.sim.golden.network import Network
from circulant.sim.refusal import Refusal

__all__ = ["Change", "changes"]


@dataclass(frozen=True)
class Change:
    """A change of one setting with which a design fits.

    Parameters:
        key: of the setting in an experiment.
        before, after: its values.
        step: how large the change is: |log2| of the ratio of both, of devices of their look-up tables.
        estimated: of the changed design, which fits.
    """

    key: str
    before: Any
    after: Any
    step: float
    estimated: Estimated

    def __str__(self) -> str:
        found = self.estimated.figures
        return (f"{self.key} = {self.after} instead of {self.before}: {found.multipliers:,} multipliers, "
                f"{found.cycles:,g} cycles")

    def as_json(self) -> Document:
        return {"key": self.key, "before": self.before, "after": self.after, "step": round(self.step, 3),
                "estimate": self.estimated.as_json()}


def changes(network: Network, device: Device, options: Options, *,
            failed: Estimated | None = None) -> list[Change]:
    """For each of multipliers, bits of weights, bits of activations, block size and device the smallest change with
    which the design fits, the smallest of them first and another device last; those that do not help are left out.

    Parameters:
        failed: the estimate of the design as it is; None where no plan of it exists.
    """
    def tried(given: Network, budget: int) -> Estimated | None:
        try:
            found = estimate(given, device, replace(options, multipliers=budget))
        except Refusal:
            return None
        return found if found.fits else None

    budget = options.multipliers or (failed.budget if failed else 0)
    found = [*_multipliers(lambda count: tried(network, count), budget, failed)]
    for key, bits, floor, narrower in (
            ("quantization.weight_bits", variants.weight_bits(network), 2, variants.narrower_weights),
            ("quantization.activation_bits", variants.activation_bits(network), 4, variants.narrower_activations)):
        found += _bits(key, bits, floor, _trial(network, narrower, tried, options.multipliers))
    size = variants.block_size(network)
    if size > 1:
        larger = _trial(network, variants.with_blocks, tried, options.multipliers)
        for factor in _powers(variants.LARGEST // size):
            if (made := larger(factor)) is not None:
                found.append(Change("compression.block_size", size, size * factor, math.log2(factor), made))
                break
    found += _device(network, device, options)
    return sorted(found, key=lambda change: (change.key == "board.device", change.step))


def _trial(network: Network, change: Callable[[Network, int], Network],
           tried: Callable[[Network, int], Estimated | None], budget: int) -> Callable[[int], Estimated | None]:
    """The estimate of a changed network; None where it does not fit, or there is no such network."""
    def made(amount: int) -> Estimated | None:
        try:
            return tried(change(network, amount), budget)
        except Refusal:
            return None
    return made


def _powers(most: int) -> Iterator[int]:
    factor = 2
    while factor <= most:
        yield factor
        factor *= 2


def _smallest(amounts: Sequence[int], made: Callable[[int], Estimated | None]) -> tuple[int, Estimated] | None:
    """The first of some amounts, of which each takes less than the one before, that fits; None where the last one does
    not."""
    best, low, high = None, 0, len(amounts) - 1
    if high < 0 or (last := made(amounts[high])) is None:
        return None
    best = amounts[high], last
    while low < high:
        middle = (low + high) // 2
        if (found := made(amounts[middle])) is None:
            low = middle + 1
        else:
            best, high = (amounts[middle], found), middle
    return best


def _bits(key: str, bits: int, floor: int, made: Callable[[int], Estimated | None]) -> Iterator[Change]:
    if (found := _smallest(range(1, bits - floor + 1), made)) is not None:
        yield Change(key, bits, bits - found[0], math.log2(bits / (bits - found[0])), found[1])


def _multipliers(made: Callable[[int], Estimated | None], budget: int, failed: Estimated | None) -> Iterator[Change]:
    """The largest budget below ``budget`` that fits, within 2 %. It is sought from where the worst shortage says it
    would be, downwards until one fits, then upwards; a budget too small for any plan does not fit either."""
    share = min((taken.held / (taken.used * (1 - (taken.error or 0))) for taken in failed.taken.values()
                 if taken.exceeds), default=0.9) if failed else 0.9
    high, low, best = budget, min(budget - 1, int(budget * share)), None
    while low >= 1 and (best := made(low)) is None:
        high, low = low, low * 7 // 8
    if best is None:
        return
    high = min(high, low * 5 // 4 + 1)
    while high - low > max(1, low // 50):
        middle = (low + high) // 2
        if (found := made(middle)) is None:
            high = middle
        else:
            low, best = middle, found
    fewer = best.figures.multipliers
    yield Change("hardware.multipliers", budget, fewer, math.log2(budget / fewer), best)


def _device(network: Network, device: Device, options: Options) -> Iterator[Change]:
    """The smallest device by look-up tables that holds the design without a doubt, of the same family if there is
    one."""
    others = [each for each in devices().values() if each is not device]
    plans = None
    if options.multipliers:
        try:
            plans = plans_of(network, options.multipliers, streams=options.streams, levels=options.levels,
                             objective=options.objective, reloadable=options.reloadable, packing=options.dsp_packing,
                             protection=options.protection, beat_blocks=options.beat_blocks, latency=options.latency,
                             max_steps=options.max_steps)
        except Refusal:
            return
    for each in sorted(others, key=lambda each: (each.family != device.family, each.luts)):
        try:
            found = (estimated(network, plans, each, options, options.multipliers) if plans is not None
                     else estimate(network, each, options))
        except Refusal:
            continue
        if found.fits and not found.doubts:
            yield Change("board.device", device.name, each.name, abs(math.log2(each.luts / device.luts)), found)
            return
