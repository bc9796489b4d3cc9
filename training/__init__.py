"""torch: the block-circulant constraint, ADMM, data, the training loop, and the way out to numpy."""
from circulant.training.admm import Admm, Residuals
from circulant.training.clone import clone
from circulant.training.constraint import BlockCirculant, block_sizes, compress, decompress
from circulant.training.data import Dataset, load_data
from circulant.training.export import export, reference
from circulant.training.loop import evaluate, fit
from circulant.training.models import ModelSettings, SequenceClassifier
from circulant.training.store import load_trained, save_trained
from circulant.training.train import Trained, TrainingSettings, train, train_admm

__all__ = [
    "BlockCirculant", "compress", "decompress", "clone", "block_sizes",
    "Admm", "Residuals",
    "Dataset", "load_data",
    "ModelSettings", "SequenceClassifier",
    "evaluate", "fit",
    "Trained", "TrainingSettings", "train", "train_admm", "save_trained", "load_trained",
    "export", "reference",
]
