"""Operations that take images, and the sizes of windows over them."""
from circulant.sim.shape.window import Grid
from circulant.training.capture.graph import Node

__all__ = ["IMAGES", "grid_of", "pair", "takes_images"]

IMAGES = ("conv", "max_pool", "average_pool", "maximum", "mean")


def takes_images(users: list[Node], axes: int, *, came: bool = False) -> bool:
    """Whether what takes values of so many axes, without that of the batch, takes images.

    Parameters:
        came: whether they are images already, which a sum leaves as they are.
    """
    def takes(node: Node) -> bool:
        if node.op in ("mean", "maximum"):
            return bool(node.options["axes"] == tuple(range(2, axes + 1)))
        return node.op in IMAGES or (node.op == "add" and (came or axes > 2)) or (node.op == "scale" and axes > 1)

    return any(map(takes, users))


def grid_of(shape: tuple[int, ...]) -> Grid:
    """Height and width of images (channels, height, width), or (channels, length)."""
    return shape[1], shape[2] if len(shape) > 2 else 1


def pair(values: tuple[int, ...], one: int) -> Grid:
    """Height and width of a window; over one axis it is of an image of width 1."""
    return values[0], values[1] if len(values) > 1 else one
