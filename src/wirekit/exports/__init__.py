"""Layouts written for other tools: Kaitai Struct, Wireshark, C, JSON Schema, Markdown, and type checkers of Python.

Each format is a module with a function ``export(keys) -> Export``, which reads layouts and the declarations of the
registry: no format knows a protocol. The parts of a layout that a format cannot express are in ``Export.missing``, and
in the exported text.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from wirekit.errors import Misuse
from wirekit.exports.missing import Export, Missing

FORMS = {
    "ksy": "wirekit.exports.ksy",
    "lua": "wirekit.exports.lua",
    "c": "wirekit.exports.c_header",
    "jsonschema": "wirekit.exports.json_schema",
    "markdown": "wirekit.exports.markdown",
    "pyi": "wirekit.exports.stubs",
}


def export(keys: Sequence[str], form: str) -> Export:
    """Layouts in the format of another tool.

    Args:
        keys: schema keys, or names of protocols. ``ksy`` takes one key, ``lua`` one key or name. A name means the
            layouts of the protocol's streams for ``lua`` and ``jsonschema``, all its layouts for the other forms.
        form: one of ``FORMS``.

    Returns:
        The text, and the parts of the layouts that the form cannot express.

    Raises:
        Misuse: for a key, name or form that does not exist, or more keys than the form takes.

    >>> from wirekit.exports import export
    >>> print(export(["kafka.offset_index"], "lua").text.splitlines()[0])
    -- A Wireshark dissector of kafka.offset_index, written by `wirekit schemas kafka.offset_index --output lua`.
    """
    if form not in FORMS:
        raise Misuse(f"no output {form!r}; choose from {', '.join(FORMS)}")
    if isinstance(keys, str):
        raise Misuse(f"export: keys must be a list of keys, not {keys!r}")
    written: Export = importlib.import_module(FORMS[form]).export(list(keys))
    return written


__all__ = ["FORMS", "Export", "Missing", "export"]
