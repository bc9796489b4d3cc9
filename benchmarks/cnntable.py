"""The table of networks over images in docs/results.md, beside CirCNN's, from the JSON of `benchmarks cnn`."""
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from benchmarks import marks

__all__ = ["BEGIN", "END", "document", "load", "write"]

BEGIN, END = "<!-- cnn: begin -->", "<!-- cnn: end -->"

NAMES = {
    "mnist-cnn": "LeNet-5 for hardware, MNIST", "lenet5": "LeNet-5, MNIST",
    "mnist-mlp": "perceptron 784-1024-512-10, MNIST", "cifar10": "CNN, CIFAR-10 (JPEG q75)",
    "cifar10-cnn": "CNN, CIFAR-10 (JPEG q75)",
    "vgg": "VGG-like, CIFAR-10 (JPEG q75)", "resnet8": "ResNet-8, CIFAR-10 (JPEG q75)",
    "cifar10-vgg": "VGG-like, CIFAR-10 (JPEG q75)", "cifar10-resnet8": "ResNet-8, CIFAR-10 (JPEG q75)",
    "crnn": "CRNN (convolutions, GRU), FSDD",
}

PAPER = ("| *MNIST 3 (CNN)* | *CirCNN's group, Cyclone V 5CEA9, not checked against the paper* | *99.0 %* | | "
         "*363,000* | *342 DSP blocks* | | | |")
"""Wang et al. 2018 (arXiv 1802.06402); the device has 342 DSP blocks of two 18 × 19 products each."""

NEEDED = ("model", "trained", "tested", "accuracy", "cycles_per_image", "cycles_planned", "images_per_s_at_200_mhz",
          "multipliers", "budget", "utilisation", "images", "mismatches", "verilog_lines", "slowest_layer")


def load(files: Iterable[Path]) -> list[dict[str, Any]]:
    """
    Raises:
        click.ClickException: when a file lacks a figure.
    """
    found = []
    for file in files:
        figures = json.loads(file.read_text("utf-8"))
        if missing := [name for name in NEEDED if name not in figures]:
            raise click.ClickException(f"{file} must hold the figures of `python -m benchmarks cnn --json`, but it has "
                                       f"no {missing[0]}; measure it again")
        found.append(figures)
    return sorted(found, key=lambda each: ([*NAMES].index(each["model"]) if each["model"] in NAMES else len(NAMES)))


def document(found: Iterable[Mapping[str, Any]]) -> str:
    """The Markdown of all figures."""
    return "\n".join(["| network | weights | quantized accuracy | cycles an image (planned) | images/s at 200 MHz | "
                      "multipliers (budget) | slowest layer's array at work | verified under Verilator | Verilog |",
                      "|---|---|---|---|---|---|---|---|---|", *map(_line, found), PAPER])


def _line(each: Mapping[str, Any]) -> str:
    return (f"| {NAMES.get(each['model'], each['model'])} | {each['trained']} | {each['accuracy']:.2%} of "
            f"{each['tested']:,} | {each['cycles_per_image']:,.0f} ({each['cycles_planned']:,.0f}) | "
            f"{each['images_per_s_at_200_mhz']:,.0f} | {each['multipliers']} ({each['budget']}) | "
            f"{each['utilisation']:.0%} of the cycles ({each['slowest_layer']}) | {each['images']} samples, "
            f"{each['mismatches']} mismatches | {each['verilog_lines']:,} lines |")


def write(path: Path, found: Iterable[Mapping[str, Any]]) -> None:
    """Replace what stands between the two marks of a document.

    Raises:
        click.ClickException: when it has not both marks.
    """
    marks.replace(path, BEGIN, END, f"{document(found)}\n")
