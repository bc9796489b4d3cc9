"""torch: the block-circulant constraint, cells, ADMM, data, the training loop, and the way out to numpy."""
from circulant.training.admm import Admm, Residuals
from circulant.training.capture import ConversionReport, Entry, inspect
from circulant.training.cells import PeepholeLstm, ResetBeforeGru
from circulant.training.clone import clone
from circulant.training.constraint import (
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
from circulant.training.curves import Curves
from circulant.training.data import Dataset, load_data
from circulant.training.export import export, reference
from circulant.training.finetune import finetune
from circulant.training.grid import golden_paths
from circulant.training.loop import evaluate, fit
from circulant.training.models import ModelSettings, SequenceClassifier, build
from circulant.training.muon import Muon
from circulant.training.place import machine
from circulant.training.rates import try_rates
from circulant.training.score import score
from circulant.training.settings import TrainingSettings
from circulant.training.store import load_trained, save_trained
from circulant.training.task import Task, task_of
from circulant.training.train import Trained, train, train_admm, train_direct

__all__ = [
    "BlockCirculant", "compress", "decompress", "initialise", "inherit", "clone", "block_sizes", "assign", "storage",
    "Storage",
    "PeepholeLstm", "ResetBeforeGru",
    "inspect", "ConversionReport", "Entry",
    "Admm", "Residuals", "Muon",
    "Dataset", "load_data",
    "ModelSettings", "SequenceClassifier", "build",
    "evaluate", "fit", "score", "Task", "task_of",
    "Trained", "TrainingSettings", "train", "train_admm", "train_direct", "save_trained", "load_trained", "try_rates",
    "export", "reference", "Curves", "machine",
    "finetune", "golden_paths",
]
