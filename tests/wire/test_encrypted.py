"""What ``decrypt`` returns is the plain bytes, None, or refused."""

from __future__ import annotations

from typing import Any

import pytest

import wirekit
from tests.own import own
from wirekit.compiler.engines import DECODERS
from wirekit.errors import Misuse
from wirekit.wire import Encrypted, String, Struct, int32, this, uint8

LAYOUT = Struct("key" / String(uint8), "body" / Encrypted(Struct("n" / int32), about=this.key))


@pytest.mark.parametrize("plain", [5, [1], "abcd", True])
@pytest.mark.parametrize("engine", DECODERS)
def test_what_is_no_bytes_is_refused(engine: str, plain: Any) -> None:
    """``bytes(5)`` would be five zeros."""
    with own(LAYOUT) as key, pytest.raises(Misuse, match="decrypt must return bytes, or None without a key, not "):
        wirekit.decode(b"\1k1234", key, decrypt=lambda cipher, about: plain, engine=engine)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
@pytest.mark.parametrize("engine", DECODERS)
def test_bytes_of_any_type_are_decoded(engine: str, kind: Any) -> None:
    with own(LAYOUT) as key:
        decoded = wirekit.decode(b"\1k1234", key, decrypt=lambda cipher, about: kind(b"\0\0\0\7"), engine=engine)
        assert decoded.value.body.content.n == 7
        assert wirekit.encode(key, decoded.value) == b"\1k1234"
