"""The communication of the processes of a training: gradients, as they are or compressed, or weights now and then."""
import time
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, distributed, nn, optim
from torch.nn.parallel import DistributedDataParallel

from circulant.sim.refusal import Refusal
from circulant.training.loop.optimize import choose
from circulant.training.loop.runtime import ProcessGroup

__all__ = ["COMMUNICATIONS", "Channel", "quotas"]

COMMUNICATIONS = ("allreduce", "fp16", "powersgd", "local")

PERIOD = 4
"""Batches of all processes together between two averages of their weights."""

RANK = 4
"""Rank of the matrices that PowerSGD sends."""

BEGIN = 10
"""Steps that PowerSGD sends whole, at the beginning."""


class Channel:
    """The communication of a team: how `shared` models agree, and how much is sent.

    "allreduce" is the mean of the gradients (synchronous SGD); "fp16" rounds what is sent; "powersgd" sends gradients
    of matrices as products of two thin ones, and adds what is left to the next (Vogels et al. 2019). With "local" each
    process makes steps of its own, and weights are averaged after `PERIOD` batches of all (local SGD, Lin et al. 2018).
    A faster process takes more of them, in proportion to its pace in the rounds before, and its weights count as much
    more: a slow one holds up no other.

    Members:
        sent: bytes that a process has given to reductions of gradients or weights.
        pace: batches a second of each process, where steps are local; empty at the beginning.
    """

    def __init__(self, team: ProcessGroup, name: str = "allreduce") -> None:
        choose("A communication", name, COMMUNICATIONS)
        self.team, self.name, self.sent, self.pace = team, name, 0, list[float]()

    @property
    def local(self) -> bool:
        """Whether processes make steps of their own."""
        return self.name == "local" and self.team.size > 1

    def shared(self, model: nn.Module) -> nn.Module:
        """The model whose gradients are the means over all processes; its parameters are those of the first."""
        if self.team.size == 1:
            return model
        run = self.team.shared(model)
        assert isinstance(run, DistributedDataParallel)
        run.register_comm_hook(*self._hook())
        return run

    def _hook(self) -> tuple[Any, Any]:
        from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, post_localSGD_hook, powerSGD_hook

        world: Any = distributed.group.WORLD
        if self.name == "local":
            alone, _ = distributed.new_subgroups(group_size=1)  # torch's own choice, None, is one group of a machine.
            state = post_localSGD_hook.PostLocalSGDState(world, alone, 0, post_local_gradient_allreduce=False)
            return state, post_localSGD_hook.post_localSGD_hook
        if self.name == "powersgd":
            compressed = powerSGD_hook.PowerSGDState(world, RANK, start_powerSGD_iter=BEGIN)
            return compressed, self._counted(powerSGD_hook.powerSGD_hook, compressed)
        if self.name == "fp16":
            return world, self._counted(default_hooks.fp16_compress_hook, None, size=2)
        return world, self._counted(default_hooks.allreduce_hook, None)

    def _counted(self, hook: Any, compressed: Any, size: int = 4) -> Any:
        """A hook whose bytes are counted."""
        def counted(state: Any, bucket: Any) -> Any:
            before = compressed.total_numel_after_compression if compressed else 0
            numbers = bucket.buffer().numel()  # The buffer may be changed in place.
            found = hook(state, bucket)
            after = compressed.total_numel_after_compression if compressed else 0
            self.sent += size * (after - before or numbers)
            return found

        counted.__annotations__.clear()  # DDP wants its own types there, or none.
        return counted

    def rounds(self, optimizer: optim.Optimizer) -> "Rounds":
        """The steps of an optimizer between averages of its weights."""
        return Rounds(self, optimizer)


class Rounds:
    """Local steps, at whose end weights are averaged, through torch's `PostLocalSGDOptimizer`.

    Members:
        optimizer: whose last step of a round averages.
    """

    def __init__(self, channel: Channel, optimizer: optim.Optimizer) -> None:
        from torch.distributed.algorithms.model_averaging.averagers import ModelAverager
        from torch.distributed.optim import PostLocalSGDOptimizer

        rounds = self

        class Averager(ModelAverager):
            """Averages when the steps of a round are done."""

            def average_parameters(self, params: Any) -> None:
                rounds.done([weight for group in params for weight in group["params"]])

        self._channel, self._team = channel, channel.team
        self._left, self._began = 0, 0.0
        self._quotas = list[int]()
        self.optimizer: optim.Optimizer = PostLocalSGDOptimizer(optimizer, Averager())

    def split(self, batches: list[Tensor]) -> Iterator[tuple[list[Tensor], int]]:
        """The batches of an epoch that this process takes, round by round, and how many there are in the round."""
        length = PERIOD * self._team.size
        count = max(1, round(len(batches) / length))
        for turn in range(count):
            these = batches[turn * len(batches) // count:(turn + 1) * len(batches) // count]
            if len(these) < self._team.size:  # All take all of them, rather than none.
                self._quotas, mine = [len(these)] * self._team.size, these
            else:
                self._quotas = quotas(self._channel.pace or [1.0] * self._team.size, len(these))
                begin = sum(self._quotas[:self._team.rank])
                mine = these[begin:begin + self._quotas[self._team.rank]]
            self._left, self._began = len(mine), time.perf_counter()
            yield mine, len(these)

    @torch.no_grad()
    def done(self, weights: list[Tensor]) -> None:
        """A step is done; the last one of a round averages, and measures the pace of each process."""
        self._left -= 1
        if self._left:
            return
        pace = self._quotas[self._team.rank] / max(time.perf_counter() - self._began, 1e-9)
        flat = nn.utils.parameters_to_vector(weights) * (self._quotas[self._team.rank] / sum(self._quotas))
        distributed.all_reduce(flat)
        self._channel.sent += flat.numel() * flat.element_size()
        nn.utils.vector_to_parameters(flat, weights)
        found = self._team.gather(pace)
        self._channel.pace = [(old + new) / 2 for old, new in zip(self._channel.pace or found, found, strict=True)]


def quotas(pace: list[float], batches: int) -> list[int]:
    """How many of a round's batches each process takes: in proportion to its pace, and one at least.

    Parameters:
        pace: batches a second of each.
        batches: no fewer than processes.
    """
    if batches < len(pace):
        raise Refusal(f"A round must have a batch for each of {len(pace)} processes, not {batches}; take smaller ones")
    found = [1] * len(pace)
    for _ in range(batches - len(pace)):  # Each next one to whoever would be done with it first.
        soonest = min(range(len(pace)), key=lambda at: (found[at] + 1) / pace[at])
        found[soonest] += 1
    return found
