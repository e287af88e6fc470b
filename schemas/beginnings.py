"""The first bytes of streams and files of other formats; the layouts of those that can be read are in ``net``.

Sources: the PROXY protocol, https://www.haproxy.org/download/2.9/doc/proxy-protocol.txt; TLS records, RFC 8446 §5.1;
HTTP/1.1, RFC 9112; HTTP/2, RFC 9113 §3.4; SSH, RFC 4253 §4.2; Parquet, https://parquet.apache.org/docs/file-format/;
tar, POSIX.1-2017 pax; zip, https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT; snoop, RFC 1761; other
captures, Wireshark's ``wiretap/libpcap.c`` and ``wiretap/netmon.c``.
"""

from __future__ import annotations

from wirekit.registry import Beginning

SIGNATURE_V1 = b"PROXY "
LONGEST_V1 = 107
SIGNATURE_V2 = b"\r\n\r\n\0\r\nQUIT\n"
LONGEST_V2 = 16 + 0xFFFF
TLS_CONTENT = {20: "change_cipher_spec", 21: "alert", 22: "handshake", 23: "application_data"}
TLS_VERSIONS = {0x0300: "SSL 3.0", 0x0301: "TLS 1.0", 0x0302: "TLS 1.1", 0x0303: "TLS 1.2", 0x0304: "TLS 1.3"}
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH")

BEGINNINGS = (
    Beginning("a PROXY protocol version 1 header", (SIGNATURE_V1,), "net.proxy_v1", LONGEST_V1),
    Beginning("a PROXY protocol version 2 header", (SIGNATURE_V2,), "net.proxy_v2", LONGEST_V2),
    *(
        Beginning(
            f"a TLS {name.replace('_', ' ')} record",
            tuple(bytes([content]) + version.to_bytes(2, "big") for version in TLS_VERSIONS),
            advice="decrypt it first, or capture after the TLS end point",
        )
        for content, name in TLS_CONTENT.items()
    ),
    Beginning(
        "an HTTP request",
        tuple(f"{method} ".encode() for method in METHODS),
        advice="if this is a broker's port, a web client connects to it by mistake",
    ),
    Beginning("an HTTP response", (b"HTTP/1.",), advice="the port is a web server's"),
    Beginning(
        "HTTP/2",
        (b"PRI * HTTP/2.0",),
        advice="if this is a broker's port, a web or gRPC client connects to it by mistake",
    ),
    Beginning("SSH", (b"SSH-2.0-", b"SSH-1.")),
    Beginning(
        "a capture of another format",  # of libpcap: modified by A. Kuznetsov, and of Ixia
        tuple(bytes.fromhex(magic) for magic in ("a1b2cd34", "34cdb2a1", "1c0001ac", "ac01001c"))
        + (b"snoop\0\0\0", b"GMBU", b"RTSS"),
        advice="`editcap FILE OUT.pcapng` converts it",
    ),
    Beginning("a Parquet file", (b"PAR1",), advice="`wirekit sql` reads the directory that `wirekit pipeline` wrote"),
    Beginning("a tar archive", (b"ustar",), advice="extract it, and pass the files in it", offset=257),
    Beginning("a zip archive", (b"PK\3\4",), advice="extract it, and pass the files in it"),
)
