"""The files of a golden network: ``network.json`` holds nodes, sizes and formats, ``weights.npz`` the integers.

One hash covers both.
"""
from pathlib import Path
from typing import TYPE_CHECKING

from circulant.sim import artifact
from circulant.sim.arith.fixed import Integers
from circulant.sim.files.schema import SHA, WAY_OUT, Flag, Int, Kinds, Later, Listing, Table, differing, shown
from circulant.sim.golden import version4
from circulant.sim.kinds.registry import KINDS, entries, layer_as_json, layer_from_json
from circulant.sim.passes.bases import layer_arrays
from circulant.sim.passes.files import Entry
from circulant.sim.passes.layer import Arrays
from circulant.sim.passes.rules import GRID, NAME, SIZE
from circulant.sim.refusal import Refusal
from circulant.sim.shape.graph import Input, Node
from circulant.sim.shape.window import Flow

if TYPE_CHECKING:
    from circulant.sim.golden.network import Network

__all__ = ["KIND", "NETWORK", "NODE", "VERSION", "arrays_of", "body", "read", "write"]

KIND, VERSION = "circulant-network", 5

_INPUT = Table({"name": NAME, "size": SIZE, "sequence": Flag(), "shape": Listing(SIZE, most=3)},
               {"grid": GRID, "axes": Listing(Int(0, 2), 2, 3)})

NODE = Later(lambda: Kinds("kind", entries(KINDS, {"sources": Listing(NAME, 1, 64)})))

NETWORK = Table({"name": NAME, "weights": SHA, "inputs": Listing(_INPUT, 1, 1000), "outputs": Listing(NAME, 1, 1000),
                 "nodes": Listing(NODE, 1, 100_000)}, {"ragged": Flag()})

_VERSIONS = {VERSION: NETWORK, version4.VERSION: version4.NETWORK}


def body(network: "Network") -> Entry:
    """The contents of ``network.json`` behind its header."""
    ragged = {"ragged": True} if network.ragged else {}
    return {"name": network.name, **ragged, "weights": artifact.digest_arrays(arrays_of(network)),
            "inputs": [_as_json(each) for each in network.inputs],
            "nodes": [layer_as_json(node.layer) | {"sources": list(node.sources)} for node in network.nodes],
            "outputs": list(network.outputs)}


def _as_json(given: Input) -> Entry:
    grid = {} if given.flow.grid is None else {"grid": list(given.flow.grid)}
    return {"name": given.name, "size": given.flow.size, **grid, "sequence": given.flow.sequence,
            "shape": list(given.shape), **({"axes": list(given.axes)} if given.axes else {})}


def arrays_of(network: "Network") -> dict[str, Integers]:
    """The contents of ``weights.npz`` by name."""
    return {name: array for layer in network.layers for name, array in layer_arrays(layer).items()}


def write(network: "Network", folder: str | Path) -> None:
    """Write both files."""
    folder = Path(folder)
    artifact.write_npz(folder / "weights.npz", "circulant-weights", VERSION, arrays_of(network))
    artifact.write_json(folder / "network.json", KIND, VERSION, network.body)


def read(folder: str | Path, make: "type[Network]") -> "Network":
    """Read what `write` wrote, or what version 4 has of it.

    Parameters:
        make: the class.

    Raises:
        Refusal: when a file is missing, damaged, of another version, breaks its rule, or the two do not belong
            together.
    """
    folder = Path(folder)
    path = folder / "network.json"
    version, said = artifact.read_json_of(path, KIND, _VERSIONS)
    arrays, _ = artifact.read_npz(folder / "weights.npz", "circulant-weights", version)
    if artifact.digest_arrays(arrays) != said["weights"]:
        raise Refusal(f"{folder / 'weights.npz'} must be the weights of network.json beside it, but it is another "
                      "network's; quantize again")
    try:
        made = (version4.made(said, arrays, make.chain) if version == version4.VERSION else
                _network(said, arrays, make))
        now = version4.body(made, said["weights"]) if version == version4.VERSION else made.body
    except Refusal as refusal:
        raise Refusal(f"{path}: {refusal}") from None
    if artifact.digest(now) != said["hash"]:  # What says the same twice in the file contradicts itself.
        field, was, due = next(differing(said, {**now, "hash": said["hash"]}))
        raise Refusal(f"{path}: field {field!r} must be {shown(due)}, as the other fields and the weights have it, "
                      f"not {shown(was)}; {WAY_OUT}")
    if version != VERSION:
        object.__setattr__(made, "former_hash", said["hash"])
    return made


def _network(said: Entry, arrays: Arrays, make: "type[Network]") -> "Network":
    inputs = tuple(Input(entry["name"], Flow(entry["size"], tuple(entry["grid"]) if "grid" in entry else None,
                                             entry["sequence"]), tuple(entry["shape"]), tuple(entry.get("axes", ())))
                   for entry in said["inputs"])
    nodes = tuple(Node(layer_from_json(entry, arrays), tuple(entry["sources"])) for entry in said["nodes"])
    return make(said["name"], inputs, nodes, tuple(said["outputs"]), ragged=said.get("ragged", False))
