"""A protobuf message as a node. Protobuf's runtime takes long to import, so it is imported with the first message."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from wirekit.errors import Misuse
from wirekit.wire.message_fields import DerivedFrom
from wirekit.wire.node import Node
from wirekit.wire.stream import Reader, Scope, Writer

if TYPE_CHECKING:
    from wirekit.values import Record
    from wirekit.wire.protobuf import Message


class Protobuf(Node):
    """A protobuf message: all bytes before the limit.

    A missing required field is a bad ``required`` check, and Wrong when built, unless ``$keep`` names the field. A
    required field of an enum counts as missing if its number has no symbol, because the enum is closed. If a field that
    is not repeated occurs several times, the last occurrence is its value. Google's libraries merge the occurrences of
    a message; LightProto, which Pulsar's broker and Java client use, also takes the last one.

    Args:
        descriptor: the message's class, such as ``PulsarApi_pb2.BaseCommand``, its descriptor, or ``module:Message``,
            which is imported at first use.
        selector: a field that holds the number of the sub-message that must be present, or "".
        derived: {field: ``SizeOf`` or ``CountOf``} for fields that are derived from members after the message.
        times: 64-bit integers that count time since the epoch: {path: unit}, where the unit is ``s``, ``ms``, ``us``
            or ``ns``. They are timestamps in Arrow columns.
    """

    def __init__(
        self,
        descriptor: Any,
        *,
        selector: str = "",
        derived: Mapping[str, DerivedFrom] | None = None,
        times: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__()
        self.descriptor = descriptor
        self.selector = selector
        self.derived = dict(derived or {})
        self.times = dict(times or {})

    @cached_property
    def message(self) -> Message:
        """The message type."""
        from wirekit.wire.protobuf import Message, refuse_fields

        descriptor = self.descriptor
        if isinstance(descriptor, str):
            module, _, name = descriptor.partition(":")
            try:
                descriptor = getattr(importlib.import_module(module), name)
            except (AttributeError, ImportError, ValueError) as error:
                raise Misuse(f"Protobuf({descriptor!r}): {error}") from None
        descriptor = getattr(descriptor, "DESCRIPTOR", descriptor)
        if not hasattr(descriptor, "fields_by_name"):
            raise Misuse(f"Protobuf needs a message class, its descriptor, or module:Message, not {descriptor!r}")
        refuse_fields(descriptor, set())
        message = Message.of(descriptor)
        for path in filter(None, (self.selector, *self.times)):
            inner: Message | None = message
            for name in path.split("."):
                if inner is None or name not in inner.by_name:
                    raise Misuse(f"Protobuf: {message.name} has no field {path!r}")
                inner = inner.by_name[name].message
        message.selector = self.selector or message.selector
        return message

    @property
    def takes_all(self) -> bool:
        return True

    @cached_property
    def _reader(self) -> Callable[[Message, Reader], Record]:
        from wirekit.wire.protobuf import parse_message

        return parse_message

    def _parse(self, stream: Reader, context: Scope, path: str) -> Record:
        return self._reader(self.message, stream)

    def _build(self, obj: Any, stream: Writer, context: Scope, path: str) -> Any:
        from wirekit.wire.protobuf import build_message

        stream.write(build_message(self.message, obj, stream))
        return obj

    def load(self, obj: Any, context: Scope) -> Any:
        from wirekit.wire.protobuf import load_message

        return load_message(self.message, obj)
