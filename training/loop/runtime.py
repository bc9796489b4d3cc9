"""The runtime of a training: CPU or GPU, precision, and the processes that `torchrun` started."""
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, distributed, nn
from torch.amp import GradScaler
from torch.nn.parallel import DistributedDataParallel

from circulant.sim.document import Document
from circulant.sim.refusal import Refusal

__all__ = ["ALONE", "PRECISIONS", "Precision", "ProcessGroup", "process_group", "machine", "choose_device"]

PRECISIONS: dict[str, torch.dtype | None] = {
    "auto": None, "float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


class Precision:
    """Products in a type of 16 bits, where that is wanted; weights stay float32.

    Autocast does not reach the steps of our recurrent layers. On a CPU these read torch's precision of float32 products
    instead, and "medium" tells them to multiply in bfloat16; products of 512 units are then three times as fast.

    Members:
        scaler: scales the loss so that gradients in float16 do not vanish; does nothing for the other types.
    """

    def __init__(self, name: str, device: torch.device) -> None:
        chosen = PRECISIONS[name]
        if chosen is None:
            whole = device.type != "cuda"
            chosen = torch.float32 if whole else torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
        self.dtype, self._device = chosen, device.type
        self.scaler = GradScaler(device.type, enabled=chosen == torch.float16)

    def autocast(self) -> torch.autocast:
        return torch.autocast(self._device, self.dtype, enabled=self.dtype != torch.float32)

    @contextmanager
    def products(self) -> Iterator[None]:
        """In its context float32 products may be carried out in this type, where that is bfloat16 on a CPU."""
        before = torch.get_float32_matmul_precision()
        if self._device == "cpu" and self.dtype == torch.bfloat16:
            torch.set_float32_matmul_precision("medium")
        try:
            yield
        finally:
            torch.set_float32_matmul_precision(before)


class ProcessGroup(NamedTuple):
    """The processes that train one model together, each with its rank."""

    rank: int = 0
    size: int = 1

    @property
    def leads(self) -> bool:
        """Whether this is the process that writes files and prints."""
        return self.rank == 0

    def total(self, values: Tensor) -> Tensor:
        """The sum over all processes, in place."""
        if self.size > 1:
            distributed.all_reduce(values)
        return values

    def gather(self, value: Any) -> list[Any]:
        """The values of all processes, by rank."""
        if self.size == 1:
            return [value]
        values: list[Any] = [None] * self.size
        distributed.all_gather_object(values, value)
        return values

    def shared(self, model: nn.Module) -> nn.Module:
        """The model with gradients that are the means over all processes; its parameters are those of the first."""
        if self.size == 1:
            return model
        # The buffers are aligned after each epoch: doing so for each batch would send the tables of all constraints.
        return DistributedDataParallel(model, forward_sync_buffers=False)

    def average(self, module: nn.Module) -> None:
        """Give every process the mean of the gradients of a module that is not in the model that is `shared`."""
        for parameter in module.parameters() if self.size > 1 else ():
            if parameter.grad is not None:
                distributed.all_reduce(parameter.grad)
                parameter.grad /= self.size

    def align(self, model: nn.Module) -> None:
        """Give every process the buffers of the first, such as the running means of a normalisation."""
        if self.size > 1:
            for buffer in model.buffers():
                distributed.broadcast(buffer, 0)


ALONE = ProcessGroup()

PATIENCE = timedelta(minutes=30)
"""For the others, at the beginning and at the end."""

_GROUPS = count()


@contextmanager
def process_group() -> Iterator[ProcessGroup]:
    """The team of the processes that `torchrun` started, or of this one alone.

    A process group that the caller has initialised is used as it is.
    """
    if distributed.is_available() and distributed.is_initialized():
        yield ProcessGroup(distributed.get_rank(), distributed.get_world_size())
        return
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield ALONE
        return
    # DistributedDataParallel imports this module, whose functions keep a group that there is by then, as defaults of
    # arguments. The group's threads would outlive it, and one that frees a tensor as the interpreter ends aborts.
    import_module("torch.distributed.nn")
    gpu = torch.cuda.is_available()
    if gpu:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
    stores: Any = distributed  # It does not say that it exports these.
    found, rank, size = next(stores.rendezvous("env://"))
    store = stores.PrefixStore(f"circulant {next(_GROUPS)}", found)  # No group may read what an earlier one left.
    store.set_timeout(PATIENCE)
    distributed.init_process_group("cpu:gloo,cuda:nccl" if gpu else "gloo", store=store, rank=rank, world_size=size)
    try:
        yield ProcessGroup(rank, size)
        # Sockets that close break what another process still receives, so all say first that they have received it.
        if store.add("ready to close", 1) == size:
            store.set("close", "now")
        store.wait(["close"])
    finally:
        distributed.destroy_process_group()


def choose_device(name: str) -> torch.device:
    """The device of a name; "auto" is a GPU where there is one, and each process of a team has its own.

    Raises:
        Refusal: when a GPU is asked for and there is none.
    """
    if name == "cpu" or (name == "auto" and not torch.cuda.is_available()):
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise Refusal("Device 'cuda' must be a GPU that torch can use, but it finds none; choose 'auto' or 'cpu'")
    return torch.device("cuda", torch.cuda.current_device())


def machine(device: str = "auto") -> Document:
    """The machine of a training: names of processor and GPU, cores, threads of one process, and torch's version.

    Raises:
        Refusal: as `place`.
    """
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    gpu = torch.cuda.get_device_name() if choose_device(device).type == "cuda" else ""
    return {"processor": names[0] if names else platform.processor() or platform.machine(), "gpu": gpu,
            "cores": os.cpu_count(), "threads": torch.get_num_threads(), "torch": torch.__version__}
