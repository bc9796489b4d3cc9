"""The part of a design's ``manifest.json`` that a simulation reads: files, clock, reset, and the ports."""
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from circulant.sim import design
from circulant.sim.configuration import Configuration
from circulant.sim.refusal import Refusal

__all__ = ["INPUTS", "Manifest", "Port", "Repeats"]

CONFIG = "cfg"
INPUTS = ("addr", "wdata", "we", "re")
SIGNALS = (*INPUTS, "rdata", "rvalid")


@dataclass(frozen=True)
class Port:
    """A stream port, and how vectors of integers lie in its beats.

    Element i of a beat is bits ``[i * container_bits +: container_bits]``, sign extended; the last beat of a vector is
    filled up with zeros.

    Parameters:
        width: bits of an element, at most those of its container.
        elements, beats: size of one vector.
        pixels: side by side in a vector; 1 but where a first layer over images takes several at once.
        name: of the network's input or output, where there are several.
        per_step: whether a further port has a vector for each step of a sequence.
        vectors: of a sample, where a further port has them not ``per_step``.
    """

    prefix: str
    elements_per_beat: int
    container_bits: int
    width: int
    elements: int
    beats: int
    pixels: int = 1
    name: str = ""
    per_step: bool = True
    vectors: int = 1

    @property
    def beat_bytes(self) -> int:
        return self.elements_per_beat * self.container_bits // 8

    def pack(self, values: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Integers (..., elements) to little-endian beats (..., beats, beat_bytes)."""
        padding = self.beats * self.elements_per_beat - self.elements
        padded = np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, padding)])
        octets = np.ascontiguousarray(padded, "<i8").view(np.uint8).reshape(*padded.shape, 8)
        return octets[..., : self.container_bits // 8].reshape(*values.shape[:-1], self.beats, self.beat_bytes)

    def unpack(self, beats: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Beats (..., beats, beat_bytes) to the integers of whole containers (..., beats * elements_per_beat)."""
        containers = beats.shape[-2] * self.elements_per_beat
        octets = beats.reshape(*beats.shape[:-2], containers, self.container_bits // 8)
        sign = np.where(octets[..., -1:] & 0x80, 0xFF, 0).astype(np.uint8)
        filled = np.concatenate([octets, np.repeat(sign, 8 - octets.shape[-1], axis=-1)], axis=-1)
        return np.ascontiguousarray(filled).view("<i8")[..., 0].astype(np.int64)


@dataclass(frozen=True)
class Repeats:
    """Steps that layers which share arrays repeat behind a reset, in one sequence or in some of ``max_steps``.

    Parameters:
        cycles: from step to step; a mean.
        after: steps, whose cycles are others.
        steps: that are repeated from then on; their mean is that of ``cycles``, exactly.
    """

    cycles: float
    after: int
    steps: int


@dataclass(frozen=True)
class Manifest:
    """A generated design in ``folder``.

    Parameters:
        network: hash of the network that it was made from.
        verilog, images: files of the folder; the images are read by the circuit under their bare names.
        per_step: whether there is an output vector for each step, not one for each sequence.
        vectors: output vectors of a sample that gives them not ``per_step``: 1, or as many as an image has rows that
            become steps.
        streams: sequences that are interleaved, a vector of each in turn.
        max_steps: vectors of a sequence at the most; None where any length will do.
        over_images: whether a sequence is an image, pixel by pixel.
        gathered: cycles of a vector in all layers together, where some of them wait for whole sequences; else 0.
        vectors_of_image: cycles of the layers that take what becomes of an image as vectors, which begin when it is
            whole.
        cycles: of the slowest layer for a vector of a sequence, or for an image or a single vector.
        planned_step: cycles of a step at the most, of interleaved streams one more than planned, as their steps take
            part of a cycle more on the average; None where the plan is none for each step: for layers which share an
            array see ``repeats``, and a linear layer has room for three vectors, so that one of a few cycles waits
            for those on their way.
        repeats: of layers that share arrays; None where their cycles are an estimate, and in other designs.
        latency_spaced, latency_contiguous: planned cycles from the last beat of a sample to the last one of its result,
            see `circulant.sim.cosim.judge.pace.Figures`; None where there is no exact plan of it.
        configuration: address map of the configuration port; None without one.
        flags: outputs that say of what came that something was wrong with it.
        more_inputs, more_outputs: further ports; what is said of input and output is of the first ones.
    """

    folder: Path
    network: str
    top: str
    clock: str
    reset: str
    verilog: tuple[Path, ...]
    images: tuple[Path, ...]
    input: Port
    output: Port
    per_step: bool
    streams: int
    max_steps: int | None
    over_images: bool = False
    gathered: int = 0
    vectors_of_image: int = 0
    cycles: int = 1
    planned_step: int | None = None
    repeats: Repeats | None = None
    vectors: int = 1
    latency_spaced: int | None = None
    latency_contiguous: int | None = None
    configuration: Configuration | None = None
    flags: tuple[str, ...] = ()
    more_inputs: tuple[Port, ...] = ()
    more_outputs: tuple[Port, ...] = ()

    @property
    def outputs(self) -> tuple[Port, ...]:
        """All outputs."""
        return self.output, *self.more_outputs

    @property
    def inputs(self) -> tuple[Port, ...]:
        """All inputs."""
        return self.input, *self.more_inputs

    @property
    def stepwise(self) -> bool:
        """Whether the result of each vector comes before the next one does."""
        return (self.per_step and not self.over_images and not self.gathered
                and all(port.per_step for port in (*self.more_inputs, *self.more_outputs)))

    def require_configuration(self) -> Configuration:
        """
        Raises:
            Refusal: when the design has no configuration port.
        """
        if self.configuration is None:
            raise Refusal(f"{self.folder / 'manifest.json'} must be of a reloadable design, but it has fixed images; "
                          "generate it with hardware.reloadable=true")
        return self.configuration

    @property
    def config(self) -> dict[str, str]:
        """The signals of the configuration port by what they are, if there is one."""
        return {} if self.configuration is None else {name: f"{CONFIG}_{name}" for name in SIGNALS}

    @classmethod
    def load(cls, folder: str | Path) -> "Manifest":
        """Read ``manifest.json`` of a folder and see that its files are as they were generated.

        Raises:
            Refusal: when a file is missing or changed, or the manifest is damaged or of another version.
        """
        folder = Path(folder)
        path = folder / "manifest.json"
        body = design.read(folder)
        layers = body.get("layers", [])
        cycles = math.ceil(max([1.0, *(layer["cycles"] for layer in layers)]))
        steady = any(layer["cycles"] > cycles - 1 and layer.get("kind") != "linear" for layer in layers) and not any(
            layer.get("limit", "").startswith("sharing:") for layer in layers)
        doubts = body.get("estimates", ())
        steady = steady and "cycles" not in doubts
        waits = body["max_steps"] is not None or body.get("late", False)
        return cls(
            folder, body["network"], top=body["top"], clock=body["clock"], reset=body["reset"],
            verilog=tuple(folder / name for name in body["verilog"]),
            images=tuple(folder / name for name in body["images"]),
            input=_port(path, body["input"]), output=_port(path, body["output"]),
            per_step=body["output"]["per"] == "step",
            streams=body["streams"], max_steps=body["max_steps"], over_images=body.get("over_images", False),
            gathered=math.ceil(sum(layer["cycles"] for layer in layers)) if waits else 0,
            vectors_of_image=_behind_images(layers),
            cycles=cycles, planned_step=cycles + (body["streams"] > 1) if steady else None,
            repeats=Repeats(max(layer["cycles"] for layer in layers if layer.get("per") != "sequence"),
                            **body["repeats"]) if "repeats" in body else None,
            vectors=body["output"].get("vectors", 1),
            latency_spaced=None if "latency_spaced" in doubts else body.get("latency_spaced"),
            latency_contiguous=None if "latency_contiguous" in doubts else body.get("latency_contiguous"),
            flags=tuple(port["name"] for port in body.get("ports", [])
                        if port["name"] in ("malformed", "overflow", "uncorrected")),
            configuration=Configuration.from_json(body["configuration"], path) if "configuration" in body else None,
            more_inputs=tuple(_port(path, port) for port in body.get("more_inputs", ())),
            more_outputs=tuple(_port(path, port) for port in body.get("more_outputs", ())),
        )


def _behind_images(layers: Sequence[Mapping[str, Any]]) -> int:
    kinds = [layer.get("kind") for layer in layers]
    first = kinds.index("flatten") if "flatten" in kinds else len(layers)
    return math.ceil(sum(layer["cycles"] for layer in layers[first:]))


def _port(path: Path, body: Mapping[str, Any]) -> Port:
    port = Port(body["prefix"], elements_per_beat=body["elements_per_beat"], container_bits=body["container_bits"],
                width=body["format"]["width"],
                elements=body["elements"], beats=body["beats"], pixels=body.get("pixels", 1),
                name=body.get("name", ""), per_step=body.get("per", "step") == "step",
                vectors=body.get("vectors", 1))
    if port.container_bits % 8 or not port.width <= port.container_bits <= 64:
        raise Refusal(f"{path}: container_bits of {port.prefix} must be whole bytes that hold {port.width} bits, at "
                      f"most 64, not {port.container_bits}; generate the design again")
    if port.elements % port.pixels:
        raise Refusal(f"{path}: the {port.elements} elements of {port.prefix} must be {port.pixels} pixels, but they "
                      "cannot; generate the design again")
    if port.beats != -(-port.elements // port.elements_per_beat):
        raise Refusal(f"{path}: {port.prefix} must take {-(-port.elements // port.elements_per_beat)} beats for "
                      f"{port.elements} elements of {port.elements_per_beat} a beat, not {port.beats}; "
                      "generate the design again")
    return port
