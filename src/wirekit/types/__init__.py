"""Types of decoded values, for type checkers and ``isinstance``: one module per protocol, one class per layout.

``kafka.produce.request.v2`` is ``wirekit.types.kafka.ProduceRequestV2``, ``pulsar.frame`` is
``wirekit.types.pulsar.Frame``. A type checker knows their fields, and knows the class of ``decode(data, KEY).value``
where KEY is a literal. At run time a class is the record type of the layout.

>>> import wirekit
>>> from wirekit.types.kafka import ListGroupsResponseV0
>>> data = bytes.fromhex("0000000a00000007000000000000")
>>> value = wirekit.decode(data, "kafka.list_groups.response.v0").value
>>> value.correlation_id, isinstance(value, ListGroupsResponseV0)
(7, True)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wirekit.values import Record as Fields

__all__ = ["Fields"]


def record_types(protocol: str) -> Callable[[str], Any]:
    """Finds the record type of a layout of a protocol by the name of its class."""

    def find(name: str) -> Any:
        from wirekit.exports.stubs import class_name
        from wirekit.registry import registry

        for layout in registry.protocol(protocol).layouts:
            key = f"{protocol}.{layout}"
            record = getattr(registry[key].node, "record", None)
            if record is not None and class_name(key) == name:
                return record
        raise AttributeError(f"wirekit.types.{protocol} has no type {name!r} at run time")

    return find
