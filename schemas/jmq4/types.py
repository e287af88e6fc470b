"""The basic types of JMQ4, all big-endian.

Sources: document, 基本类型; JoyQueue network/serializer/Serializer.java:850-1051.

Null and empty are the same on the wire, a length of 0; readers take any length <= 0 for null. The one-byte length is
written unchecked and read signed, so 127 bytes are the most that peers understand (``string1``); the broker's storage
reader takes it unsigned (``string1_unsigned``, AbstractSerializer.java:146-152).
"""

from __future__ import annotations

from wirekit.schemas.jmq4.codes import LANGUAGES, OLD_LANGUAGES
from wirekit.wire import Array, Bytes, Flag, IfThenElse, Node, String, Symbols, context, int8, int16, int32, uint8

boolean = Flag(int8)
string1 = String(int8, null=0)
string1_unsigned = String(uint8, null=0)
string2 = String(int16, null=0)
nullable_bytes = Bytes(int32, null=0)
language = IfThenElse(
    context.old_languages, Symbols(uint8, OLD_LANGUAGES, closed=True), Symbols(uint8, LANGUAGES, closed=True)
)
"""Of a client; its numbers changed in 4.2.3, and ``context.old_languages`` selects the older ones."""


def array(element: Node) -> Array:
    """A SHORT that counts, and the elements. There is no null form; a negative count is an error.

    Nobody writes one. Of JoyQueue's readers some throw on it, and many, which count up to it, read no element.
    """
    return Array(int16, element)
