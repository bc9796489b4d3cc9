from circulant.hw.emit.image import Image, texts


def test_words_are_taken_modulo_their_width_a_line_each():
    assert Image([0, 5, -1, 1 << 12], 12, "rom").text == "000\n005\nfff\n000\n"
    assert Image([-1], 13, "rom").text == "1fff\n", "a digit holds up to four bits"


def test_copies_of_a_memory_share_a_file():
    one, copy, other = Image([1], 4, "a"), Image([1], 4, "a"), Image([2], 4, "b")
    assert texts([one, copy, other]) == {"a.hex": "1\n", "b.hex": "2\n"}
