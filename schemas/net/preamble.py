"""Headers that may precede a stream; ``wirekit.schemas.beginnings`` recognises them.

Sources: the PROXY protocol, https://www.haproxy.org/download/2.9/doc/proxy-protocol.txt, versions 1 and 2; TLS records,
RFC 8446 §5.1.
"""

from __future__ import annotations

from wirekit.schemas.beginnings import SIGNATURE_V1, SIGNATURE_V2, TLS_CONTENT, TLS_VERSIONS
from wirekit.values import SymbolTable
from wirekit.wire import (
    Bit,
    Bits,
    Bytes,
    Const,
    Delimited,
    Length,
    RecordsToEnd,
    Struct,
    Switch,
    Symbols,
    rest,
    this,
    uint8,
    uint16,
)

PROXY_V1 = Struct(
    "signature" / Const(Bytes(len(SIGNATURE_V1)), SIGNATURE_V1),
    "addresses" / Delimited("\r\n") * "family, source, destination, their ports",
    name="ProxyV1",
)

COMMANDS = SymbolTable(
    "proxy_command", {0: ("LOCAL", "the proxy itself speaks"), 1: ("PROXY", "on behalf of a client")}
)
FAMILIES = SymbolTable("proxy_family", {0: "UNSPEC", 1: "INET", 2: "INET6", 3: "UNIX"})
TRANSPORTS = SymbolTable("proxy_transport", {0: "UNSPEC", 1: "STREAM", 2: "DGRAM"})
PIECES = SymbolTable(
    "proxy_tlv",
    {
        0x01: "ALPN",
        0x02: "AUTHORITY",
        0x03: "CRC32C",
        0x04: "NOOP",
        0x05: "UNIQUE_ID",
        0x20: "SSL",
        0x30: "NETNS",
    },
)


def _addresses(size: int) -> Struct:
    return Struct(
        "source" / Bytes(size),
        "destination" / Bytes(size),
        "source_port" / uint16,
        "destination_port" / uint16,
        name="Addresses",
    )


PIECE = Struct("type" / Symbols(uint8, PIECES), "value" / Bytes(uint16), name="Tlv")

PROXY_V2 = Struct(
    "signature" / Const(Bytes(len(SIGNATURE_V2)), SIGNATURE_V2),
    "command" / Bits(uint8, "version" / Bit(4), "command" / Bit(4, COMMANDS), order="msb"),
    "family" / Bits(uint8, "family" / Bit(4, FAMILIES), "transport" / Bit(4, TRANSPORTS), order="msb"),
    "length" / Length(uint16) * "bytes after this field",
    "addresses"
    / Switch(
        this.family.family,
        {
            1: _addresses(4),
            2: _addresses(16),
            3: Struct("source" / Bytes(108), "destination" / Bytes(108), name="Paths"),
        },
        default=Bytes(0),
    ),
    "tlvs" / RecordsToEnd(PIECE),
    name="ProxyV2",
)

CONTENT = SymbolTable("tls_content_type", TLS_CONTENT)
VERSIONS = SymbolTable("tls_version", TLS_VERSIONS)
TLS_RECORD = Struct(
    "content_type" / Symbols(uint8, CONTENT),
    "version" / Symbols(uint16, VERSIONS) * "of the record; a ClientHello has 1.0 or 1.2 whichever version it offers",
    "length" / Length(uint16) * "bytes after this field",
    "fragment" / rest(),
    name="TlsRecord",
)
