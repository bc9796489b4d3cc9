"""Documents: what is written as JSON or shown, and never read back by key."""
from collections.abc import Mapping, Sequence

__all__ = ["Document", "Plain"]

Plain = None | bool | int | float | str | Sequence["Plain"] | Mapping[str, "Plain"]
"""Value of a JSON document."""

Document = dict[str, Plain]
"""JSON document to be written or shown: no type checker lets a member be computed with; for that there are records."""
