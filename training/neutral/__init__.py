"""The neutral graph, between torch and the reference: its nodes, what kinds register to capture and to lower them."""
from circulant.training.neutral.building import Builder
from circulant.training.neutral.call import Call, Unsupported, Value
from circulant.training.neutral.forms import fault, of_torch
from circulant.training.neutral.graph import Node
from circulant.training.neutral.lowering import lowered
from circulant.training.neutral.streams import Stream

__all__ = ["Builder", "Call", "Node", "Stream", "Unsupported", "Value", "fault", "lowered", "of_torch"]
