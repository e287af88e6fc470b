"""Parsers with planted bugs, and one without; the targets of the tests. They know nothing of wirekit.

All read ``kafka.sasl_token``: four bytes of length, then so many bytes of a token, nothing behind.
"""

from __future__ import annotations

import os
import struct
import time
from typing import Any

HELD: list[bytes] = []


def sound(data: bytes) -> dict[str, Any]:
    """A correct parser."""
    if len(data) < 4:
        raise ValueError("cut")
    (size,) = struct.unpack_from(">i", data)
    if size < 0 or len(data) != 4 + size:
        raise ValueError("wrong length")
    return {"token": data[4:]}


def unchecked(data: bytes) -> dict[str, Any]:
    """Believes that four bytes are there: struct.error is not among the errors that it promises."""
    (size,) = struct.unpack_from(">i", data)
    if size < 0 or len(data) != 4 + size:
        raise ValueError("wrong length")
    return {"token": data[4:]}


def aborting(data: bytes) -> None:
    """Dies of a negative length."""
    if data[:1] == b"\xff":
        os.abort()


def hanging(data: bytes) -> None:
    """Waits for a token that is longer than what is there."""
    if len(data) >= 4 and struct.unpack_from(">I", data)[0] > 1 << 30:
        time.sleep(60)


def greedy(data: bytes) -> None:
    """Holds twenty MiB and more for a length that nobody looked at."""
    if len(data) >= 4 and struct.unpack_from(">I", data)[0] > 1 << 30:
        HELD.append(b"x" * (200 << 20))


def leaking(data: bytes) -> None:
    """Forgets nothing."""
    HELD.append(b"x" * (2 << 20))


def misreading(data: bytes) -> dict[str, Any]:
    """Loses the last byte of tokens of two bytes and more."""
    value = sound(data)
    return {"token": value["token"][:-1] if len(value["token"]) > 1 else value["token"]}


def lenient(data: bytes) -> dict[str, Any]:
    """Takes what is there for the token, whatever the length says."""
    if len(data) < 4:
        raise ValueError("cut")
    return {"token": data[4 : 4 + struct.unpack_from(">I", data)[0]]}


def exiting(data: bytes) -> None:
    """Leaves the whole process."""
    if len(data) < 4:
        os._exit(7)


def chatting(data: bytes) -> None:
    """Prints without an end."""
    while len(data) < 4:
        os.write(2, b"chat " * 10_000)


if __name__ == "__main__":
    import json
    import sys

    name, *path = sys.argv[1:]
    data = open(path[0], "rb").read() if path else sys.stdin.buffer.read()  # noqa: SIM115
    try:
        value = globals()[name](data)
    except ValueError as error:
        print(error, file=sys.stderr)
        sys.exit(1)
    print(json.dumps(value, default=bytes.hex))


def deep(data: bytes) -> bytes:
    """Goes wrong behind conditions that are met one after the other."""
    if len(data) < 3 or data[0] != 0x46:
        return data
    if data[1] != 0x55:
        return data
    if data[2] != 0x5A:
        return data
    return {}[data]
