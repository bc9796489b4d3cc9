"""A fully connected layer: one block-circulant product (CirCNN, section 3.1), no activation."""
from dataclasses import dataclass

from circulant.sim.circulant import Product
from circulant.sim.fixed import Format, Integers
from circulant.sim.refusal import Refusal

__all__ = ["Linear"]


@dataclass(frozen=True, eq=False)
class Linear:
    """y = W x + b for every vector of the last axis.

    Raises:
        Refusal: when the sizes contradict the product's.
    """

    name: str
    inputs: int
    outputs: int
    product: Product

    kind = "linear"

    def __post_init__(self) -> None:
        k = self.product.block_size
        if (-(-self.inputs // k) * k, -(-self.outputs // k) * k) != (self.product.columns, self.product.rows):
            raise Refusal(f"Layer {self.name!r} of {self.inputs} inputs and {self.outputs} outputs must have a matrix of "
                          f"as many blocks of {k}, not {self.product.rows}x{self.product.columns}; export it again")

    @property
    def products(self) -> dict[str, Product]:
        return {"product": self.product}

    @property
    def input_format(self) -> Format:
        return self.product.input

    @property
    def output_format(self) -> Format:
        return self.product.output

    def __call__(self, x: Integers) -> Integers:
        """(…, inputs) to (…, outputs)."""
        return self.product(x)[..., :self.outputs]
