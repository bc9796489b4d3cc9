"""Comparisons, each on one kind of data: its networks, its budgets, and how they are trained."""
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.alternatives.data import noisy_digits, noisy_images, sentences
from benchmarks.alternatives.networks import Cnn, Compared, Gru, Labeller
from benchmarks.alternatives.rows import DIGITS, IMAGES, SENTENCES, Row
from circulant.training.data import Dataset
from circulant.training.loop.loop import Recipe

__all__ = ["COMPARISONS", "Comparison"]


@dataclass(frozen=True)
class Comparison:
    """Rows that are trained on the same data in the same way.

    Parameters:
        kept: the file of figures.
        data: called with ``held_out``, whether training samples stand for the test part.
        network: of a row.
        rows: the dense network first, from whose outputs the others learn, half and half with the targets.
        limits: bits of weights with indices, and multiplications of a sample or step, of the rows of each table.
        unit: what the multiplications are counted for.
        recipe: with the rate of the dense network that teaches.
        tried: epochs of the trainings that choose a rate.
        rates: those that are tried.
    """

    title: str
    kept: Path
    data: Callable[..., Dataset]
    network: Callable[[Row], Compared]
    rows: tuple[Row, ...]
    limits: dict[str, int]
    unit: str
    recipe: Recipe
    tried: int
    rates: tuple[float, ...]

    @property
    def tables(self) -> dict[str, str]:
        """Titles of the tables."""
        return {"bits": f"equal bits of weights: at most {self.limits['bits']:,}, with indices",
                "multiplications": f"equal multiplications: at most {self.limits['multiplications']:,} {self.unit}"}


COMPARISONS = {
    "digits": Comparison(
        "spoken digits in noise", Path("docs/measured/alternatives.json"), noisy_digits, Gru, DIGITS,
        limits={"bits": 56_000, "multiplications": 6_600}, unit="a step", recipe=Recipe(12, lr=0.01, batch=128),
        tried=4, rates=(0.01, 0.03, 0.06)),
    "images": Comparison(
        "MNIST in noise", Path("docs/measured/alternatives-images.json"), noisy_images, Cnn, IMAGES,
        limits={"bits": 97_000, "multiplications": 505_000}, unit="an image",
        recipe=Recipe(10, lr=0.01, batch=64, warmup=1), tried=4, rates=(0.003, 0.01, 0.03, 0.06)),
    "speech": Comparison(
        "phones of speechocean762", Path("docs/measured/alternatives-speech.json"), sentences, Labeller, SENTENCES,
        limits={"bits": 194_000, "multiplications": 22_200}, unit="a step",
        recipe=Recipe(10, lr=0.004, batch=32, clip=5.0, warmup=1, augment="delay"), tried=4,
        rates=(0.004, 0.01, 0.02)),
}
"""By name."""
