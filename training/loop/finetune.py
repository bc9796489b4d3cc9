"""Fine-tuning on the integers of the hardware: ADMM towards the joint set, then straight through the rounding."""
from collections.abc import Callable, Mapping
from contextlib import nullcontext

import torch
from torch import nn

from circulant.sim.arith.weight_grid import WeightGrid
from circulant.sim.golden.network import Network
from circulant.training.blocks.admm import Admm
from circulant.training.blocks.approximate import multiplying
from circulant.training.blocks.constraint import block_sizes, compress, decompress
from circulant.training.blocks.quantized_set import constrain_to_quantized, settled
from circulant.training.loop.distillation import DistillationTask
from circulant.training.loop.loop import Fit, Recipe
from circulant.training.loop.metrics import Metrics
from circulant.training.loop.runtime import choose_device
from circulant.training.loop.sensitivity import Sensitivity, refused
from circulant.training.settings.training import TrainingSettings
from circulant.training.task.samples import Given, samples
from circulant.training.task.task import Task, task_of

__all__ = ["Show", "finetune"]

Show = Callable[[str, int, int, Metrics], None]
"""Called after each epoch with the phase, "joint" or "finetune", the epoch from 1, their number, and the metrics."""

SEEDS = {"joint": 4, "finetune": 5}
"""Added to the seed, so that no phase repeats the order of another."""


def finetune(model: nn.Module, data: Given, forms: Mapping[str, WeightGrid], *, epochs: int, joint_epochs: int = 0,
             test: Given | None = None, task: Task | None = None, settings: TrainingSettings | None = None,
             rate: float = 1e-3, noise: float = 0.0, sensitivity: float = 0.0, labels: float = 0.0,
             through: Network | None = None, progress: Show | None = None) -> nn.Module:
    """A copy of a trained model whose weights are integers of the formats, as good as training makes them.

    Parameters:
        model: with the block sizes that it shall have; it stays as it is.
        forms: by parameter name, of the spectra of a matrix; others stay as they are.
        data, test: as for `circulant.training.task.samples.samples`.
        joint_epochs: of ADMM on dense weights, with the joint set of `Grid` in place of the block-circulant one, before
            the hard projection into it.
        epochs: of training inside the set, straight through the rounding.
        noise: the probability with which each bit of the weights is flipped in each forward pass of these epochs.
        sensitivity: the same probability in a penalty on what such flips do to the outputs, see `Sensitivity`.
        through: the golden network of the model, where its products are approximate: those of these epochs are, too.
        task: None for that of the data. The loss is the distance from the model's outputs, ``labels`` of it its own.
        settings: batch, optimizer, ρ and the rest; the learning rate of both phases is ``rate``.

    Returns:
        The model with its weights on the grid, as ordinary block-circulant or dense ones.

    Raises:
        Refusal: as `Fit`, `Admm`, `circulant.training.blocks.approximate.multiplying` and
            `circulant.training.loop.sensitivity.refused`.
    """
    s = settings or TrainingSettings()
    read = samples(data, test, task=task.kind if task else None, seed=s.seed, batch=s.batch_size)
    task, teacher, sizes = task or task_of(read), model, block_sizes(model)

    def run(phase: str, phase_model: nn.Module, count: int, admm: Admm | None = None) -> None:
        recipe = Recipe(count, lr=rate, batch=s.batch_size, seed=s.seed + SEEDS[phase], decay=s.decay, warmup=0,
                        optimizer=s.optimizer, weight_decay=s.weight_decay, clip=s.clip, precision=s.precision)
        rise = Sensitivity(phase_model, sensitivity) if sensitivity and admm is None else None
        distilled = DistillationTask(task, teacher, weight=1 - labels, sensitivity=rise)
        fit = Fit(phase_model, read, distilled, recipe, add_gradient=admm.add_penalty_gradient if admm else None)
        for epoch in range(1, count + 1):
            with refused() if rise else nullcontext():
                metrics: Metrics = fit.run_epoch()
            if admm is not None:
                admm.update()
                metrics["primal"], metrics["dual"] = admm.worst
            if progress is not None:
                progress(phase, epoch, count, metrics)

    where = choose_device(s.device)
    if joint_epochs:
        free = decompress(model).to(where)
        run("joint", free, joint_epochs, Admm(free, sizes, rho=s.rho, schedule=s.rho_schedule, growth=s.rho_growth,
                                              rho_max=s.rho_max, tolerance=s.tolerance, updates=joint_epochs,
                                              forms=forms))
        model = compress(free, sizes)
    tuned = constrain_to_quantized(model, forms, noise=noise).to(where)
    if epochs:
        with nullcontext() if through is None else multiplying(tuned, through):
            run("finetune", tuned, epochs)
    with torch.no_grad():
        return settled(tuned).cpu()
