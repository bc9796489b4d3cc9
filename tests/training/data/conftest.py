"""A tree of the shape of TIMIT's."""
import numpy as np
import pytest

from circulant.training.data.timit import CORE_TEST

TRAIN_SPEAKERS = {"DR1": ("FCJF0", "MCPM0"), "DR5": ("MDTB0",)}
SENTENCES = ("SA1", "SI648", "SX127")


def write_sphere(path, samples, **changes):
    fields = {"sample_count": f"-i {len(samples)}", "sample_rate": "-i 16000", "channel_count": "-i 1",
              "sample_n_bytes": "-i 2", "sample_byte_format": "-s2 01", "sample_sig_bits": "-i 16",
              "database_id": "-s5 TIMIT"} | changes
    lines = "".join(f"{name} {value}\n" for name, value in fields.items() if value)
    header = f"NIST_1A\n   1024\n{lines}end_head\n".encode().ljust(1024)
    path.write_bytes(header + np.asarray(samples).astype("<i2").tobytes())


def speak(folder, sentence, rng, phones=("h#", "s", "q", "ao", "tcl", "t", "h#"), spelling=str.upper):
    folder.mkdir(parents=True, exist_ok=True)
    samples = rng.normal(0, 2000, 1600 * len(phones)).astype(np.int16)
    write_sphere(folder / spelling(f"{sentence}.WAV"), samples)
    lines = "".join(f"{1600 * at} {1600 * at + 1600} {phone}\n" for at, phone in enumerate(phones))
    (folder / spelling(f"{sentence}.PHN")).write_text(lines)


def write_tree(root, spelling=str.upper):
    """TRAIN/DR*/SPEAKER and TEST/DR*/SPEAKER with all speakers of the core test and one who is not of it."""
    rng = np.random.default_rng(0)
    for region, speakers in TRAIN_SPEAKERS.items():
        for speaker in speakers:
            for sentence in SENTENCES:
                speak(root / spelling("TRAIN") / spelling(region) / spelling(speaker), sentence, rng, spelling=spelling)
    for number, speaker in enumerate((*sorted(CORE_TEST), "FAKS0")):
        for sentence in SENTENCES:
            speak(root / spelling("TEST") / spelling(f"DR{number % 8 + 1}") / spelling(speaker), sentence, rng,
                  spelling=spelling)
    return root


@pytest.fixture
def tree(tmp_path):
    return write_tree(tmp_path / "TIMIT")
