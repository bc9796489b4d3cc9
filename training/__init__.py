"""torch: the block-circulant constraint, cells, ADMM, data, the training loop, and the export to numpy.

Every name below is fetched when it is first used, so that `circulant.training.data` needs no torch.
"""
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from circulant.training.blocks.admm import Admm, Residuals
    from circulant.training.blocks.clone import clone
    from circulant.training.blocks.constraint import (
        BlockCirculant,
        Storage,
        assign,
        block_sizes,
        compress,
        decompress,
        inherit,
        initialise,
        storage,
    )
    from circulant.training.blocks.fixed import quantized
    from circulant.training.blocks.quantized_set import (
        constrain_to_quantized,
        golden_paths,
        settled,
        weight_formats,
    )
    from circulant.training.capture import ConversionReport, Entry, inspect
    from circulant.training.capture.onnx_network import from_onnx
    from circulant.training.conversion import export, reference
    from circulant.training.data import Dataset, load_data
    from circulant.training.loop.curves import Curves
    from circulant.training.loop.finetune import finetune
    from circulant.training.loop.learning_rate_search import FACTORS, PART, Rates, find_rate, try_rates
    from circulant.training.loop.loop import evaluate, fit
    from circulant.training.loop.metrics import Metrics, scored
    from circulant.training.loop.muon import Muon
    from circulant.training.loop.runtime import machine
    from circulant.training.loop.train import Trained, TrainingResult, train, train_admm, train_direct
    from circulant.training.models.cells import LinearRnn, PeepholeLstm, ResetBeforeGru, StateSpace
    from circulant.training.models.models import SequenceClassifier, build
    from circulant.training.models.scans import ComplexRecurrence, DiagonalRecurrence, MinGru, MinLstm
    from circulant.training.scoring import score
    from circulant.training.settings import ModelSettings, TrainingSettings
    from circulant.training.store import load_trained, save_trained
    from circulant.training.task.task import Task, task_of

__all__ = [
    "BlockCirculant", "compress", "decompress", "initialise", "inherit", "clone", "block_sizes", "assign", "storage",
    "Storage",
    "PeepholeLstm", "ResetBeforeGru", "LinearRnn", "StateSpace", "MinGru", "MinLstm", "DiagonalRecurrence",
    "ComplexRecurrence",
    "inspect", "ConversionReport", "Entry",
    "Admm", "Residuals", "Muon",
    "Dataset", "load_data",
    "ModelSettings", "SequenceClassifier", "build",
    "evaluate", "fit", "score", "scored", "Metrics", "Task", "task_of",
    "Trained", "TrainingResult", "TrainingSettings", "train", "train_admm", "train_direct", "save_trained",
    "load_trained", "try_rates", "find_rate", "Rates", "FACTORS", "PART",
    "export", "reference", "from_onnx", "Curves", "machine",
    "finetune", "golden_paths", "weight_formats", "constrain_to_quantized", "settled", "quantized",
]


def __getattr__(name: str) -> Any:
    from circulant.sim.public import fetched

    return fetched(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
