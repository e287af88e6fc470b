"""A null that stands in the bytes is no absence: it is written again, by whichever node says that it is there."""

from __future__ import annotations

import pytest

import wirekit
from tests.agreement.law import agree
from tests.own import own
from wirekit.wire import Bytes, Const, IfMore, IfNext, Node, Sized, String, Struct, int8, int16

NULL = Bytes(int8, null=-1)


@pytest.mark.parametrize(
    ("node", "data", "keep"),
    [
        (IfMore(NULL), "ff", ["a"]),
        (IfMore(NULL), "", None),
        (IfNext(b"\xff", NULL), "ff", ["a"]),
        (Sized(int8, NULL), "01ff", None),
        (Sized(int8, NULL, null=-1), "01ff", ["a"]),
        (Sized(int8, NULL, null=-1), "ff", None),
        (Sized(int8, Sized(int8, NULL, null=-1), null=-1), "0201ff", ["a", "a.$within"]),
        (Sized(int8, Sized(int8, NULL, null=-1), null=-1), "01ff", ["a"]),
        (IfMore(Sized(int8, Const(String(int8, null=-1), "x", fatal=False))), "01ff", ["a"]),
    ],
)
def test_null_comes_back(node: Node, data: str, keep: list[str] | None) -> None:
    with own(Struct("a" / node)) as key:
        decoded = agree(key, bytes.fromhex(data), {}, columns=False)
        assert decoded.error is None
        assert decoded.value.a is None
        names = decoded.value.extra.get("keep")
        assert names == keep or (names is not None and set(names) == set(keep or ()))
        assert wirekit.encode(key, wirekit.to_json(decoded.value)).hex() == data


def test_bytes_left_over_in_nested_lengths_are_kept_for_both() -> None:
    with own(Struct("a" / Sized(int16, Sized(int8, int8)))) as key:
        decoded = agree(key, bytes.fromhex("00050201aabbcc"), {}, columns=False)
        assert decoded.value.extra["trailing"] == {"a": b"\xbb\xcc", "a.$within": b"\xaa"}
