"""The model of a carrier: without faults each frame comes as it was, with them it is seen to do what it says."""
from circulant.hw.chips.channel import Frames
from tests.hw.simulate import trace

BEATS, LENGTH = 32, 5


def passed(latency, seed, frames):
    """Frames that come out, each of beats ``frame · 8 + beat`` when it goes in; and the cycles of first beats."""
    cycles = [(n, at) for n in range(frames) for at in range(LENGTH + 3)]
    shown = trace(Frames(BEATS, LENGTH, 80), {
        "i_tdata": [n * 8 + at if at < LENGTH else 0 for n, at in cycles] + [0] * 600,
        "i_tvalid": [int(at < LENGTH) for _, at in cycles] + [0] * 600,
        "i_tlast": [int(at == LENGTH - 1) for _, at in cycles] + [0] * 600,
        "latency": [latency] * (len(cycles) + 600), "seed": [seed] * (len(cycles) + 600)})
    found, begun, frame = [], [], []
    for cycle, (valid, last, beat) in enumerate(zip(shown["o_tvalid"], shown["o_tlast"], shown["o_tdata"],
                                                    strict=True)):
        if valid:
            begun += [cycle] * (not frame)
            frame.append(beat)
            if last:
                found.append(frame)
                frame = []
    assert not frame
    return found, begun


def test_frames_come_later_and_as_they_were():
    for latency in (0, 1, 40):
        found, begun = passed(latency, 0, 12)
        assert found == [[n * 8 + at for at in range(LENGTH)] for n in range(12)]
        assert begun == [n * (LENGTH + 3) + latency + LENGTH + 2 for n in range(12)]


def test_frames_are_lost_doubled_late_cut_and_spoilt():
    found, _ = passed(9, 77, 600)
    whole = [frame[0] >> 3 for frame in found if frame == [frame[0] + at for at in range(LENGTH)] and not frame[0] % 8]
    assert 300 < len(set(whole)) < 600, "some are lost"
    assert len(whole) > len(set(whole)), "some come twice"
    assert whole != sorted(whole), "some come behind others"
    assert any(len(frame) < LENGTH for frame in found), "some are cut"
    assert any(frame[0] % 8 == 1 and len(frame) == LENGTH for frame in found), "some have a wrong bit"
    assert any(frame[-1] >> 16 for frame in found), "some have wrong bits in all beats"
