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
    initialise,
    storage,
)
from circulant.training.data import Dataset, load_data
from circulant.training.export import export, reference
from circulant.training.loop import evaluate, fit
from circulant.training.models import ModelSettings, SequenceClassifier, build
from circulant.training.store import load_trained, save_trained
from circulant.training.train import Trained, TrainingSettings, train, train_admm

__all__ = [
    "BlockCirculant", "compress", "decompress", "initialise", "clone", "block_sizes", "assign", "storage", "Storage",
    "PeepholeLstm", "ResetBeforeGru",
    "inspect", "ConversionReport", "Entry",
    "Admm", "Residuals",
    "Dataset", "load_data",
    "ModelSettings", "SequenceClassifier", "build",
    "evaluate", "fit",
    "Trained", "TrainingSettings", "train", "train_admm", "save_trained", "load_trained",
    "export", "reference",
]
