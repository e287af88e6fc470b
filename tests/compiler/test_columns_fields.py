"""The columns that a caller asks for."""

from __future__ import annotations

import pytest

import wirekit

SET = "kafka.message_set"


@pytest.mark.parametrize(
    ("key", "fields", "words"),
    [
        (SET, ["message.valeu"], "has no column 'message.valeu'; it has message.value"),
        (SET, ["message.val"], "has no column 'message.val'"),
        (SET, ["@ofset"], "has no column '@ofset'"),
        (SET, "offset", "fields must be a list of paths, not 'offset'"),
        ("pulsar.frame", ["command.sent.producer_id"], "has no column 'command.sent.producer_id'"),
    ],
)
def test_a_field_that_the_layout_does_not_have_is_refused(key: str, fields: list[str], words: str) -> None:
    with pytest.raises(wirekit.Misuse, match=words):
        wirekit.columns(key, b"", fields=fields)


def test_a_path_stands_for_all_that_is_inside_it() -> None:
    assert wirekit.columns(SET, b"", fields=["message.attributes", "@offset"]).schema.names == [
        "message.attributes.codec",
        "message.attributes.timestamp_type",
        "message.attributes.reserved",
        "@offset",
    ]
