"""Sections of our docstrings as griffe knows them: members of a class are its attributes, and a line has one name."""
import re
from typing import Any

import griffe


class Members(griffe.Extension):
    """Lets a section "Members:" be shown as a list, and "a, b: …" as an entry of both."""

    def on_object(self, *, obj: griffe.Object, **options: Any) -> None:
        if obj.docstring is not None:
            text = obj.docstring.value.replace("\nMembers:\n", "\nAttributes:\n")
            obj.docstring.value = re.sub(r"(?m)^ +\w+(, \w+)+:", lambda found: found[0].replace(", ", ","), text)
