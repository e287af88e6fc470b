"""Layouts written for other tools: Kaitai Struct, Wireshark dissectors in Lua, C headers, JSON Schema, Markdown.

Each format is a module with a function ``export(keys) -> Export``, which reads only the layout IR: no format knows a
protocol. The parts of a layout that a format cannot express are in ``Export.missing``, and in the exported text.
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
        keys: schema keys, or names of protocols for the layouts of their streams.
        form: one of ``FORMS``.

    Raises:
        Misuse: for a key or form that does not exist, or several keys for a form that takes one.

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
