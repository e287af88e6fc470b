"""The ``$`` entries of a JSON record, which keep details beside its fields; invalid entries are refused."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from wirekit.errors import Misfit
from wirekit.values import EXTRAS, shown

LARGEST_FIELD = (1 << 29) - 1
SIZES = {1: 8, 5: 4}  # bytes of a protobuf value by wire type
VARINT, LENGTH = 0, 2
OF_STRUCT = ("keep", "trailing", "raw", "width")
OF_OPENED = ("keep", "trailing")
"""The entries of the record of compressed data."""
OF_MESSAGE = ("keep", "bytes", "unknown")


def load_extras(
    mapping: Mapping[str, Any], fields: Iterable[str], entries: tuple[str, ...] = OF_STRUCT
) -> dict[str, Any] | None:
    """``Record.extra`` of a mapping in the JSON form; None if it has no ``$`` entries.

    Args:
        fields: the fields of the record.
        entries: the entries that it may have; a protobuf message may keep a field that the mapping does not have.

    Raises:
        Misfit: for an entry with invalid content, or for a field that does not exist.
    """
    refuse_unknown(mapping, fields, entries)
    extra = {}
    for name, value in mapping.items():
        if name.startswith("$"):
            extra[name[1:]] = _entry(name[1:], value)
    for name in OF_STRUCT:
        for path in extra.get(name, ()):
            first = re.split(r"[.\[]", path, maxsplit=1)[0]
            if first not in fields:
                has = ", ".join(fields) or "none"
                raise Misfit(f"${name} names {shown(path)}, but there is no field {shown(first)}; the fields are {has}")
            if name == "keep" and entries is not OF_MESSAGE and first not in mapping:
                raise Misfit(f"$keep names {shown(path)}, but no value is given for it")
    return extra or None


def refuse_unknown(mapping: Mapping[str, Any], fields: Iterable[str], entries: tuple[str, ...] = ()) -> None:
    """Refuses a mapping in the JSON form that has names other than fields and some ``$`` entries.

    Raises:
        Misfit: the text has the name.
    """
    for name in mapping:
        if not str(name).startswith("$"):
            if name not in fields:
                raise Misfit(f"no field {shown(name)}; the fields are {', '.join(fields) or 'none'}")
        elif name[1:] not in EXTRAS:
            raise Misfit(f"{shown(name)} is not one of {', '.join('$' + extra for extra in EXTRAS)}")
        elif name[1:] not in entries:
            have = f" (the entries here are {', '.join(f'${each}' for each in entries)})" if entries else ""
            raise Misfit(f"{name} does not apply to this record; leave it out{have}")


def load_bytes(value: Any) -> Any:
    """The bytes of hex text; bytes are returned unchanged."""
    if not isinstance(value, str):
        return value
    try:
        return bytes.fromhex(value)
    except ValueError:
        raise Misfit(f"bytes must be given in hex, not {shown(value)}") from None


def _entry(name: str, value: Any) -> Any:
    """The content of an entry, after a check of its form."""
    is_list, is_mapping = isinstance(value, (list, tuple)), isinstance(value, Mapping)
    match name:
        case "keep":
            if not is_list or not all(isinstance(each, str) for each in value):
                raise Misfit(f"$keep must be a list of field names, not {shown(value)}")
            return list(value)
        case "trailing":
            if not is_mapping:
                raise Misfit(f"$trailing must be an object of hex by field name, not {shown(value)}")
            return {path: _hex(f"$trailing of {shown(path)}", data) for path, data in value.items()}
        case "raw":
            if not is_mapping:
                raise Misfit(f"$raw must be an object of integers, or bytes in hex, by field name, not {shown(value)}")
            raw = {}
            for path, each in value.items():
                is_integer = isinstance(each, int) and not isinstance(each, bool)
                raw[path] = each if is_integer else _hex(f"$raw of {shown(path)}", each, "an integer or bytes in hex")
            return raw
        case "width":
            if not is_mapping:
                raise Misfit(f"$width must be an object of integers by field name, not {shown(value)}")
            for path, number in value.items():
                if isinstance(number, bool) or not isinstance(number, int):
                    raise Misfit(f"$width of {shown(path)} must be an integer, not {shown(number)}")
            return dict(value)
        case "bytes":
            return _hex("$bytes", value)
        case _:
            if not is_list:
                raise Misfit(f"$unknown must be a list of protobuf fields, not {shown(value)}")
            for index, field in enumerate(value):
                if not isinstance(field, Mapping) or not _is_field(field.get("number"), field.get("wire_type"), field):
                    expected = "number, wire_type (0, 1, 2 or 5) and a value of that wire type"
                    raise Misfit(f"$unknown[{index}] must be an object of {expected}, not {shown(field)}")
            return list(value)


def _hex(entry: str, value: Any, form: str = "bytes in hex") -> bytes:
    try:
        data = load_bytes(value)
    except Misfit:
        data = None
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise Misfit(f"{entry} must be {form}, not {shown(value)}")
    return bytes(data)


def _is_field(number: Any, wire_type: Any, entry: Mapping[str, Any]) -> bool:
    """Whether an entry of ``$unknown`` is a field that can be written."""
    value = entry.get("value")
    if type(number) is not int or not 1 <= number <= LARGEST_FIELD or type(wire_type) is not int:
        return False
    if wire_type == VARINT:
        return type(value) is int and 0 <= value < 1 << 64
    if wire_type != LENGTH and wire_type not in SIZES:
        return False
    try:
        return isinstance(value, str) and len(bytes.fromhex(value)) == SIZES.get(wire_type, len(value) // 2)
    except ValueError:
        return False
