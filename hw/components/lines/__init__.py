"""Lines of an image that wait for a kernel, and the walk of the kernel over them."""
from circulant.hw.components.lines.line_buffer import LineBuffer

__all__ = ["LineBuffer"]
