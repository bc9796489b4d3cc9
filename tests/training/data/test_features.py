"""Features of sound: against their definition, and the same bits everywhere."""
import hashlib
import math

import numpy as np
import pytest

from circulant.sim.files.data_folder import data_folder
from circulant.sim.refusal import Refusal
from circulant.training.data import features, files
from circulant.training.data.features import (
    GRID,
    in_decibels,
    log_mel,
    stacked,
    standardised,
    statistics,
    with_deltas,
)
from circulant.training.data.speech import ocean_levels
from tests.data import real


def signal(seed=0, samples=8000):
    """Noise and a tone, louder and softer, of integers: no sine of a library is in it."""
    noise, at = np.random.RandomState(seed).randint(-3000, 3000, samples), np.arange(samples)
    return ((noise + 4000 * np.sign(at % 23 - 11)) // (1 + at // 700 % 5 * 3)).astype(np.int16)


def test_the_bits_are_these_on_every_machine():
    """Because everything is rounded to a grid right after the logarithm and is integers until the last division."""
    frames = with_deltas(log_mel(signal(), 8000, 16), 2)
    x = standardised(frames, *statistics([frames]))
    assert x.shape == (98, 48)
    assert hashlib.sha256(x.astype("<f4").tobytes()).hexdigest()[:16] == "fc2266adc4c3111b"


def test_an_error_of_the_last_bits_changes_nothing(monkeypatch):
    """As if it were another processor's library: every power is off by a few parts in 1e15."""
    true, rng = log_mel(signal(), 16000, 40), np.random.default_rng(1)
    logarithm = np.log10
    monkeypatch.setattr(features.np, "log10", lambda x: logarithm(x) * (1 + rng.normal(0, 1e-15, np.shape(x))))
    assert np.array_equal(log_mel(signal(), 16000, 40), true)


def test_log_mel_is_its_definition():
    """One frame by sums over the samples: a transform of O(n²), a triangle at a time."""
    rate, bands, points = 8000, 4, 256
    x = signal(3, 250).astype(float) / 32768
    emphasised = [x[0], *(x[1:] - 0.97 * x[:-1])]
    windowed = [value * (0.5 - 0.5 * math.cos(2 * math.pi * n / 200)) for n, value in enumerate(emphasised[:200])]
    power = [abs(sum(value * np.exp(-2j * np.pi * k * n / points) for n, value in enumerate(windowed)))**2
             for k in range(points // 2 + 1)]
    mels = np.linspace(2595 * math.log10(1 + 64 / 700), 2595 * math.log10(1 + 4000 / 700), bands + 2)
    edges = [700 * (10 ** (mel / 2595) - 1) for mel in mels]
    frames = log_mel(signal(3, 250), rate, bands)
    assert frames.shape == (1, bands)
    for band in range(bands):
        low, middle, high = edges[band:band + 3]
        energy = sum(max(0, min((f - low) / (middle - low), (high - f) / (high - middle))) * p
                     for f, p in ((k * rate / points, p) for k, p in enumerate(power)))
        assert abs(frames[0, band] / GRID - 10 * math.log10(energy + 1e-10)) <= 0.5 / GRID + 1e-9


@real("speechocean762")
def test_log_mel_is_the_recipe_of_speechocean762():
    """Its 16 bit sound gives its features, which are rounded to half decibels."""
    folder = data_folder() / "speechocean762"
    index = files.load_npz(folder / "audio250_index.npz", ("sample_offsets", "utt_id"))
    meta = files.load_npz(folder / "meta.npz", ("frame_offsets", "utt_id"))
    pcm, levels = files.load_array(folder / "audio250_i16.npy.xz"), ocean_levels(folder)
    for number in range(0, 250, 10):
        at = int(np.flatnonzero(meta["utt_id"] == index["utt_id"][number])[0])
        stored = levels[meta["frame_offsets"][at]:meta["frame_offsets"][at + 1]]
        frames = log_mel(pcm[index["sample_offsets"][number]:index["sample_offsets"][number + 1]], 16000, 40)
        assert frames.shape == stored.shape
        inside = (stored > 0) & (stored < 255)
        assert np.abs(frames - (stored.astype(int) * 32 - 100 * GRID))[inside].max() <= GRID // 4 + 1


def test_steps_of_a_recording():
    for samples, steps in ((1, 1), (199, 1), (200, 1), (279, 1), (280, 2), (8000, 98)):
        assert len(log_mel(signal(0, samples), 8000, 8)) == steps


def test_silence_is_the_floor():
    assert (log_mel(np.zeros(1000, np.int16), 8000, 8) == -100 * GRID).all()


def test_deltas_by_hand():
    ramp = np.arange(8, dtype=np.int32)[:, None] * 60
    frames = with_deltas(ramp, 2)
    assert frames.shape == (8, 3)
    assert frames[2:6, 1].tolist() == [60] * 4, "the slope of a ramp, away from its ends"
    assert frames[:2, 1].tolist() == [30, 48], "the ends are repeated: (1·1 + 2·2)/10 and (1·2 + 2·3)/10 of the slope"
    assert frames[3:5, 2].tolist() == [2, -2], "the slope of the slope, ±2.4, rounded"
    step = with_deltas(np.array([[0], [0], [0], [5], [5], [5]], np.int32), 1)[:, 1]
    assert step.tolist() == [0, 1, 2, 2, 1, 0], "1.0, 1.5, 1.5 and 1.0: halves go up"
    assert with_deltas(ramp, 0).tolist() == ramp.tolist()


def test_statistics_are_exact_where_64_bits_are_not():
    frames = np.full((100_000, 1), 2**20, np.int32)
    frames[::2] -= 1
    mean, deviation = statistics([frames, frames])
    assert mean[0] == 2**20 - 0.5
    assert deviation[0] == 0.5


def test_statistics_do_not_depend_on_the_order():
    frames = [log_mel(signal(seed), 8000, 16) for seed in range(4)]
    for one, other in zip(statistics(frames), statistics([np.concatenate(frames[::-1])[::-1]]), strict=True):
        assert np.array_equal(one, other)


def test_standardised():
    frames = log_mel(signal(), 8000, 16)
    x = standardised(frames, *statistics([frames]))
    assert x.dtype == np.float32
    assert np.abs(x.mean(0)).max() < 1e-3
    assert np.abs(x.std(0) - 1).max() < 1e-3
    assert np.array_equal(x * 4096, np.rint(x * 4096)), "values are on a grid"
    silent = np.zeros((5, 2), np.int32)
    assert not standardised(silent, *statistics([silent])).any()


def test_in_decibels():
    assert in_decibels(np.array([[-6400, 32]], np.int32)).tolist() == [[-100.0, 0.5]]


def test_stacked():
    frames = np.arange(10, dtype=np.float32).reshape(5, 2)
    assert stacked(frames, 1).tolist() == frames.tolist()
    assert stacked(frames, 2).tolist() == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 0, 0]]


@pytest.mark.parametrize("samples", [np.zeros(0, np.int16), np.zeros((3, 2), np.int16)])
def test_what_is_no_recording(samples):
    with pytest.raises(Refusal, match=r"^A recording must be mono with at least one sample, not of shape"):
        log_mel(samples, 8000, 8)


def test_too_many_bands():
    with pytest.raises(Refusal, match=r"^Each mel band must hold a bin of the spectrum, but with 128 bands at 8000 Hz "
                                      r"[0-9]+ hold none; choose fewer data.bands$"):
        log_mel(signal(), 8000, 128)
