"""Contents of a memory: a pure function of a layer and its plan, which units read and reload files hold."""
from collections.abc import Sequence
from typing import NamedTuple

from circulant.sim.arith.codes import Code

__all__ = ["Image", "texts"]


class Image(NamedTuple):
    """The words of a memory, as `circulant.hw.emit.target.Rom` takes them.

    Parameters:
        words: contents, each taken modulo 2**width.
        width: bits of a word.
        image: name, unique in a design.
    """

    words: Sequence[int]
    width: int
    image: str

    @property
    def file(self) -> str:
        """Name of its file."""
        return f"{self.image}.hex"

    def coded(self, protection: str) -> "Image":
        """The same with the check bits of a protection, one of `circulant.sim.arith.codes.PROTECTIONS`."""
        code, mask = Code(self.width, protection), (1 << self.width) - 1
        return self if protection == "none" else Image([code.encode(word & mask) for word in self.words], code.bits,
                                                       self.image)

    @property
    def text(self) -> str:
        """The text that ``$readmemh`` reads: a word a line."""
        digits, mask = -(-self.width // 4), (1 << self.width) - 1
        return "".join(f"{word & mask:0{digits}x}\n" for word in self.words)


def texts(images: Sequence[Image]) -> dict[str, str]:
    """Texts by file name; copies of a memory share one."""
    return {image.file: image.text for image in images}
