"""The command line of the benchmarks: measure, then show as a table for people and, if wanted, as JSON."""
from benchmarks.commands import checks, chips, designs, training
from benchmarks.commands.group import main

__all__ = ["checks", "chips", "designs", "main", "training"]
