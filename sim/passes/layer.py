"""The classes of layers in integers and in float64, from which each kind has one of either."""
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from circulant.sim.arith.circulant import Product
from circulant.sim.arith.fixed import Format, Integers, Reals
from circulant.sim.files.schema import Rule
from circulant.sim.passes.products import Tap, ignore
from circulant.sim.shape.layer import Layer

__all__ = ["Arrays", "FloatLayer", "GoldenLayer", "Kind"]

Arrays = Mapping[str, np.ndarray]
"""Arrays by their names in a file."""


class GoldenLayer(Layer):
    """A layer in integers, called with what its sources give, and a `Recorder` that is shown its tensors.

    Members:
        products: its matrices by role.
        relu: whether what is below zero becomes zero at its end.
        tables: tensors that are values of tables, which may stand at the ends of their formats.
        searched: kinds of bit widths that a search picks; see `circulant.sim.passes.bases.bitwidth_fields`.
        vector: its array of weights, one for each value, of the format ``factor``; empty for none.
    """

    relu: bool = False
    tables: ClassVar[tuple[str, ...]] = ()
    searched: ClassVar[tuple[str, ...]] = ()
    vector: ClassVar[str] = ""

    if TYPE_CHECKING:  # Fields of some kinds, which would take properties here for their defaults.
        @property
        def input_format(self) -> Format: ...

        @property
        def input_formats(self) -> tuple[Format, ...]: ...

        @property
        def output_format(self) -> Format: ...

    @property
    def products(self) -> dict[str, Product]:
        return {}

    @property
    def taken(self) -> tuple[Format, ...]:
        """The formats of what its sources give."""
        return self.input_formats if self.joins else (self.input_format,)

    @abstractmethod
    def __call__(self, x: Any, record: Any = None) -> Integers:
        """The integers that it gives."""

    def finished(self, y: Any, record: Any = None) -> Integers:
        """The values y of its output format, those below zero as zero where it has a ReLU, shown to a recorder."""
        y = np.maximum(y, 0) if self.relu else np.asarray(y)
        if record is not None:
            record.values(f"{self.name}.y", y, self.output_format)
        return y

    def initial(self, count: int) -> Any:
        """The state that ``count`` sequences start from; None where nothing is kept."""
        return None

    def run(self, x: Any, state: Any = None) -> tuple[Integers, Any]:
        """The outputs for sequences that go on from a state, and the state behind them.

        Raises:
            Refusal: when it needs whole sequences, or the state is not that of as many.
        """
        return self(x), None


class FloatLayer(Layer):
    """A layer in float64, as it comes out of training; its class is called as that in integers, ``Float`` before it.

    It is called with what its sources give, and a `Tap` that is shown its tensors.
    """

    @abstractmethod
    def __call__(self, x: Any, tap: Tap = ignore) -> Reals:
        """The numbers that it gives."""


@dataclass(frozen=True)
class Kind:
    """A kind as `circulant.sim.kinds.registry` lists it.

    Parameters:
        golden, real: its classes; no model has layers of a kind without the second.
        fields, optional: rules of the members that an entry of ``network.json`` has, and may have, besides kind, name,
            inputs and sources: fields, matrices and tables of the layer.
        arrays, optional_arrays: numbers of axes of the layer's own integers.
        make: the layer of all these by name, those that it takes; by default the golden class.
    """

    golden: type[Any]
    real: type[Any] | None
    fields: Mapping[str, Rule]
    optional: Mapping[str, Rule] = field(default_factory=dict)
    arrays: Mapping[str, int] = field(default_factory=dict)
    optional_arrays: Mapping[str, int] = field(default_factory=dict)
    make: Callable[..., Any] | None = None

    @property
    def name(self) -> str:
        return str(self.golden.kind)
