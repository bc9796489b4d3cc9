"""Capturing: from any torch model to a neutral graph, with a report on every part of it."""
from circulant.training.capture.report import ConversionReport, Entry
from circulant.training.capture.trace import Captured, capture, inspect
from circulant.training.neutral.graph import Graph, Node

__all__ = ["Captured", "ConversionReport", "Entry", "Graph", "Node", "capture", "inspect"]
