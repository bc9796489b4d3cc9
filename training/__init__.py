"""torch: the block-circulant constraint, ADMM, data, the training loop, and the way out to numpy."""
from circulant.training.admm import Admm, Residuals
from circulant.training.clone import clone
from circulant.training.constraint import BlockCirculant, block_sizes, compress, decompress
from circulant.training.curves import Curves
from circulant.training.data import Dataset, load_data
from circulant.training.export import export, reference
from circulant.training.loop import evaluate, fit
from circulant.training.models import ModelSettings, SequenceClassifier
from circulant.training.settings import TrainingSettings
from circulant.training.store import load_trained, save_trained
from circulant.training.task import Task, task_of
from circulant.training.train import Trained, train, train_admm, train_direct

__all__ = [
    "BlockCirculant", "compress", "decompress", "clone", "block_sizes",
    "Admm", "Residuals",
    "Dataset", "load_data",
    "ModelSettings", "SequenceClassifier",
    "evaluate", "fit", "Task", "task_of",
    "Trained", "TrainingSettings", "train", "train_admm", "train_direct", "save_trained", "load_trained",
    "export", "reference", "Curves",
]
