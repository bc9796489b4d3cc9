"""The spread of seeds: the chosen model and the uniform one, trained again from other random numbers."""
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from circulant.experiment import Experiment
from circulant.explore.causes import reasons
from circulant.explore.designs import WEIGHTS, Designs, widened
from circulant.report.seeds import few, spread
from circulant.sweep.point import Point
from circulant.sweep.rows import Row
from circulant.sweep.run import Evaluate, run

__all__ = ["in_turn", "others", "repeat", "said"]


def repeat(designs: Designs, count: int, *, deadline: float = math.inf, evaluate: Evaluate = run) -> tuple[Row, ...]:
    """The rows of the chosen and the uniform model at all bits of weights, with all multipliers, of each further seed.

    Parameters:
        count: seeds in all, that of the exploration among them.
        deadline: as for `circulant.sweep.run.run`.
    """
    models = [designs.points[at].experiment for at in dict.fromkeys((designs.chosen, designs.uniform))
              if at is not None]
    return tuple(in_turn([[point for model in models for point in _points(model, model.training.seed + further)]
                          for further in range(1, count)], evaluate, deadline))


def in_turn(seeds: Sequence[list[Point]], evaluate: Evaluate, deadline: float) -> list[Row]:
    """The rows of the points of several seeds; where there is a deadline each seed's before the next one is trained, so
    that it is whole if the time ends."""
    batches = seeds if deadline < math.inf else [[point for each in seeds for point in each]]
    return [row for batch in batches if batch for row in evaluate(batch, deadline=deadline)]


def _points(model: Experiment, seed: int) -> Iterator[Point]:
    return widened(replace(model, training=replace(model.training, seed=seed)), WEIGHTS, multipliers=[0],
                   label=f"{model.name}, seed {seed}")


def others(its: Row, rows: Sequence[Row]) -> list[Row]:
    """The rows of other seeds that have the block size and the bits of weights of a design."""
    return [row for row in rows if not row["reason"]
            and (row["block_size"], row["weight_bits"]) == (its["block_size"], its["weight_bits"])]


def said(designs: Designs, rows: Sequence[Row]) -> list[str]:
    """A sentence on the scores of each model over the seeds, at the bits of weights that it has as a design; and one on
    what failed."""
    found = [f"Some points of other seeds failed: {why}."] if (why := reasons(rows)) else []
    for words, at in (("The chosen", designs.chosen), ("The uniform", designs.uniform)):
        its = None if at is None else designs.rows[at]
        if its and (mine := others(its, rows)):
            scores, dense = ([row[score] for row in (its, *mine)] for score in ("quantized", "dense"))
            found.append(f"{words} model (k = {its['block_size']}, {its['weight_bits']} bits) has "
                         f"{spread(its['metric'], scores)} over {len(scores)} seeds (dense "
                         f"{spread(its['metric'], dense)}).{few(len(scores))}")
    return found
