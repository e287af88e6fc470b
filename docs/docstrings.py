"""Docstrings as griffe reads them: the example at the end of one, behind ``>>>``, is a section of its own."""

from __future__ import annotations

import re
from typing import Any

import griffe


class Examples(griffe.Extension):
    """Puts ``Examples:`` in front of what is run."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called for each object that is read."""
        if obj.docstring is None:
            return
        text, mark, example = obj.docstring.value.partition("\n>>> ")
        if mark:
            indented = "\n".join(f"    {line}".rstrip() for line in f">>> {example}".splitlines())
            text += "\n\nExamples:\n" + indented + "\n"
        obj.docstring.value = re.sub(r"``([^`]+)``", r"`\1`", text)
