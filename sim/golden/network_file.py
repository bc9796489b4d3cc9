"""The files of a golden network: ``network.json`` holds layers, sizes and formats, ``weights.npz`` the integers.

One hash covers both.
"""
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from circulant.sim import artifact
from circulant.sim.arith.fixed import Integers
from circulant.sim.files.schema import WAY_OUT, differing, shown
from circulant.sim.golden.rules import NETWORK
from circulant.sim.golden.serial import layer_arrays, layer_as_json, layer_from_json
from circulant.sim.refusal import Refusal

if TYPE_CHECKING:
    from circulant.sim.golden.network import Network

__all__ = ["KIND", "VERSION", "arrays_of", "body", "read", "write"]

KIND, VERSION = "circulant-network", 4


def body(network: "Network") -> dict[str, Any]:
    """The contents of ``network.json`` behind its header."""
    ragged = {"ragged": True} if network.ragged else {}  # Networks from before it was there keep their hash.
    return {"name": network.name, "inputs": network.inputs, "sequence": network.sequence,
            "shape": list(network.shape), **ragged, "weights": artifact.digest_arrays(arrays_of(network)),
            "layers": [layer_as_json(layer) for layer in network.layers]}


def arrays_of(network: "Network") -> dict[str, Integers]:
    """The contents of ``weights.npz`` by name."""
    return {name: array for layer in network.layers for name, array in layer_arrays(layer).items()}


def write(network: "Network", folder: str | Path) -> None:
    """Write both files."""
    folder = Path(folder)
    artifact.write_npz(folder / "weights.npz", "circulant-weights", VERSION, arrays_of(network))
    artifact.write_json(folder / "network.json", KIND, VERSION, network.body)


def read(folder: str | Path, make: "Callable[..., Network]") -> "Network":
    """Read what `write` wrote.

    Parameters:
        make: the network of its fields.

    Raises:
        Refusal: when a file is missing, damaged, of another version, breaks `sim.golden.rules.NETWORK`, or the two do
            not belong together.
    """
    folder = Path(folder)
    path = folder / "network.json"
    said = artifact.read_json(path, KIND, VERSION, NETWORK)
    arrays, _ = artifact.read_npz(folder / "weights.npz", "circulant-weights", VERSION)
    if artifact.digest_arrays(arrays) != said["weights"]:
        raise Refusal(f"{folder / 'weights.npz'} must be the weights of network.json beside it, but it is another "
                      "network's; quantize again")
    try:
        layers = tuple(layer_from_json(entry, arrays) for entry in said["layers"])
        made = make(said["name"], said["inputs"], said["sequence"], layers=layers, shape=tuple(said["shape"]),
                    ragged=said.get("ragged", False))
    except Refusal as refusal:
        raise Refusal(f"{path}: {refusal}") from None
    if made.hash != said["hash"]:  # What says the same twice in the file contradicts itself.
        field, was, now = next(differing({**said, "hash": made.hash}, {**made.body, "hash": made.hash}))
        raise Refusal(f"{path}: field {field!r} must be {shown(now)}, as the other fields and the weights have it, "
                      f"not {shown(was)}; {WAY_OUT}")
    return made
