"""Quantizers of an ONNX file: which are formats of ours, and why others are not.

A quantizer of values becomes a ``Clip`` in the graph, and in torch `circulant.training.models.quantizer.Quantizer`. One
of constants is computed, and the grid of its values kept. Two forms are known: ``Quant`` of QONNX (Pappalardo et al.
2022, arXiv:2206.07527), and ``QuantizeLinear`` with ``DequantizeLinear`` behind it.
"""
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto, TypeProto, helper, numpy_helper, reference

from circulant.sim.files.files import reason
from circulant.sim.refusal import Refusal
from circulant.training.onnx.nodes import Grid, Range
from circulant.training.onnx.quant import DOMAINS, QUANTS, integer_range, quantized, text

__all__ = ["Quantizers", "computed"]

NEAREST = ("ROUND", "HALF_EVEN", "HALF_UP", "HALF_DOWN")
"""Rounding modes that differ from ours in ties alone."""

POWERS = ("its scale must be a power of two, not {}; train it with such scales (in Brevitas "
          "Int8WeightPerTensorFixedPoint and Int8ActPerTensorFixedPoint)")


class Quantizers:
    """Takes the quantizers out of a model, which is changed.

    Parameters:
        keep: whether they say formats. Without it values are clipped to the quantizer's range, and constants have the
            values of the file, but all formats are left to calibration.

    Members:
        ranges: those of values, by the name of the tensor.
        grids: those of constants, by the name of the tensor.

    Raises:
        Refusal: naming each quantizer that does not fit, with the rule.
    """

    def __init__(self, model: Any, *, keep: bool = True) -> None:
        self.ranges, self.grids = dict[str, Range](), dict[str, Grid]()
        self._keep, self._graph, self._problems = keep, model.graph, list[str]()
        self._known = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
        self._codes, self._opsets = dict[str, NodeProto](), model.opset_import
        nodes = []
        for number, node in enumerate(model.graph.node):
            node.name = node.name or f"{node.op_type.lower()}_{number}"
            made = self._replaced(node)
            if made is not None:
                nodes.append(made)
        if self._problems:
            raise Refusal("Quantizers of an ONNX file must fit the formats of circulant, but "
                          f"{'; '.join(self._problems)}; or import the file with --ignore-quantizers (in Python "
                          "quantizers=False), which fits all formats to the data")
        del model.graph.node[:]
        model.graph.node.extend(nodes)

    def _replaced(self, node: NodeProto) -> NodeProto | None:
        """The node that stands in the place of a node, if any does."""
        of_data = bool(node.input) and node.input[0] not in self._known
        if node.op_type in QUANTS and node.domain in DOMAINS:
            return self._quant(node, of_data)
        if node.op_type == "QuantizeLinear" and of_data:
            self._codes[node.output[0]] = node
            low, high, zero = self._code(node)
            return self._clipped(node, low=low, high=high, zero=zero)
        if node.op_type == "DequantizeLinear" and of_data:
            return self._decoded(node)
        if node.op_type == "DequantizeLinear":
            self._note(node, self._known[node.input[0]].dtype.itemsize * 8)
        if node.op_type != "Shape" and all(name in self._known for name in node.input if name):
            self._compute(node)
        return node

    def _quant(self, node: NodeProto, of_data: bool) -> NodeProto | None:
        """A ``Quant`` of QONNX."""
        options = {each.name: helper.get_attribute_value(each) for each in node.attribute}
        scale, zero, bits = (self._known.get(name) for name in node.input[1:4])
        signed, narrow = bool(options.get("signed", 1)), bool(options.get("narrow", 0))
        rounding = text(options.get("rounding_mode", "ROUND")).upper()
        if scale is None or zero is None or bits is None or bits.size != 1 or bits.item() % 1:
            return self._refuse(node, "its scale, zero point and bit width must be constants, and the bit width one "
                                      "integer; export it for inference")
        if not of_data:
            values = quantized(self._known[node.input[0]], scale, zero, bits, signed=signed, narrow=narrow,
                               rounding=rounding)
            self._keep_constant(node.output[0], values.astype(np.float32))
            self._note(node, int(bits.item()) + (not signed))
            return None
        if rounding not in NEAREST:
            return self._refuse(node, f"its rounding_mode must be one of {', '.join(NEAREST)}, not {rounding}; train "
                                      "it with one of those")
        if bits.item() == 1 and signed:
            return self._refuse(node, "its values must have 2 bits or more, as one signed bit is a sign; train it "
                                      "with 2")
        low, high = integer_range(int(bits.item()), signed=signed, narrow=narrow)
        return self._clipped(node, low=low, high=high, zero=zero)

    def _code(self, node: NodeProto) -> tuple[int, int, NDArray[Any]]:
        """The least and the greatest integer of a ``QuantizeLinear``, and its zero point."""
        zero = self._known.get(node.input[2]) if len(node.input) > 2 else np.zeros(1, np.uint8)
        if zero is None or zero.dtype.kind not in "iu":
            self._refuse(node, "its zero point must be a constant integer; export it for inference")
            zero = np.zeros(1, np.uint8)
        ends = np.iinfo(zero.dtype)
        return int(ends.min), int(ends.max), zero

    def _clipped(self, node: NodeProto, *, low: int, high: int, zero: NDArray[Any]) -> NodeProto:
        """A node that clips values to the range of a quantizer, which is kept."""
        scale = self._known.get(node.input[1])
        if scale is None or scale.size != 1 or np.size(zero) != 1 or float(np.asarray(zero).item()) % 1:
            return self._refuse(node, "scale and zero point of values must be constants, one for all channels, and the "
                                      "zero point an integer; train it with one for each tensor")
        shift = int(np.asarray(zero).item())
        low, high, frac = low - shift, high - shift, self._frac(node, scale)
        if self._keep and frac is not None:
            self.ranges[node.output[0]] = Range(low, high, frac)
        names = [f"{node.output[0]}_{end}" for end in ("low", "high")]
        for name, end in zip(names, (low, high), strict=True):
            self._keep_constant(name, np.asarray(end * float(scale.item()), np.float32))
        return helper.make_node("Clip", [node.input[0], *names], [node.output[0]], name=node.name)

    def _decoded(self, node: NodeProto) -> NodeProto:
        """A node that does nothing, for a ``DequantizeLinear`` that undoes the codes before it."""
        source = self._codes.get(node.input[0])
        alike = source is not None and len(source.input) == len(node.input) and all(
            np.array_equal(self._known.get(a, a), self._known.get(b, b))
            for a, b in zip(source.input[1:], node.input[1:], strict=True))
        if not alike:
            return self._refuse(node, "it must stand right behind a QuantizeLinear with the same scale and zero point; "
                                      "export the graph in the QDQ form")
        return helper.make_node("Identity", [node.input[0]], [node.output[0]], name=node.name)

    def _note(self, node: NodeProto, width: int) -> None:
        """Keep the grid of constants; one for each channel is that of the finest, with the bits that all then take."""
        scale = self._known.get(node.input[1])
        frac = None if scale is None else self._frac(node, scale)
        if self._keep and scale is not None and frac is not None:
            centered = len(node.input) < 3 or not np.any(self._known.get(node.input[2], 1))
            self.grids[node.output[0]] = Grid(frac, width if scale.size == 1 and centered else 2)

    def _frac(self, node: NodeProto, scale: NDArray[Any]) -> int | None:
        """Fraction bits of the least of scales that are powers of two."""
        parts = [math.frexp(value) for value in np.asarray(scale, np.float64).reshape(-1)]
        if any(mantissa != 0.5 for mantissa, _ in parts):
            if self._keep:
                odd = next(value for value, part in zip(scale.reshape(-1), parts, strict=True) if part[0] != 0.5)
                self._refuse(node, POWERS.format(f"{odd:.6g}"))
            return None
        return max(1 - exponent for _, exponent in parts)

    def _compute(self, node: NodeProto) -> None:
        """Keep what a node of constants gives."""
        self._known |= dict(zip(node.output, computed(node, self._known, self._opsets), strict=False))

    def _keep_constant(self, name: str, value: NDArray[Any]) -> None:
        self._known[name] = value
        self._graph.initializer.append(numpy_helper.from_array(value, name))

    def _refuse(self, node: NodeProto, why: str) -> NodeProto:
        """The node as it is, with a problem noted."""
        self._problems.append(f"of node {node.name!r} ({node.op_type}) {why}")
        return node


def computed(node: NodeProto, known: Mapping[str, NDArray[Any]], opsets: Iterable[Any]) -> list[NDArray[Any]]:
    """The values that a node of constants gives.

    Parameters:
        opsets: those of the file.

    Raises:
        Refusal: when there are none, by the node's name.
    """
    try:
        given = {name: known[name] for name in node.input if name}
        taken, gives = ([helper.make_value_info(name, TypeProto()) for name in names if name]
                        for names in (given, node.output))
        model = helper.make_model(helper.make_graph([node], "constants", taken, gives), opset_imports=list(opsets))
        try:
            evaluator = reference.ReferenceEvaluator(model)
        except RuntimeError:  # It has some operators of the newest opsets alone.
            evaluator = reference.ReferenceEvaluator(node)
        made: Any = evaluator.run(None, given)
    except Exception as error:  # What numpy raises for sizes and indices that nothing has.
        raise Refusal(f"Node {node.name!r} ({node.op_type}) of the ONNX file must be computable, as it depends on no "
                      f"data, but it is not ({reason(error)}); export the file again") from None
    return [np.asarray(each) for each in made]
