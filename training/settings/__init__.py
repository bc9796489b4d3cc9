"""Settings of data, model, compression and training, each declared once: its default, its legal values, its meaning.

An experiment file has them as tables, the functions of `circulant.training` take them as arguments; reading them needs
no torch.
"""
from circulant.training.settings.compression import CompressionSettings
from circulant.training.settings.data import DataSettings
from circulant.training.settings.model import ModelSettings
from circulant.training.settings.training import TrainingSettings

__all__ = ["CompressionSettings", "DataSettings", "ModelSettings", "TrainingSettings"]
