"""Speech: the Free Spoken Digit Dataset with a class each, speechocean762 with phones."""
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from circulant.sim.refusal import Refusal
from circulant.training.data import files
from circulant.training.data.assemble import Indices, Utterances, utterance_set
from circulant.training.data.cache import cached
from circulant.training.data.dataset import Dataset
from circulant.training.data.features import GRID, RECIPE, Frames, log_mel
from circulant.training.settings.data import DataSettings

__all__ = ["BLANK_SYMBOL", "fsdd", "ocean_levels", "ragged", "speechocean762", "transformed"]

BLANK_SYMBOL = "<blank>"

FSDD_RATE, FSDD_BANDS = 8000, 16
FSDD_TEST = 5
"""Recordings 0 to 4 of each speaker and digit are the test set, as the data set's own README says."""

OCEAN_BANDS = 40
OCEAN_STEP, OCEAN_LEAST = GRID // 2, -100 * GRID
"""A byte q of its features stands for q/2 − 100 dB."""

NUMERALS = tuple("0123456789")


def fsdd(options: DataSettings, progress: files.Progress = files.silent) -> Dataset:
    """3,000 spoken digits of six speakers, 8 kHz, in the official split of 2,700 and 300; 100 steps a second.

    Without options 32 features a step: 16 log-mel bands and their Δ, normalised over the training set.
    ``path`` is a folder with ``fsdd.npz``, or a clone of the data set's repository with its ``recordings``.
    """
    folder = files.locate("fsdd", options.path)
    if (folder / "recordings").is_dir():
        recordings = sorted((folder / "recordings").glob("*_*_*.wav"))
        source, digit, test, sounds = files.fingerprint(recordings), *_recordings(recordings)
    else:
        path = folder if folder.is_file() else folder / "fsdd.npz"
        archive = files.load_npz(path, ("samples", "offsets", "label", "is_test"))
        source, digit, test = files.fingerprint([path]), archive["label"], archive["is_test"].astype(bool)
        sounds = ragged(archive["samples"], archive["offsets"])
    frames = transformed("fsdd", source, sounds=sounds, count=len(sounds), rate=FSDD_RATE,
                         bands=options.bands or FSDD_BANDS, progress=progress)
    parts = (np.flatnonzero(~test), np.flatnonzero(test))
    return utterance_set("fsdd", Utterances(frames, digit.astype(np.int64), parts, NUMERALS), options, deltas="first",
                         normalise="train")


def speechocean762(options: DataSettings, progress: files.Progress = files.silent) -> Dataset:
    """5,000 utterances of read English with their 39 phones, in the official split of 2,500 and 2,500 by speaker.

    Without options 40 log-mel bands a step, 100 steps a second, normalised over each utterance. Class 0 is the blank.
    All 2,500 training utterances are 2.9 hours: ``subset`` with ``longest`` makes an experiment of minutes of it.
    """
    folder = files.locate("speechocean762", options.path)
    meta = files.load_npz(folder / "meta.npz", ("frame_offsets", "phones", "phone_offsets", "phone_names", "is_test",
                                                "speaker"))
    levels = ocean_levels(folder, progress)
    if levels.shape != (int(meta["frame_offsets"][-1]), OCEAN_BANDS):
        raise Refusal(f"The features in {folder} must be the {int(meta['frame_offsets'][-1])} frames of meta.npz "
                      f"beside them, with {OCEAN_BANDS} bands, not {levels.shape}; fetch the data set again")
    frames = [block.astype(np.int32) * OCEAN_STEP + OCEAN_LEAST for block in ragged(levels, meta["frame_offsets"])]
    phones = [block.astype(np.int64) + 1 for block in ragged(meta["phones"], meta["phone_offsets"])]
    test = meta["is_test"].astype(bool)
    symbols = (BLANK_SYMBOL, *map(str, meta["phone_names"]))
    parts: tuple[Indices, Indices] = (np.flatnonzero(~test), np.flatnonzero(test))
    return utterance_set("speechocean762", Utterances(frames, phones, parts, symbols, meta["speaker"]), options,
                         deltas="none", normalise="sample")


def ocean_levels(folder: Path, progress: files.Progress = files.silent) -> NDArray[np.uint8]:
    """The features (frames of all utterances, 40) of speechocean762 as they are kept, a byte each."""
    path = folder / "fbank40_u8.npy.xz"

    def unpack() -> dict[str, NDArray[Any]]:
        progress("unpacking features", 0, 0)
        return {"levels": files.load_array(path)}

    return cached("speechocean762", {"source": files.fingerprint([path])}, unpack)["levels"]


def transformed(name: str, source: str, sounds: Iterable[NDArray[np.int16]], count: int, rate: int, bands: int,
                progress: files.Progress) -> list[Frames]:
    """`log_mel` of each of ``count`` recordings, through the cache; ``source`` is the hash of all of them."""

    def make() -> dict[str, NDArray[Any]]:
        made = []
        for number, sound in enumerate(sounds):
            if number % 100 == 0:
                progress("log-mel features", number, count)
            made.append(log_mel(sound, rate, bands))
        return {"frames": np.concatenate(made), "offsets": np.cumsum([0, *map(len, made)])}

    found = cached(name, {"source": source, "rate": rate, "bands": bands, "recipe": RECIPE}, make)
    return ragged(found["frames"], found["offsets"])


def ragged(flat: NDArray[Any], offsets: NDArray[np.integer[Any]]) -> list[NDArray[Any]]:
    """The pieces of an array between successive offsets.

    Raises:
        Refusal: when the offsets do not cut all of it into pieces.
    """
    whole = offsets.ndim == 1 and len(offsets) > 1 and offsets[0] == 0 and offsets[-1] == len(flat)
    if not whole or (np.diff(offsets.astype(np.int64)) < 1).any():
        raise Refusal(f"Offsets must rise from 0 to the {len(flat)} rows that there are, not from {offsets[:1]} to "
                      f"{offsets[-1:]} in {len(offsets)} places; fetch the data set again")
    return [flat[begin:end] for begin, end in pairwise(offsets)]


def _recordings(paths: Sequence[Path]) -> tuple[NDArray[np.int64], NDArray[np.bool_], list[NDArray[np.int16]]]:
    """Digits, which are of the test set, and samples of files named ``{digit}_{speaker}_{index}.wav``."""
    from scipy.io import wavfile  # Most trainings need none of it.

    digits, test, sounds = [], [], []
    for path in paths:
        digit, *_, index = path.stem.split("_")
        try:
            digits.append(NUMERALS.index(digit))
            test.append(int(index) < FSDD_TEST)
            rate, samples = wavfile.read(path)
        except ValueError as error:
            raise Refusal(f"{path} must be a .wav file named digit_speaker_index, but is not ({error}); fetch the data "
                          "set again") from None
        if rate != FSDD_RATE or samples.dtype != np.int16 or samples.ndim != 1:
            raise Refusal(f"{path} must be 16 bit mono at {FSDD_RATE} Hz, not {samples.dtype} of shape {samples.shape} "
                          f"at {rate} Hz; fetch the data set again")
        sounds.append(samples)
    if not any(test) or all(test):
        raise Refusal(f"A folder of recordings must hold both parts, not {len(test) - sum(test)} recordings to train "
                      f"with and {sum(test)} to test; fetch the data set again")
    return np.array(digits, np.int64), np.array(test), sounds
