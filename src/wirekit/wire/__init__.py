"""The vocabulary of layouts: nodes that a layout is composed of.

A layout is a ``Struct`` of fields, ``"name" / node``. ``docs/reference/vocabulary.md`` shows each node with an example
and its bytes; ``help(wirekit.wire.String)`` explains one node. A node with an invalid argument raises ``Misuse``;
``register`` raises it, with the path, for nodes that do not work together.

>>> from wirekit.wire import Checked, Length, String, Struct, int32, uint32
>>> Frame = Struct("size" / Length(int32), "crc" / Checked(uint32, "crc32"), "text" / String(int32))

Numbers
    int8, int16, int24, ... int64           signed and big-endian; int16le, int24le and so on are little-endian
    uint8, uint16, uint24, ... uint64       unsigned; uint16le and so on
    float32, float64                        also float32le, float64le
    varint32, varint64                      a variable number of bytes
    zigzag32, zigzag64, sleb32, sleb64      the same, signed in two ways
    Integer, Varint                         other widths, orders and limits; lengths of ASN.1, MySQL, QUIC, Bitcoin
    Timestamp, Duration                     an integer that counts time since the epoch, or a span of time
    Flag, Symbols                           an integer as a boolean, or with a name for each value
    Bits, Bit                               named bit fields in one integer

Bytes and text
    Bytes, String                           of a fixed size, after a length prefix, or sized by another field
    Delimited                               text up to a delimiter
    Address, Padding                        a network address; filler bytes
    Custom                                  bytes that two functions of your own decode and encode
    rest, unexplained                       all bytes before the limit, known or unknown

Structure
    Struct                                  named fields one after the other
    Array, Repeat, RecordsToEnd             a list after its count, of a computed count, or up to the limit
    Sized                                   a length prefix and a layout inside that length
    Ref                                     another registered layout, by key
    Lookahead                               a number further ahead, read without consuming it

Conditions and choices
    If, IfThenElse, Switch                  selected by an expression on earlier fields
    IfNext, IfMore                          selected by the bytes that follow
    OrBytes                                 a layout, or plain bytes if they do not fit it

Fields that depend on other fields
    Length                                  the size of other fields; checked when parsed, computed when built
    Checked                                 a checksum of other fields; checked when parsed, computed when built
    Const, Default                          a fixed value; a value that may be left out when building
    Refused, unnamed                        values that peers refuse

Compressed, encrypted, protobuf
    Compressed, Encrypted                   a layout inside compressed or encrypted bytes
    Protobuf                                a protobuf message
    SizeOf, CountOf                         members of a protobuf message that count other fields

Expressions and base
    this, context, len_                     earlier fields, the context of the caller, the length of a field
    Limits                                  bounds on memory and depth for hostile bytes
    Node                                    the base class of all nodes

Nodes read from (buffer, position, limit): no node reads past the enclosing limit.
"""

from __future__ import annotations

from wirekit.wire.blobs import Address as Address
from wirekit.wire.blobs import Bytes as Bytes
from wirekit.wire.blobs import Custom as Custom
from wirekit.wire.blobs import Delimited as Delimited
from wirekit.wire.blobs import Padding as Padding
from wirekit.wire.blobs import String as String
from wirekit.wire.blobs import rest as rest
from wirekit.wire.blobs import unexplained as unexplained
from wirekit.wire.composite import Array as Array
from wirekit.wire.composite import If as If
from wirekit.wire.composite import IfMore as IfMore
from wirekit.wire.composite import IfNext as IfNext
from wirekit.wire.composite import IfThenElse as IfThenElse
from wirekit.wire.composite import Lookahead as Lookahead
from wirekit.wire.composite import OrBytes as OrBytes
from wirekit.wire.composite import RecordsToEnd as RecordsToEnd
from wirekit.wire.composite import Ref as Ref
from wirekit.wire.composite import Repeat as Repeat
from wirekit.wire.composite import Sized as Sized
from wirekit.wire.composite import Struct as Struct
from wirekit.wire.composite import Switch as Switch
from wirekit.wire.compressed import Compressed as Compressed
from wirekit.wire.derived import Checked as Checked
from wirekit.wire.derived import Const as Const
from wirekit.wire.derived import Default as Default
from wirekit.wire.derived import Length as Length
from wirekit.wire.encrypted import Encrypted as Encrypted
from wirekit.wire.fields import len_ as len_
from wirekit.wire.fields import this as this
from wirekit.wire.message import Protobuf as Protobuf
from wirekit.wire.message_fields import CountOf as CountOf
from wirekit.wire.message_fields import SizeOf as SizeOf
from wirekit.wire.node import Node as Node
from wirekit.wire.node import context as context
from wirekit.wire.numbers import Bit as Bit
from wirekit.wire.numbers import Bits as Bits
from wirekit.wire.numbers import Duration as Duration
from wirekit.wire.numbers import Flag as Flag
from wirekit.wire.numbers import Integer as Integer
from wirekit.wire.numbers import Symbols as Symbols
from wirekit.wire.numbers import Timestamp as Timestamp
from wirekit.wire.numbers import Varint as Varint
from wirekit.wire.numbers import float32 as float32
from wirekit.wire.numbers import float32le as float32le
from wirekit.wire.numbers import float64 as float64
from wirekit.wire.numbers import float64le as float64le
from wirekit.wire.numbers import int8 as int8
from wirekit.wire.numbers import int16 as int16
from wirekit.wire.numbers import int16le as int16le
from wirekit.wire.numbers import int24 as int24
from wirekit.wire.numbers import int24le as int24le
from wirekit.wire.numbers import int32 as int32
from wirekit.wire.numbers import int32le as int32le
from wirekit.wire.numbers import int40 as int40
from wirekit.wire.numbers import int40le as int40le
from wirekit.wire.numbers import int48 as int48
from wirekit.wire.numbers import int48le as int48le
from wirekit.wire.numbers import int56 as int56
from wirekit.wire.numbers import int56le as int56le
from wirekit.wire.numbers import int64 as int64
from wirekit.wire.numbers import int64le as int64le
from wirekit.wire.numbers import sleb32 as sleb32
from wirekit.wire.numbers import sleb64 as sleb64
from wirekit.wire.numbers import uint8 as uint8
from wirekit.wire.numbers import uint16 as uint16
from wirekit.wire.numbers import uint16le as uint16le
from wirekit.wire.numbers import uint24 as uint24
from wirekit.wire.numbers import uint24le as uint24le
from wirekit.wire.numbers import uint32 as uint32
from wirekit.wire.numbers import uint32le as uint32le
from wirekit.wire.numbers import uint40 as uint40
from wirekit.wire.numbers import uint40le as uint40le
from wirekit.wire.numbers import uint48 as uint48
from wirekit.wire.numbers import uint48le as uint48le
from wirekit.wire.numbers import uint56 as uint56
from wirekit.wire.numbers import uint56le as uint56le
from wirekit.wire.numbers import uint64 as uint64
from wirekit.wire.numbers import uint64le as uint64le
from wirekit.wire.numbers import varint32 as varint32
from wirekit.wire.numbers import varint64 as varint64
from wirekit.wire.numbers import zigzag32 as zigzag32
from wirekit.wire.numbers import zigzag64 as zigzag64
from wirekit.wire.refused import Refused as Refused
from wirekit.wire.refused import unnamed as unnamed
from wirekit.wire.stream import Limits as Limits
