"""Networks in integers: the golden model that the hardware equals bit for bit, and its files.

``network.json`` holds layers, sizes and formats, ``weights.npz`` the integers; one hash covers both.
"""
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from circulant.sim import artifact
from circulant.sim.activation import Pwl
from circulant.sim.circulant import JointProduct, Product
from circulant.sim.fixed import Format, Integers, Reals
from circulant.sim.gru import Gru
from circulant.sim.linear import Linear
from circulant.sim.lstm import Lstm
from circulant.sim.reference import check_chain, check_data
from circulant.sim.refusal import Refusal
from circulant.sim.vectors import Vectors

__all__ = ["Layer", "Network", "Result"]

Layer = Linear | Gru | Lstm


@dataclass(frozen=True, eq=False)
class Result:
    """Golden outputs: the integers, and the real values that they stand for."""

    integers: Integers
    real: Reals


@dataclass(frozen=True, eq=False)
class Network:
    """A chain of quantized layers over vectors (N, inputs) or, with ``sequence``, over sequences (N, T, inputs).

    Raises:
        Refusal: as `check_chain`, and when a layer does not take the format that the one before gives.
    """

    name: str
    inputs: int
    sequence: bool
    layers: tuple[Layer, ...]

    KIND = "circulant-network"
    VERSION = 2

    def __post_init__(self) -> None:
        check_chain(self.name, self.inputs, self.sequence, self.layers)
        for before, after in zip(self.layers, self.layers[1:], strict=False):
            if before.output_format != after.input_format:
                raise Refusal(f"Layer {after.name!r} must take the {before.output_format} of layer {before.name!r}, "
                              f"not {after.input_format}; quantize the network again")

    @property
    def input_format(self) -> Format:
        return self.layers[0].input_format

    @property
    def output_format(self) -> Format:
        return self.layers[-1].output_format

    @property
    def outputs(self) -> int:
        """Values of one output vector."""
        return self.layers[-1].outputs

    @property
    def per_step(self) -> bool:
        """Whether there is an output vector for each step, not one for each sequence."""
        recurrent = [layer for layer in self.layers if isinstance(layer, Gru | Lstm)]
        return self.sequence and all(layer.returns == "sequence" for layer in recurrent)

    @property
    def hash(self) -> str:
        """SHA-256 of sizes, formats and weights."""
        return artifact.digest(self._body)

    def run(self, x: ArrayLike) -> Result:
        """Golden outputs for real inputs (N, T, inputs) or (N, inputs), which are first brought to the input format."""
        integers = self.run_integers(self.input_format.quantize(self._checked(x)))
        return Result(integers, self.output_format.real(integers))

    def run_integers(self, x: Integers) -> Integers:
        """Golden outputs for inputs that are integers of the input format already."""
        for layer in self.layers:
            x = layer(x)
        return x

    def vectors(self, x: ArrayLike) -> Vectors:
        """Test vectors for the hardware: the integer inputs of real ``x``, and the outputs expected."""
        inputs = self.input_format.quantize(self._checked(x))
        return Vectors(inputs, self.run_integers(inputs), self.hash)

    def save(self, folder: str | Path) -> None:
        """Write ``network.json`` and ``weights.npz``."""
        folder = Path(folder)
        artifact.write_npz(folder / "weights.npz", "circulant-weights", self.VERSION, self._arrays)
        artifact.write_json(folder / "network.json", self.KIND, self.VERSION, self._body)

    @classmethod
    def load(cls, folder: str | Path) -> "Network":
        """Read what `save` wrote.

        Raises:
            Refusal: when a file is missing, damaged, of another version, or the two do not belong together.
        """
        folder = Path(folder)
        body = artifact.read_json(folder / "network.json", cls.KIND, cls.VERSION)
        arrays, _ = artifact.read_npz(folder / "weights.npz", "circulant-weights", cls.VERSION)
        if artifact.digest_arrays(arrays) != body["weights"]:
            raise Refusal(f"{folder / 'weights.npz'} must be the weights of network.json beside it, but it is another "
                          "network's; quantize again")
        layers = tuple(_layer_from_json(entry, arrays) for entry in body["layers"])
        return cls(body["name"], body["inputs"], body["sequence"], layers)

    def _checked(self, x: ArrayLike) -> Reals:
        return check_data(f"Inputs of network {self.name!r}", x, self.inputs, self.sequence)

    @cached_property
    def _arrays(self) -> dict[str, np.ndarray]:
        arrays = {}
        for layer in self.layers:
            for role, product in layer.products.items():
                arrays[f"{layer.name}.{role}.weights"] = product.weights
                arrays[f"{layer.name}.{role}.bias"] = product.bias
            for role, pwl in _activations(layer).items():
                arrays[f"{layer.name}.{role}.slope"] = pwl.slope
                arrays[f"{layer.name}.{role}.base"] = pwl.base
            if isinstance(layer, Lstm) and layer.peephole is not None:
                arrays[f"{layer.name}.peephole"] = layer.peephole
        return arrays

    @cached_property
    def _body(self) -> dict[str, Any]:
        return {"name": self.name, "inputs": self.inputs, "sequence": self.sequence,
                "weights": artifact.digest_arrays(self._arrays),
                "layers": [_layer_as_json(layer) for layer in self.layers]}


def _activations(layer: Layer) -> dict[str, Pwl]:
    if isinstance(layer, Lstm):
        return {"sigmoid": layer.sigmoid, "tanh": layer.tanh, "tanh_cell": layer.tanh_cell}
    return {"sigmoid": layer.sigmoid, "tanh": layer.tanh} if isinstance(layer, Gru) else {}


_PRODUCT_FORMATS = ("weight", "input", "spectrum", "product", "output")


def _layer_as_json(layer: Layer) -> dict[str, Any]:
    entry: dict[str, Any] = {"kind": layer.kind, "name": layer.name, "inputs": layer.inputs}
    for role, product in layer.products.items():
        entry[role] = {"block_size": product.block_size, "twiddle_bits": product.twiddle_bits}
        entry[role] |= {name: getattr(product, name).as_json() for name in _PRODUCT_FORMATS}
    entry |= {role: pwl.as_json() for role, pwl in _activations(layer).items()}
    if isinstance(layer, Gru | Lstm):
        entry |= {"hidden": layer.hidden, "returns": layer.returns}
    if isinstance(layer, Lstm):
        entry |= {"cell": layer.cell.as_json(), "peephole_format": layer.peephole_format.as_json()}
    if isinstance(layer, Gru):
        return entry | {"reset": layer.reset}
    return entry | {"outputs": layer.outputs}


def _layer_from_json(entry: dict[str, Any], arrays: dict[str, np.ndarray]) -> Layer:
    name = entry["name"]

    def product(role: str) -> Product:
        formats = {field: Format.from_json(entry[role][field]) for field in _PRODUCT_FORMATS}
        return Product(arrays[f"{name}.{role}.weights"], arrays[f"{name}.{role}.bias"],
                       twiddle_bits=entry[role]["twiddle_bits"], **formats)

    def pwl(role: str) -> Pwl:
        data = entry[role]
        return Pwl(data["function"], Format.from_json(data["input"]), Format.from_json(data["output"]),
                   Format.from_json(data["slope"]), arrays[f"{name}.{role}.slope"], arrays[f"{name}.{role}.base"])

    if entry["kind"] == Gru.kind:
        gates = JointProduct((product("input_product"), product("recurrent_product")))
        x, h = product("candidate_input"), product("candidate_recurrent")
        before = entry["reset"] == "before"
        return Gru(name, entry["inputs"], entry["hidden"], entry["returns"], entry["reset"], gates,
                   JointProduct((x, h)) if before else x, None if before else h, pwl("sigmoid"), pwl("tanh"))
    if entry["kind"] == Lstm.kind:
        return Lstm(
            name, entry["inputs"], entry["hidden"], entry["outputs"], entry["returns"],
            JointProduct((product("input_product"), product("recurrent_product"))),
            product("projection") if "projection" in entry else None, arrays.get(f"{name}.peephole"),
            Format.from_json(entry["peephole_format"]), Format.from_json(entry["cell"]),
            pwl("sigmoid"), pwl("tanh"), pwl("tanh_cell"))
    if entry["kind"] == Linear.kind:
        return Linear(name, entry["inputs"], entry["outputs"], product("product"))
    raise Refusal(f"network.json: field 'kind' of layer {name!r} must be 'gru', 'lstm' or 'linear', not "
                  f"{entry['kind']!r}; read it with the version of circulant that wrote it")
