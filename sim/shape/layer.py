"""Layers as a graph sees them, golden and in float64 alike: what comes to a layer, and what flow it gives."""
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from circulant.sim.refusal import Refusal
from circulant.sim.shape.window import Flow, Grid, Window

__all__ = ["Held", "Join", "Layer", "OverImages", "OverSequences", "OverVectors", "SameSize", "Windowed"]


class Layer:
    """A layer that takes any flow, each vector or pixel of it by itself.

    Members:
        kind: a name for its kind, in files and messages.
        joins: whether it takes several sources; what it computes with is then a list.
        whole: whether it takes a sequence as a whole.
        stepwise: whether it takes each vector of a sequence by itself, so that a sum of two branches may be one stage.
        keeps: whether it keeps all steps of a sequence before it gives the first one.
        recurrent: whether two of its kind can be both directions of one stage.
    """

    kind: ClassVar[str]
    joins: ClassVar[bool] = False
    whole: ClassVar[bool] = False
    stepwise: ClassVar[bool] = False
    keeps: ClassVar[bool] = False
    recurrent: ClassVar[bool] = False

    name: str

    if TYPE_CHECKING:  # Fields of some kinds, which would take properties here for their defaults.
        @property
        def inputs(self) -> int: ...

        @property
        def outputs(self) -> int: ...

    def argument(self, values: Sequence[Any]) -> Any:
        """Values of the sources as the layer takes them: those of a join as they are, that of another by itself."""
        return values if self.joins else values[0]

    def following(self, flows: Sequence[Flow]) -> Flow:
        """The flow that it gives for those of its sources.

        Raises:
            Refusal: when it does not take them.
        """
        (flow,) = flows
        if self.inputs != flow.size:
            raise Refusal(f"Layer {self.name!r} must take the {flow.size} values that come before it, not "
                          f"{self.inputs}; give it that size")
        return self._behind(flow)

    def _behind(self, flow: Flow) -> Flow:
        """The flow behind one of the right size."""
        return Flow(self.outputs, flow.grid, flow.sequence)


class SameSize(Layer):
    """A layer that gives as many values as it takes."""

    @property
    def outputs(self) -> int:
        return self.inputs


class OverVectors(Layer):
    """A layer that takes a vector as a whole, and so no images."""

    def _behind(self, flow: Flow) -> Flow:
        if flow.grid is not None:
            raise Refusal(f"Layer {self.name!r} must take vectors, not the {flow} that come before it; flatten them, "
                          "or use a convolution of kernel 1")
        return super()._behind(flow)


class OverSequences(Layer):
    """A layer that takes a sequence as a whole.

    Members:
        returns: "last" or "sequence".
    """

    whole = True
    returns: str

    def _behind(self, flow: Flow) -> Flow:
        if not flow.sequence:
            raise Refusal(f"Layer {self.name!r} needs a sequence, but what comes before gives one vector; let the "
                          "layer before return the whole sequence")
        return Flow(self.outputs, sequence=self.returns == "sequence")


class OverImages(Layer):
    """A layer that takes images of a grid."""

    grid: Grid

    def _behind(self, flow: Flow) -> Flow:
        if self.grid != flow.grid:
            raise Refusal(f"Layer {self.name!r} must take the {flow} that come before it, not images of "
                          f"{self.grid[0]} x {self.grid[1]}; export the network again")
        return self._of_images()

    def _of_images(self) -> Flow:
        raise NotImplementedError


class Windowed(OverImages):
    """A layer over images that moves a window over them."""

    window: Window

    def _of_images(self) -> Flow:
        return Flow(self.outputs, self.output_grid)

    @cached_property
    def output_grid(self) -> Grid:
        """The grid of the images that it gives.

        Raises:
            Refusal: as `Window.outputs`.
        """
        return self.window.outputs(self.name, self.grid)


class Join(Layer):
    """A layer of several sources that have one form: all vectors, all sequences, or all images of one grid.

    Members:
        sizes: values of the vectors of each source.
        alike: whether these must be the same, too.
    """

    joins = True
    alike: ClassVar[bool] = False

    if TYPE_CHECKING:
        @property
        def sizes(self) -> tuple[int, ...]: ...

    def following(self, flows: Sequence[Flow]) -> Flow:
        ends = {(flow.grid, flow.sequence) for flow in flows}
        if len(ends) > 1 or (self.alike and len(set(flows)) > 1):
            raise Refusal(f"Layer {self.name!r}: {'both' if len(flows) == 2 else 'all'} branches must give the same, "
                          f"not {' and '.join(map(str, flows))}; export the network again")
        if tuple(self.sizes) != tuple(flow.size for flow in flows):
            came, due = (" and ".join(map(str, sizes)) for sizes in ([flow.size for flow in flows], self.sizes))
            raise Refusal(f"Layer {self.name!r} must take the {came} values that come before it, not {due}; give it "
                          "these sizes")
        return Flow(self.outputs, flows[0].grid, flows[0].sequence)


class Held(Join):
    """A join of a sequence, or an image, with a vector that is held for all steps, or pixels, of it: two sources, in
    this order.

    Members:
        over_images: whether the first source may give images.
        counts: whether the first source says only for how many steps the vector is held.
    """

    whole = True
    stepwise = alike = False
    returns = "sequence"
    over_images: ClassVar[bool] = False
    counts: ClassVar[bool] = False

    def run(self, x: Any, state: Any = None) -> tuple[Any, Any]:
        raise Refusal(f"A sequence can be continued piece by piece if nothing waits for its end, but layer "
                      f"{self.name!r} holds a vector for all of its steps; run whole sequences")

    def following(self, flows: Sequence[Flow]) -> Flow:
        first, *others = flows
        due = "a sequence or images" if self.over_images else "a sequence"
        if len(others) != 1 or not (first.sequence or (self.over_images and first.grid is not None)) or (
                others[0].sequence or others[0].grid is not None):
            raise Refusal(f"Layer {self.name!r} must take {due}, and then one vector, not "
                          f"{' and '.join(map(str, flows))}; correct its sources")
        if tuple(self.sizes) != (first.size, others[0].size):
            raise Refusal(f"Layer {self.name!r} must take the {first.size} and {others[0].size} values that come "
                          f"before it, not {' and '.join(map(str, self.sizes))}; give it these sizes")
        return Flow(self.outputs, first.grid, first.sequence)
