"""The folder of all data sets, found without torch, so that `circulant doctor` can name it."""
import os
from pathlib import Path

__all__ = ["data_folder"]


def data_folder() -> Path:
    """The folder CIRCULANT_DATA with a folder for each data set, else ``shared/data`` beside the project."""
    if own := os.environ.get("CIRCULANT_DATA"):
        return Path(own).absolute()
    return Path(__file__).resolve().parents[3] / "shared" / "data"
