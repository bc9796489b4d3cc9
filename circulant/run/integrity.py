"""Whether the files of a run folder are those that its records were made with: network, vectors, design, and what was
verified of them."""
from collections.abc import Mapping
from typing import Any

from circulant.run.run_folder import Run
from circulant.sim import artifact, design
from circulant.sim.chips import FOLDER, hash_of
from circulant.sim.golden.network import Network
from circulant.sim.refusal import Refusal
from circulant.sim.vectors import Vectors

__all__ = ["design_hash", "network_of", "played_of", "require_verified", "vectors_of"]


def network_of(run: Run, quantized: Mapping[str, Any]) -> Network:
    """
    Raises:
        Refusal: when the network is not that of the record ``quantized``.
    """
    network = Network.load(run.folder)
    if network.hash != quantized["hashes"]["network"]:
        raise Refusal(f"{run.path('network.json')} must be the network of quantization.json beside it, but it is "
                      f"another; run {run.command('quantize')} again")
    return network


def vectors_of(run: Run, quantized: Mapping[str, Any]) -> Vectors:
    """
    Raises:
        Refusal: when the vectors are not those of the record ``quantized``.
    """
    path = run.path("vectors.npz")
    vectors = Vectors.load(path)
    if vectors.network != quantized["hashes"]["network"]:
        raise Refusal(f"{path} must be of the network beside it, but it is another's; run {run.command('quantize')} "
                      "again")
    if artifact.npz_hash(path) != quantized["hashes"]["vectors"]:
        raise Refusal(f"{path} must be the vectors of quantization.json beside it, but they are others; run "
                      f"{run.command('quantize')} again")
    return vectors


def played_of(run: Run, quantized: Mapping[str, Any]) -> tuple[Network, Vectors]:
    """Network and vectors as hardware and C have them: with the choice of the largest output where the run asks for it.

    Raises:
        Refusal: as `network_of` and `vectors_of`.
    """
    network, vectors = network_of(run, quantized), vectors_of(run, quantized)
    if not run.experiment.hardware.argmax:
        return network, vectors
    network = network.with_argmax()
    return network, network.chosen(vectors)


def design_hash(run: Run, generated: Mapping[str, Any] | None = None) -> str:
    """The hash of the design, which covers its manifest and every file.

    Raises:
        Refusal: when a file of the design is missing or changed, or it is not that of the record ``generated``.
    """
    found = str(design.read(run.design)["hash"])
    if generated is not None and found != generated["hashes"]["design"]:
        raise Refusal(f"{run.design} must be the design of generation.json beside it, but it is another; "
                      f"run {run.command('generate')} again")
    return found


def require_verified(run: Run, quantized: Mapping[str, Any], generated: Mapping[str, Any],
                     simulated: Mapping[str, Any]) -> Vectors:
    """The vectors, when what stands in the folder is what was verified.

    Raises:
        Refusal: when network, vectors or a file of the design is missing, changed, or not what the record ``simulated``
            says that it verified.
    """
    network_of(run, quantized)
    vectors, sha = vectors_of(run, quantized), design_hash(run, generated)
    now = {"design": sha, "vectors": quantized["hashes"]["vectors"]}
    if run.path(FOLDER).exists():
        now["chips"] = hash_of(run.path(FOLDER))
    for name, value in now.items():
        if simulated["hashes"].get(name) != value:
            raise Refusal(f"{run.path('verification.json')} must say that it verified the {name} {value[:12]}… "
                          f"beside it, but it does not; run {run.command('simulate')} again")
    return vectors
