"""torch: the block-circulant constraint, cells, ADMM, data, the training loop, and the export to numpy.

Every name below is fetched when it is first used, so that `circulant.training.data` needs no torch.
"""
from importlib import import_module
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

_HOME = {
    "blocks.admm": ("Admm", "Residuals"),
    "blocks.clone": ("clone",),
    "blocks.constraint": ("BlockCirculant", "Storage", "assign", "block_sizes", "compress", "decompress",
                          "inherit", "initialise", "storage"),
    "blocks.fixed": ("quantized",),
    "blocks.quantized_set": ("constrain_to_quantized", "golden_paths", "settled", "weight_formats"),
    "capture": ("ConversionReport", "Entry", "inspect"),
    "capture.onnx_network": ("from_onnx",),
    "conversion": ("export", "reference"),
    "data": ("Dataset", "load_data"),
    "loop.curves": ("Curves",),
    "loop.finetune": ("finetune",),
    "loop.loop": ("evaluate", "fit"),
    "loop.metrics": ("Metrics", "scored"),
    "loop.muon": ("Muon",),
    "loop.learning_rate_search": ("FACTORS", "PART", "Rates", "find_rate", "try_rates"),
    "loop.runtime": ("machine",),
    "loop.train": ("Trained", "TrainingResult", "train", "train_admm", "train_direct"),
    "models.cells": ("LinearRnn", "PeepholeLstm", "ResetBeforeGru", "StateSpace"),
    "models.models": ("SequenceClassifier", "build"),
    "models.scans": ("ComplexRecurrence", "DiagonalRecurrence", "MinGru", "MinLstm"),
    "scoring": ("score",),
    "settings": ("ModelSettings", "TrainingSettings"),
    "store": ("load_trained", "save_trained"),
    "task.task": ("Task", "task_of"),
}
"""By module its public names."""


def __getattr__(name: str) -> Any:
    module = next((module for module, names in _HOME.items() if name in names), None)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
