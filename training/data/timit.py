"""TIMIT (LDC93S1) as the Linguistic Data Consortium ships it: a tree of NIST SPHERE recordings with their phones."""
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from circulant.sim.refusal import Refusal
from circulant.training.data import files
from circulant.training.data.assemble import Utterances, utterance_set
from circulant.training.data.dataset import Dataset
from circulant.training.data.phones import PHONES_61, fold, folding
from circulant.training.data.speech import BLANK_SYMBOL, transformed
from circulant.training.settings.data import DataSettings

__all__ = ["CORE_TEST", "sphere", "timit"]

RATE, BANDS = 16000, 40

_SPEAKERS = """
MDAB0 MWBT0 FELC0  MTAS1 MWEW0 FPAS0  MJMP0 MLNT0 FPKT0  MLLL0 MTLS0 FJLM0
MBPM0 MKLT0 FNLP0  MCMJ0 MJDH0 FMGD0  MGRT0 MNJM0 FDHC0  MJLN0 MPAM0 FMLD0
"""
CORE_TEST = frozenset(_SPEAKERS.split())
"""Two men and a woman of each dialect region: the core test set, as TIMIT's own testset.doc lists it."""

DIALECT_SENTENCES = "SA"
"""All speakers read the same two: they would be in both parts."""


def timit(options: DataSettings, progress: files.Progress = files.silent) -> Dataset:
    """TIMIT: 3,696 utterances of 462 speakers to train with, the 192 of the core test set, no SA sentences.

    Without options 120 features a step, 100 steps a second: 40 log-mel bands with Δ and ΔΔ, normalised over the
    training set; ``bands = 51`` gives the 153 of ESE and E-RNN. Targets are 39 phones, or 48 or 61, after the blank.
    ``path`` is the folder that has TRAIN and TEST in it, or the one above.
    """
    tree = _tree(files.locate("timit", options.path))
    train = _utterances(tree["TRAIN"])
    test = [path for path in _utterances(tree["TEST"]) if path.parent.name.upper() in CORE_TEST]
    if missing := CORE_TEST - {path.parent.name.upper() for path in test}:
        raise Refusal(f"{tree['TEST']} must hold all 24 speakers of the core test set, but lacks "
                      f"{', '.join(sorted(missing))}; copy them")
    if not train:
        raise Refusal(f"{tree['TRAIN']} must hold .PHN files in DR*/SPEAKER folders, but holds none; copy them")
    symbols = (BLANK_SYMBOL, *folding((BLANK_SYMBOL,), options.phones)[1][1:])
    index = {symbol: number for number, symbol in enumerate(symbols)}
    targets = [np.array([index[phone] for phone in _phones(path, options.phones)], np.int64)
               for path in (*train, *test)]
    recordings = [_beside(path) for path in (*train, *test)]

    def sounds() -> Iterator[NDArray[np.int16]]:
        yield from map(_samples, recordings)

    progress("finding recordings", 0, 0)
    source = files.fingerprint(recordings)
    frames = transformed("timit", source, sounds=sounds(), count=len(recordings), rate=RATE,
                         bands=options.bands or BANDS, progress=progress)
    speakers = np.array([path.parent.name.upper() for path in (*train, *test)])
    parts = (np.arange(len(train)), np.arange(len(train), len(recordings)))
    return utterance_set("timit", Utterances(frames, targets, parts, symbols, speakers), options, deltas="second",
                         normalise="train")


def sphere(path: Path) -> tuple[int, NDArray[np.int16]]:
    """Rate and samples of a NIST SPHERE file of 16 bit mono PCM.

    Raises:
        Refusal: when it is none, is compressed, or has fewer samples than its header says.
    """
    raw = files.unpacked(path)
    try:
        size = int(raw[8:16])
        header = raw[16:size].decode("ascii").partition("end_head")[0]
        fields = {line.split()[0]: line.split()[-1] for line in header.splitlines() if line.strip()}
        kind = tuple(fields.get(name, default) for name, default in (
            ("sample_coding", "pcm"), ("channel_count", "1"), ("sample_n_bytes", "2")))
        count, rate = int(fields["sample_count"]), int(fields["sample_rate"])
        order = {"01": "<i2", "10": ">i2"}[fields.get("sample_byte_format", "01")]
    except (ValueError, KeyError) as error:
        raise Refusal(f"{path} must be a NIST SPHERE file, but its header cannot be read ({error}); copy it from the "
                      "original again") from None
    if kind != ("pcm", "1", "2"):
        raise Refusal(f"{path} must be 16 bit mono PCM, not coding {kind[0]} with {kind[1]} channels of {kind[2]} "
                      "bytes; convert it with sph2pipe")
    samples = np.frombuffer(raw[size:size + 2 * count], order) if len(raw) >= size + 2 * count else np.empty(0, order)
    if len(samples) != count or not count:
        raise Refusal(f"{path} must hold the {count} samples that its header names, and at least one, but has "
                      f"{max(0, len(raw) - size) // 2}; copy it from the original again")
    return rate, samples.astype(np.int16)


def _tree(place: Path) -> dict[str, Path]:
    """The folders TRAIN and TEST, however they are spelt, in a folder or in one of its own folders."""
    for folder in (place, *sorted(path for path in place.glob("*") if path.is_dir())):
        found = {path.name.upper(): path for path in folder.glob("*") if path.is_dir()}
        if {"TRAIN", "TEST"} <= found.keys():
            return found
    raise Refusal(f"The data set 'timit' must be a folder with TRAIN and TEST in it, or the one above, but {place} is "
                  "neither; name it in data.path")


def _utterances(part: Path) -> list[Path]:
    """The .PHN files of DR*/SPEAKER, without the SA sentences, in an order that the spelling does not change."""
    found = [path for path in part.glob("*/*/*") if path.suffix.upper() == ".PHN"
             and path.parents[1].name.upper().startswith("DR") and not path.name.upper().startswith(DIALECT_SENTENCES)]
    return sorted(found, key=lambda path: str(path).upper())


def _beside(path: Path) -> Path:
    """The recording of a .PHN file."""
    for suffix in (".WAV", ".wav"):
        if (recording := path.with_suffix(suffix)).exists():
            return recording
    raise Refusal(f"{path} must have its recording {path.stem}.WAV beside it, but that is missing; copy it")


def _samples(path: Path) -> NDArray[np.int16]:
    from scipy.io import wavfile  # Most trainings need none of it.

    with path.open("rb") as file:
        begin = file.read(4)
    rate, samples = wavfile.read(path) if begin == b"RIFF" else sphere(path)
    if rate != RATE or samples.dtype != np.int16 or samples.ndim != 1:
        raise Refusal(f"{path} must be 16 bit mono at {RATE} Hz, not {samples.dtype} of shape {samples.shape} at "
                      f"{rate} Hz; copy it from the original again")
    return samples


def _phones(path: Path, size: int) -> list[str]:
    """The phones of a .PHN file, one on each line as "begin end phone", in the set of this size."""
    found = []
    for number, line in enumerate(files.unpacked(path).decode("ascii", "replace").split("\n"), start=1):
        words = line.split()
        if not words:
            continue
        if len(words) != 3 or words[2] not in PHONES_61:
            raise Refusal(f"{path}, line {number} must be a begin, an end and one of TIMIT's 61 phones, not "
                          f"{line.strip()!r}; copy it from the original again")
        found.append(words[2])
    folded = [phone for phone in (fold(phone, size) for phone in found) if phone is not None]
    if not folded:
        raise Refusal(f"{path} must name at least one phone, but names none; copy it from the original again")
    return folded
