"""Tasks of a test: workers have the folder of this file on their path."""
import os
import time
from pathlib import Path


def note(folder, word):
    """Keep that a task has run, and where; a worker that was told to is slow."""
    time.sleep(float(os.environ.get("SLOW", "0")))
    with (Path(folder) / "ran").open("a") as file:
        file.write(f"{word} {os.getpid()}\n")


def model(folder):
    note(folder, "model")
    return 100


def point(folder, number, model):
    """One of the points, the first time that it runs, waits for the end of its worker."""
    if number == 3 and not (Path(folder) / "victim").exists():
        (Path(folder) / "victim.part").write_text(str(os.getpid()))
        (Path(folder) / "victim.part").rename(Path(folder) / "victim")
        time.sleep(600)
    note(folder, f"point{number}")
    return model + number


def identity():
    """As `circulant.sweep.cluster` asks for it; a worker that was told to ends there."""
    if "DIES" in os.environ:
        os._exit(3)
    return "version", "sources"


def broken(model):
    raise ValueError(f"no point at {model}")
