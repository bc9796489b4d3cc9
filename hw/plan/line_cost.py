"""The exact cost of an image in line buffers, in Python, where a kernel may see nothing but padding.

While it sees padding, lines come until the buffer is full, and then wait. So such an image may take longer than its
input and longer than its output. Tests hold the prediction to the simulated hardware.
"""
import numpy as np

from circulant.hw.array.line_shape import Walk

__all__ = ["image_cycles"]

IMAGES, MEASURED = 12, 4
"""Images that are followed from an empty buffer on, and the last of them, over which the period is the mean."""


def image_cycles(walk: Walk, *, lines: int, cycles: int) -> int:
    """Cycles from image to image, when the input is always there and the output taken.

    Parameters:
        walk: what the kernel moves over, see `circulant.hw.array.line_shape.LineBufferShape.walk`.
        lines: that are kept.
        cycles: of an output pixel.
    """
    (height, width), (down, across), window, blocks = walk.grid, walk.output_grid, walk.window, walk.blocks
    line = width * blocks
    steps = np.arange(across) * cycles
    columns = np.minimum(np.arange(across) * window.stride[1] - window.padding[1] + window.extent[1], width) * blocks
    begins: list[int] = []  # of each line that comes
    freed: list[int] = []  # the cycle in which the place of a line may be written again

    def begin(number: int) -> int:
        while len(begins) <= number:
            n = len(begins)
            begins.append(max(begins[-1] + line if n else 0, freed[n - lines] if n >= lines else 0))
        return begins[number]

    at, ends = 0, []
    for first in range(0, IMAGES * height, height):
        for y in range(down):
            bottom = min(y * window.stride[0] - window.padding[0] + window.extent[0] - 1, height - 1)
            # A pixel is seen in the cycle behind its last block; padding beside a line in that behind the line before.
            there = np.full(across, begin(first) + blocks)
            if bottom >= 0:
                before = there if not bottom else begin(first + bottom - 1) + line
                there = np.where(columns > 0, begin(first + bottom) + columns, before)
            at = int((steps + np.maximum.accumulate(np.maximum(there - steps, at + cycles)))[-1])
            gone = (y + 1) * window.stride[0] - window.padding[0]
            kept = first + (height if y == down - 1 else min(max(gone, 0), height))
            freed += [at + cycles + 1] * (kept - len(freed))
        ends.append(at)
    return -(-(ends[-1] - ends[-1 - MEASURED]) // MEASURED)
