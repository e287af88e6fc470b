"""A field may be called anything that Python can call it, also as the methods of a record are."""

from __future__ import annotations

import wirekit
from tests.agreement.law import agree
from tests.own import own
from wirekit.strategies import damage
from wirekit.values import Record
from wirekit.wire import Bit, Bits, Checked, If, Length, String, Struct, rest, this, uint8, uint32

NAMED = Struct(
    "keep" / Checked(uint32, "crc32"),
    "items" / Length(uint8, ("get", "extra")),
    "get" / Bits(uint8, "items" / Bit(4), "get" / Bit(4), order="lsb"),
    "extra" / If(this["get"]["items"] > 1, String(uint8)),
    "class" / rest(),
)
VALUE = {"get": {"items": 2, "get": 1}, "extra": "ab", "class": b"z"}


def test_engines_agree_on_fields_called_as_methods_are() -> None:
    with own(NAMED) as key:
        data = wirekit.encode(key, VALUE)
        decoded = agree(key, data, {}, columns=False)
        assert decoded.clean
        assert (decoded.value.items, decoded.value.get.get, decoded.value["extra"]) == (4, 1, "ab")
        assert wirekit.encode(key, wirekit.to_json(decoded.value)) == data


def test_damaged_named_fields_are_reported_and_kept() -> None:
    with own(NAMED) as key:
        data = wirekit.encode(key, VALUE)
        wrong = {mutation.name: mutation.data for mutation in damage(key, data)}
        assert [check.status for check in agree(key, wrong["checksum"], {}, columns=False).checks] == ["bad"]
        for changed in wrong.values():
            agree(key, changed, {}, columns=False)


def test_the_method_is_called_on_the_class() -> None:
    with own(NAMED) as key:
        value = wirekit.decode(wirekit.encode(key, VALUE), key).value
        value["keep"] = 7
        Record.keep(value, "keep")
        assert wirekit.encode(key, value)[:4] == b"\0\0\0\7"
