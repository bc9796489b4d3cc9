"""A training over all its phases, what each passes to the next, and its checkpoints."""
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from circulant.sim.artifact import digest_arrays
from circulant.sim.refusal import Refusal
from circulant.training.blocks.admm import Admm, penalties
from circulant.training.blocks.clone import clone
from circulant.training.blocks.constraint import (
    assign,
    block_sizes,
    compress,
    decompress,
    inherit,
    initialise,
    resolve,
)
from circulant.training.blocks.guided import Guides
from circulant.training.blocks.paths import Costs, Paths
from circulant.training.loop.best import Best
from circulant.training.loop.checkpoint import Checkpoint, State
from circulant.training.loop.communication import Channel
from circulant.training.loop.distillation import DistillationTask
from circulant.training.loop.hints import layers
from circulant.training.loop.loop import Fit, Recipe, evaluate
from circulant.training.loop.metrics import Metrics, scored
from circulant.training.loop.notes import chance, notes, tied
from circulant.training.loop.runtime import ALONE, ProcessGroup
from circulant.training.settings.training import TrainingSettings
from circulant.training.task.loaded import part_of
from circulant.training.task.samples import Samples
from circulant.training.task.task import Task

__all__ = ["Trainer", "Progress"]

Progress = Callable[[str, int, int, Metrics], None]
"""Called after each epoch with the phase, the epoch from 1, their number, and the metrics of the epoch."""

SEEDS = {"dense": 0, "admm": 1, "retrain": 2, "direct": 3, "search": 4}
"""Added to the seed, so that no phase repeats the order of another."""

FREE = ("checkpoint_epochs", "device", "evaluate_epochs", "tensorboard")
"""Settings that may differ when a training goes on."""


class Trainer:
    """A training in progress.

    Parameters:
        model: dense; it is trained, except by the phase "direct", which starts from the dense baseline or from a copy
            of the model's initial weights; see `TrainingSettings.start`.
        phases: "dense", "search", "admm", "retrain", "direct", in their order.
        checkpoint: file of the last good epoch.
        about: what else than data, settings and initial weights makes this training another one.
        dense: state dict of a dense baseline, which the first phase then starts from.
        costs: of block sizes, for the phase "search"; see `Paths`.

    Raises:
        Refusal: when a block size fits no matrix, ρ is given to another one, a search has several processes or no
            choice within its bound, a distillation or a dense start has no dense baseline, or hints have no layers.

    Members:
        dense: state dict of the model after the phase "dense", on the CPU.
        scores: metric on the test set: "dense", "projected", "circulant", as far as it is.
        history: one dict for each epoch.
        earlier: seconds, and seconds of processor time, that a resumed training took up to the checkpoint.
        notes: what is to be said of its end, see `circulant.training.loop.notes`.
    """

    def __init__(self, model: nn.Module, data: Samples, task: Task, settings: TrainingSettings,
                 phases: tuple[str, ...], block_size: int | Mapping[str, int], *, team: ProcessGroup = ALONE,
                 progress: Progress | None = None, checkpoint: str | Path | None = None,
                 about: Mapping[str, Any] | None = None, dense: Mapping[str, Tensor] | None = None,
                 costs: Costs | None = None) -> None:
        sizes = resolve(model, block_size)
        phases = tuple(each for phase in phases for each in [phase] * (settings.stages if phase == "direct" else 1))
        if "admm" in phases:
            penalties(settings.rho, [name for name, k in sizes.items() if k > 1])
        self.dense: dict[str, Tensor] = {name: value.clone() for name, value in (dense or {}).items()}
        self.scores: dict[str, float] = {}
        self.notes: list[str] = []
        self.history: list[Metrics] = []
        self.earlier, self._began = (0.0, 0.0), _clocks()
        self._model, self._fresh = model, clone(model) if "direct" in phases else model
        if dense is not None:
            model.load_state_dict(dense)
        self._teacher = clone(model) if settings.distillation else None
        untaught = phases[0] == "direct" or (phases[0] == "dense" and not settings.dense_epochs)
        if self._teacher is not None and dense is None and untaught:
            raise Refusal(f"training.distillation must have a dense baseline to learn from, but there is none before "
                          f"phase {phases[-1]!r}, not {settings.distillation}; choose 0, or train one")
        self._inherits = "direct" in phases and settings.start != "projected" and not (dense is None and untaught)
        if "direct" in phases and settings.start == "dense" and not self._inherits:
            raise Refusal("training.start = 'dense' must have a dense baseline, but there is none before phase "
                          "'direct'; choose 'projected', or train one")
        if "direct" in phases and settings.stages > 1 and not self._inherits:
            raise Refusal("training.stages must be 1 where direct training starts from initial weights, not "
                          f"{settings.stages}; choose start = 'dense', with a dense baseline")
        if settings.hints:
            layers(model)
        if "search" in phases and team.size > 1:
            raise Refusal(f"training.method = 'search' must run in one process, which samples the paths, not in "
                          f"{team.size}; leave torchrun out")
        self._costs, self._paths = costs, None if "search" not in phases else Paths(
            clone(model), block_size, costs=costs, share=settings.search_share)  # Refused now, and not after an epoch.
        self._run: nn.Module | None = None
        self._known: float | None = None  # The score of the weights as they are.
        self._admm: Admm | None = None
        self._guides: Guides | None = None
        self._data, self._task, self._settings, self._phases = data, task, settings, phases
        self._block_size, self._team, self._progress = block_size, team, progress
        self._channel = Channel(team, settings.communication)
        self._checkpoint = None
        if checkpoint is not None:
            initial = {name: value.cpu().numpy() for name, value in model.state_dict().items()}
            kept = {name: value for name, value in asdict(settings).items() if name not in FREE}
            kept["start"] = "dense" if self._inherits else "projected"
            self._checkpoint = Checkpoint(checkpoint, {
                "phases": phases, "data": {"name": data.name, "hash": data.digest()[:12]}, **(about or {}),
                "training": kept, "block_size": block_size, "processes": team.size,
                **({} if costs is None else {"costs": {name: dict(its) for name, its in costs.items()}}),
                "initial weights": digest_arrays(initial)[:12]})

    def run(self, *, resume: bool | None = False) -> nn.Module:
        """Train to the end, and return the block-circulant model.

        Parameters:
            resume: whether to go on from the checkpoint; None does so where there is one of this training.

        Raises:
            Refusal: as `Fit`, and a checkpoint that is missing or of another training.
        """
        at, state = 0, None
        if resume is None:
            resume = self._checkpoint is not None and self._checkpoint.fits()
        if resume:
            if self._checkpoint is None:
                raise Refusal("A training must have a checkpoint to go on from, but none is named; name its file")
            state = self._checkpoint.load()
            at = state["phase"]
            self.dense, self.scores, self.history = state["dense"], state["scores"], state["history"]
            self.earlier = state["spent"]
            self._block_size = state.get("block_size", self._block_size)
        elif self.dense:
            self.scores["dense"] = self._score()
        for number in range(at, len(self._phases)):
            phase = self._phases[number]
            self._enter(number, number == at and state is not None)
            self._train(number, state if number == at else None)
            if phase == "dense":
                self.dense = {name: value.detach().cpu().clone() for name, value in self._model.state_dict().items()}
                if self._settings.dense_epochs:
                    self.scores["dense"] = self._score()
            elif phase == "search":
                self._found()
        self.scores["circulant"] = self._score()
        s = self._settings
        self.notes = notes(self.history, chance(self.scores["circulant"], self._data, self._task), s.admm_epochs,
                           search=s.search_epochs if "search" in self._phases else 0)
        self.notes += tied(self._model, self.scores, self._task)
        self._run = None
        return self._model

    def _enter(self, number: int, resumed: bool) -> None:
        """Make the model of a phase from that of the phase before; a resumed one gets its weights afterwards."""
        phase, stage, s = self._phases[number], self._phases[:number].count("direct"), self._settings
        self._admm = None
        if phase == "direct" and stage:
            self._model = inherit(decompress(self._model), self._staged(stage))
            self._known = None
        elif phase == "search":
            each = part_of(self._data, "train", next(self._model.parameters()).device).count(s.batch_size)
            self._paths = Paths(self._model, self._block_size, costs=self._costs, share=s.search_share,
                                batches=each * s.search_epochs, seed=s.seed + SEEDS[phase])
            self._known = None
        elif phase == "direct":
            if self._inherits:
                self._fresh.load_state_dict(self.dense)
            self._model = (inherit if self._inherits else initialise)(self._fresh, self._staged(0))
            if s.self_guided:
                each = part_of(self._data, "train", next(self._model.parameters()).device).count(s.batch_size)
                self._guides = Guides(self._model, self._fresh, int(s.self_guided * s.direct_epochs * each))
            self._known = None
        elif phase == "retrain":
            self._model = compress(self._model, self._block_size)
            if any(k > 1 for k in block_sizes(self._model).values()):
                self._known = None
            if not resumed:
                self.scores["projected"] = self._score()
        elif phase == "admm":
            self._admm = Admm(self._model, self._block_size, rho=s.rho, schedule=s.rho_schedule, growth=s.rho_growth,
                              rho_max=s.rho_max, tolerance=s.tolerance, updates=s.admm_epochs // s.admm_interval)
        if self._run is None or phase != "admm":
            self._run = self._channel.shared(self._model)

    def _staged(self, stage: int) -> dict[str, int]:
        """Block sizes in a stage of direct training: from stage to stage they double, up to their own."""
        return {name: max(1, k >> self._settings.stages - 1 - stage)
                for name, k in resolve(self._fresh, self._block_size).items()}

    def _found(self) -> None:
        """End a search: keep its table, and go back to the dense baseline."""
        assert self._paths is not None
        self._block_size = assign(self._model, self._paths.table)
        self._paths.remove()
        self._model.load_state_dict(self.dense)
        self._run, self._known = None, None

    def _train(self, number: int, state: State | None) -> None:
        phase, s = self._phases[number], self._settings
        if self._teacher is None or phase == "dense":
            self._epochs(number, self._task, state)
            return
        if self.dense:
            self._teacher.load_state_dict(self.dense)
        task = DistillationTask(self._task, self._teacher, weight=s.distillation, student=self._model, hints=s.hints)
        try:
            self._epochs(number, task, state)
        finally:
            task.close()

    def _epochs(self, number: int, task: Task, state: State | None) -> None:
        """The epochs of a phase that are not done."""
        phase, s, admm = self._phases[number], self._settings, self._admm
        epochs, stage = s.epochs(phase), self._phases[:number].count("direct")
        if phase == "direct":  # Of its stages the last one has what a division leaves.
            epochs = epochs // s.stages + (epochs % s.stages if stage == s.stages - 1 else 0)
        recipe = Recipe(epochs, lr=s.rate(phase), batch=s.batch_size, seed=s.seed + SEEDS[phase] + stage, decay=s.decay,
                        warmup=s.warmup_epochs,
                        optimizer=s.optimizer, weight_decay=s.weight_decay, clip=s.clip, precision=s.precision,
                        augment=s.augment, rate_scaling=s.rate_scaling,
                        averaging=s.averaging if phase not in ("admm", "search") else "none")
        best = Best(task, s.early_stopping if phase not in ("admm", "search") else 0)
        paths = self._paths if phase == "search" else None
        guides = self._guides if phase == "direct" else None
        added = (paths.update if paths else admm.add_penalty_gradient if admm else guides.step if guides else None)
        fit = Fit(self._model, self._data, task, recipe, add_gradient=added, team=self._team, channel=self._channel,
                  run=self._run)
        if state is not None:
            self._model.load_state_dict(state["model"])
            self._known = scored(self.history[-1], self._task.metric)
            fit.load_state_dict(state["fit"])
            best.load_state_dict(state.get("best"))
            if admm is not None:
                assert state["admm"] is not None
                admm.load_state_dict(state["admm"])
            if paths is not None:
                assert state["paths"] is not None
                paths.load_state_dict(state["paths"])
            if guides is not None:
                guides.go_on(state["guided"])
        while fit.epoch < epochs and not (admm is not None and admm.converged) and not best.ends(fit.epoch):
            try:
                metrics = fit.run_epoch(measured=(fit.epoch + 1) % s.evaluate_epochs == 0 or fit.epoch + 1 == epochs)
            except Refusal as refusal:
                raise self._kept(refusal) from None
            self._known = scored(metrics, self._task.metric)
            best.see(fit.outcome, fit.epoch, self._known)
            if admm is not None and fit.epoch % s.admm_interval == 0:
                metrics |= _updated(admm)
            if paths is not None:
                metrics |= {"expected_cost": float(paths.expected().detach()), "paths": paths.probabilities()}
            self.history.append({"phase": phase, "epoch": fit.epoch, **metrics})
            ended = fit.epoch == epochs or (admm is not None and admm.converged) or best.ends(fit.epoch)
            if self._checkpoint is not None and (ended or fit.epoch % s.checkpoint_epochs == 0):
                self._save(number, fit, best)
            if self._progress is not None and self._team.leads:
                self._progress(phase, fit.epoch, epochs, metrics)
        if fit.outcome is not self._model:
            self._model.load_state_dict(fit.outcome.state_dict())
        if best.score is not None:
            self._model.load_state_dict(best.weights)
            self._known = best.score
        if guides is not None:
            guides.remove()
            self._guides = None

    def _save(self, number: int, fit: Fit, best: Best) -> None:
        spent, worked = map(sum, zip(self.earlier, _clocks(since=self._began), strict=True))
        state: State = {
            "phase": number, "fit": fit.state_dict(), "best": best.state_dict(), "model": self._model.state_dict(),
            "admm": self._admm.state_dict() if self._admm else None, "dense": self.dense, "scores": self.scores,
            "guided": self._guides.done if self._guides else 0,
            "paths": self._paths.state_dict() if self._phases[number] == "search" and self._paths else None,
            "block_size": self._block_size,
            "history": self.history, "spent": (spent, worked)}
        if self._team.leads and self._checkpoint is not None:
            self._checkpoint.save(state)

    def _score(self) -> float:
        """The metric on the test set, unless it is known of these very weights."""
        if self._known is None:
            self._known = evaluate(self._model, self._data, task=self._task, team=self._team)
        return self._known

    def _kept(self, refusal: Refusal) -> Refusal:
        """The refusal, and what is kept of the training."""
        if self._checkpoint is None or not self.history:
            return refusal
        last = self.history[-1]
        return Refusal(f"{refusal}; the last good epoch, {last['epoch']} of phase {last['phase']!r}, is kept in "
                       f"{self._checkpoint.path}")


def _clocks(since: tuple[float, float] = (0.0, 0.0)) -> tuple[float, float]:
    """Seconds, and seconds of processor time."""
    return time.perf_counter() - since[0], time.process_time() - since[1]


def _updated(admm: Admm) -> Metrics:
    """An update of Z and U as metrics; ρ is the one that the epoch was trained with."""
    rho = dict(admm.rho)
    residuals = admm.update()
    primal, dual = admm.worst
    return {"rho": max(rho.values(), default=0.0), "primal": primal, "dual": dual,
            "matrices": {name: {"rho": rho[name], **pair._asdict()} for name, pair in residuals.items()}}
