"""The training loop of one phase. It knows no model: only batches, a task, and what is added to the gradients."""
import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypedDict, cast

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import clip_grad_norm_, parametrize

from circulant.sim.refusal import Refusal
from circulant.training.data import Dataset
from circulant.training.loop.averaging import average
from circulant.training.loop.communication import Channel, Rounds
from circulant.training.loop.metrics import Metrics
from circulant.training.loop.nonfinite import find_nonfinite_source
from circulant.training.loop.optimize import choose, optimizer, schedule
from circulant.training.loop.runtime import ALONE, PRECISIONS, Precision, ProcessGroup
from circulant.training.settings.training import TrainingSettings
from circulant.training.task.augment import AUGMENTS, augment
from circulant.training.task.batches import Batch, Part, Portion
from circulant.training.task.loaded import Loaded, part_of
from circulant.training.task.samples import Given, Samples, samples
from circulant.training.task.task import Loss, Task, task_of

__all__ = ["Fit", "FitState", "NotFinite", "Recipe", "evaluate", "exact", "feels_padding", "fit", "forward"]

SMALL = 200_000
"""Parameters below which one thread trains a model."""


class NotFinite(Refusal):
    """A loss or a weight that stopped being finite."""


@dataclass(frozen=True)
class Recipe:
    """How a phase is trained; the fields are those of `TrainingSettings`, with ``lr`` the rate at its start."""

    epochs: int
    lr: float
    batch: int = TrainingSettings.batch_size
    seed: int = TrainingSettings.seed
    decay: str = TrainingSettings.decay
    warmup: int = TrainingSettings.warmup_epochs
    optimizer: str = TrainingSettings.optimizer
    weight_decay: float = TrainingSettings.weight_decay
    clip: float = TrainingSettings.clip
    precision: str = "float32"
    augment: str = TrainingSettings.augment
    averaging: str = TrainingSettings.averaging
    rate_scaling: str = TrainingSettings.rate_scaling


class FitState(TypedDict):
    """The state of a phase, as a checkpoint has it; those of the optimizer and of its other parts stand beside these,
    under their names."""

    epoch: int
    shuffle: Tensor
    random: list[Any]


class Fit:
    """One phase of training of a model, in place, which can stop after any epoch and go on from its state.

    Parameters:
        add_gradient: adds to the gradients of each batch, after those of the loss are clipped; such as
            `Admm.add_penalty_gradient`.
        team: the processes that share each batch.
        channel: what they send each other; None for gradients.
        run: what `Channel.shared` made of the model for the team; the model itself where there is one process.

    Members:
        epoch: how many are done.

    Raises:
        Refusal: when a name in the recipe is unknown.
    """

    def __init__(self, model: nn.Module, data: Samples, task: Task, recipe: Recipe, *,
                 add_gradient: Callable[[], None] | None = None, team: ProcessGroup = ALONE,
                 channel: Channel | None = None, run: nn.Module | None = None) -> None:
        choose("A precision", recipe.precision, PRECISIONS)
        choose("An augmentation", recipe.augment, AUGMENTS)
        self.epoch = 0
        self._model, self._data, self._task, self._recipe = model, data, task, recipe
        self._add_gradient, self._team = add_gradient, team
        self._run, self._channel = run or model, channel or Channel(team)
        self._device = next(model.parameters()).device
        self._precision = Precision(recipe.precision, self._device)
        self._part = part_of(data, "train", self._device, exact=exact(model, task))
        each = self._part.count(recipe.batch)
        self._optimizer = optimizer(recipe.optimizer, model, recipe.lr, recipe.weight_decay,
                                    recipe.rate_scaling)
        self._rounds = self._channel.rounds(self._optimizer) if self._channel.local else None
        self._steps = 0
        if self._rounds and self._precision.scaler.is_enabled():
            raise Refusal("training.communication = 'local' must have steps that are never left out, not products in "
                          "float16; choose precision 'float32' or 'bfloat16'")
        self._scheduler = schedule(self._optimizer, recipe.decay, recipe.epochs * each, recipe.warmup * each)
        self._average = average(recipe.averaging, model, recipe.epochs * each)
        self._shuffle = torch.Generator().manual_seed(recipe.seed)
        with self._noise():
            torch.manual_seed(recipe.seed + team.rank)  # for dropout
            self._random = self._noise_state()

    def run_epoch(self, *, measured: bool = True) -> Metrics:
        """One epoch; ``loss``, the mean over the training set without the penalty, and the metric on the test set.

        Parameters:
            measured: whether the metric is wanted.

        Raises:
            Refusal: when the loss or a weight is not finite, naming batch and layer, or the outputs do not
                fit the task.
        """
        team, recipe = self._team, self._recipe
        self._model.train()
        total, weight, sent = 0.0, 0, self._channel.sent
        with _few_threads(self._model), self._noise():
            self._noise_state(self._random)
            portions = (self._part.portions(recipe.batch, self._shuffle, rank=team.rank, processes=team.size)
                        if self._rounds is None else self._local(self._rounds))
            for number, portion in enumerate(portions, start=1):
                total += self._step(portion, number) * portion.weight
                weight += portion.weight
            self._random = self._noise_state()
        if self._rounds is not None:
            total, weight = team.total(torch.tensor([total, weight], dtype=torch.float64)).tolist()
        team.align(self._model)
        self.epoch += 1
        bad = [name for name, weight in self._model.named_parameters() if not torch.isfinite(weight).all()]
        if bad:
            raise NotFinite(f"Weights must be finite, but {bad[0]} is not after epoch {self.epoch}; choose a learning "
                            f"rate below {recipe.lr:g}, or set clip")
        metrics: Metrics = {"loss": total / weight}
        if team.size > 1:
            metrics["sent"] = self._channel.sent - sent
        if measured:
            if self._average is not None and self.epoch == recipe.epochs:
                self._average.measure_batches(self._part.batches(recipe.batch))
            score = evaluate(self.outcome, self._data, task=self._task, team=team)
            metrics = cast(Metrics, {**metrics, self._task.metric: score})
        return metrics

    @property
    def outcome(self) -> nn.Module:
        """The model that is measured and that the phase leaves: the one trained, or the average of its weights."""
        return self._model if self._average is None else self._average.model

    def state_dict(self) -> FitState:
        """Everything but the weights that the next epoch depends on. All processes of a team must call it together."""
        return cast(FitState, {
            "epoch": self.epoch, "shuffle": self._shuffle.get_state(), "random": self._team.gather(self._random),
            **{name: part.state_dict() for name, part in self._parts()}})

    def load_state_dict(self, state: FitState) -> None:
        """Go on from a state, with the weights of that moment already in the model."""
        self.epoch = state["epoch"]
        for name, part in self._parts():
            part.load_state_dict(cast("Mapping[str, Any]", state)[name])
        self._shuffle.set_state(state["shuffle"])
        self._random = state["random"][self._team.rank]

    def _parts(self) -> Iterator[tuple[str, Any]]:
        """Objects with a state dict, by their names in that of the phase."""
        yield from (("optimizer", self._optimizer), ("scheduler", self._scheduler), ("scaler", self._precision.scaler))
        if self._average is not None:
            yield "average", self._average
        for name, (module, its) in self._task.auxiliary_modules.items():
            yield from ((name, module), (f"{name} optimizer", its))

    def _local(self, rounds: Rounds) -> Iterator[Portion]:
        """The batches that this process trains on alone in an epoch. The rate stays as it is within a round."""
        assert isinstance(self._part, Part)
        size = self._team.size
        each = max(1, self._recipe.batch // size)
        begin, done = self._steps, 0
        for mine, batches in rounds.split(self._part.order(each, self._shuffle)):
            yield from (self._part.portion(chosen) for chosen in mine)
            done += batches
            ahead = begin + done * each // self._recipe.batch
            while self._steps < ahead:
                self._scheduler.step()
                self._steps += 1
            if self._average is not None:
                self._average.step()

    def _step(self, portion: Portion, number: int) -> float:
        """Train on one batch, of which this process takes its share; the loss of the whole."""
        team, scaler = self._team, self._precision.scaler
        batch = augment(portion.batch, self._recipe.augment, self._data.frames)
        own = self._optimizer if self._rounds is None else self._rounds.optimizer
        optimizers = [own, *(each for _, each in self._task.auxiliary_modules.values())]
        for each in optimizers:
            each.zero_grad()
        with self._precision.products():
            with parametrize.cached(), self._precision.autocast():
                outputs = forward(self._run, batch)
                if number == 1:
                    self._task.check(outputs, batch)
                loss = self._task.loss(outputs, batch) * portion.share  # Their mean is that of the batch.
            scaler.scale(loss).backward()
        value = float(loss.detach() if self._rounds else team.total(loss.detach().double().clone()) / team.size)
        if not math.isfinite(value):
            self._refuse(value, batch, number)
        for module, _ in self._task.auxiliary_modules.values():
            team.average(module)  # Before an overflow is looked for, as all processes have to find the same.
        for each in optimizers:
            scaler.unscale_(each)
        if self._recipe.clip:
            clip_grad_norm_(self._model.parameters(), self._recipe.clip)
        if self._add_gradient is not None:
            self._add_gradient()
        for each in optimizers:
            scaler.step(each)
        scaler.update()
        if self._rounds is None:
            self._scheduler.step()
            if self._average is not None:
                self._average.step()
        return value

    def _refuse(self, value: float, batch: Batch, number: int) -> None:
        """Say where the loss of a batch stopped being finite; every process of a team says the same."""
        def again() -> None:
            with self._precision.autocast():
                forward(self._model, batch)

        found = find_nonfinite_source(self._model, batch, again)
        places = [place for place in ([found] if self._rounds else self._team.gather(found)) if place]
        first = min(places, key=lambda place: place == "the loss itself")
        raise NotFinite(f"The loss must be finite, but is {value} in epoch {self.epoch + 1}, batch {number}, first in "
                        f"{first}; choose a learning rate below {self._recipe.lr:g}, or set clip")

    @contextmanager
    def _noise(self) -> Iterator[None]:
        with torch.random.fork_rng(devices=[self._device] if self._device.type == "cuda" else []):
            yield

    def _noise_state(self, state: list[Tensor] | None = None) -> list[Tensor]:
        """The random state of the CPU and of the GPU in use; set to ``state`` where that is given."""
        gpu = self._device.type == "cuda"
        if state is not None:
            torch.set_rng_state(state[0])
            if gpu:
                torch.cuda.set_rng_state(state[1], self._device)
        return [torch.get_rng_state(), *([torch.cuda.get_rng_state(self._device)] if gpu else [])]


def fit(model: nn.Module, data: Given, *, test: Given | None = None, loss: str | Loss | None = None,
        task: Task | None = None, add_gradient: Callable[[], None] | None = None,
        on_epoch: Callable[[int, Metrics], bool | None] | None = None,
        **recipe: Any) -> list[Metrics]:
    """Train a model in place; the same seed gives the same weights.

    Parameters:
        data, test: as for `samples`.
        loss: of (outputs, targets), a mean over the batch, or a name; None for that of the data set's task.
        task: in place of that of the data set with this loss.
        add_gradient: as for `Fit`.
        on_epoch: called after each epoch (counted from 1) with its metrics, which it may extend; True stops.
        recipe: fields of `Recipe`; ``epochs`` and ``lr`` have no default.

    Returns:
        The metrics of each epoch: ``loss``, the mean over the training set without the penalty, and the metric of the
        task on the test set.

    Raises:
        Refusal: when the loss is not finite, or a name is unknown.
    """
    chosen = Recipe(**recipe)
    read = samples(data, test, task=task.kind if task else None, loss=loss, seed=chosen.seed, batch=chosen.batch)
    phase = Fit(model, read, task or task_of(read, loss=loss), chosen, add_gradient=add_gradient)
    history: list[Metrics] = []
    for epoch in range(1, int(recipe["epochs"]) + 1):
        history.append(phase.run_epoch())
        if on_epoch is not None and on_epoch(epoch, history[-1]):
            break
    return history


@torch.no_grad()
def evaluate(model: nn.Module, data: Given | Loaded, *, task: Task | None = None, batch: int = 1024,
             team: ProcessGroup = ALONE) -> float:
    """The metric of the task on the test set; the model's mode is left as it was.

    Parameters:
        data: a data set with a test set, or what is one as a whole: (x, y), a Dataset or DataLoader of torch.
        task: None for that of the data set: for classes the fraction whose greatest output is that of the class.

    Raises:
        Refusal: as `samples`, and when the outputs do not fit the task.
    """
    read = samples(data, None if isinstance(data, Dataset | Loaded) else data, task=task.kind if task else None)
    task = task or task_of(read)
    device = next(model.parameters()).device
    part = part_of(read, "test", device, exact=exact(model, task))
    training = model.training
    model.eval()
    tallies: list[Any] = []
    try:
        with _few_threads(model), parametrize.cached(), torch.random.fork_rng(devices=[]):
            for each in part.batches(batch, rank=team.rank, processes=team.size):
                outputs = forward(model, each)
                if not tallies:
                    task.check(outputs, each)
                tallies.append(task.tally(outputs, each))
    finally:
        model.train(training)
    return task.figure([tally for tallies in team.gather(tallies) for tally in tallies])


def forward(model: nn.Module, batch: Batch) -> Tensor:
    """The outputs of a model, which is told the lengths where it asks for them."""
    outputs: Tensor = model(batch.x, lengths=batch.lengths) if _asks(model) else model(batch.x)
    return outputs


def _asks(model: nn.Module) -> bool:
    inner = model.module if isinstance(model, DistributedDataParallel) else model
    return "lengths" in inspect.signature(inner.forward).parameters


def exact(model: nn.Module, task: Task) -> bool:
    """Whether all sequences of a batch must have one length: padding is felt, and the model is not told of it."""
    return not _asks(model) and feels_padding(model, task)


def feels_padding(model: nn.Module, task: Task) -> bool:
    """Whether padding reaches the outputs that count: through a backward layer, or because a last step is taken."""
    return not task.pads or any(getattr(module, "bidirectional", False) for module in model.modules())


@contextmanager
def _few_threads(model: nn.Module) -> Iterator[None]:
    """One thread for a model with few parameters, each of which is used once for a sample or step.

    Its products take microseconds, in which a team of threads only waits for itself: on a machine that has other work
    an epoch takes up to a hundred times as long. A convolution uses its parameters at every pixel.
    """
    before = torch.get_num_threads()
    images = any(isinstance(module, nn.Conv2d) for module in model.modules())
    if not images and sum(parameter.numel() for parameter in model.parameters()) < SMALL:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
