"""Recurrent layers at the papers' scale: cycles per step, measured under Verilator against the golden model."""
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from circulant.hw import generate
from circulant.hw.plan import layer_multiplications
from circulant.sim.cosim import verify
from circulant.sim.network import Network
from circulant.sim.quantize import quantize
from circulant.sim import reference

__all__ = ["command"]

STEPS = 24
"""Of a sequence; its first steps fill the pipeline."""
