"""Clients for ``wirekit fuzz``: they ask a server something and look at the answer. Nothing here imports wirekit."""

from __future__ import annotations

import os
import socket
import struct
import sys

NUMBER = 7
LIST_GROUPS = struct.pack(">ihhih", 12, 16, 0, NUMBER, 2) + b"me"


def answer(connection: socket.socket) -> bytes:
    (size,) = struct.unpack(">i", exactly(connection, 4))
    return exactly(connection, size)


def exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise EOFError("the server hung up")
        data += more
    return data


def main() -> None:
    manner, port = sys.argv[1], int(sys.argv[2])
    with socket.create_connection(("127.0.0.1", port)) as connection:
        requests = {
            "wrong": LIST_GROUPS[:-4] + b"\0\x09me",
            "longer": b"\0\0\0\x20" + LIST_GROUPS[4:],
            "negative": b"\xff\xff\xff\xff",
        }
        connection.sendall(requests.get(manner, LIST_GROUPS))
        connection.settimeout(None if manner == "patient" else 0.3)
        try:
            (number,) = struct.unpack_from(">i", answer(connection))
        except (EOFError, OSError, struct.error):
            sys.exit(1)
        if number != NUMBER:
            os.abort() if manner == "trusting" else sys.exit(1)


if __name__ == "__main__":
    main()
