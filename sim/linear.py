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
        size = (-(-self.outputs // k) * k, -(-self.inputs // k) * k)
        if (self.product.rows, self.product.columns) != size:
            raise Refusal(f"Layer {self.name!r}: the matrix for {self.inputs} inputs and {self.outputs} outputs must "
                          f"be {size[0]}x{size[1]} in blocks of {k}, not {self.product.rows}x{self.product.columns}; "
                          "export it again")

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
