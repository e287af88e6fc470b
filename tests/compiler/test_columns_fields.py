"""The columns that a caller asks for."""

from __future__ import annotations

import pyarrow as pa
import pytest

import wirekit
from tests.own import own
from wirekit.compiler.columns import scan
from wirekit.compiler.columns.json_lines import lines
from wirekit.wire import Node, String, Struct, int8, int16, int32

SET = "kafka.message_set"


@pytest.mark.parametrize(
    ("key", "fields", "words"),
    [
        (SET, ["message.valeu"], "has no column 'message.valeu'; did you mean message.value"),
        (SET, ["message.val"], "has no column 'message.val'"),
        (SET, ["@ofset"], "has no column '@ofset'"),
        (SET, "offset", "fields must be a list of paths, not 'offset'"),
        ("pulsar.frame", ["command.sent.producer_id"], "has no column 'command.sent.producer_id'"),
        ("pulsar.frame", ["#"], "has no column '#'; it has (@?[a-zA-Z_.]+(, )?){20} and [1-9][0-9]+ more$"),
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


@pytest.mark.parametrize("behind", [int32, Struct("x" / int8, "y" / int8)], ids=["number", "structure"])
def test_fields_behind_one_of_any_size_are_not_read_past_the_end(behind: Node) -> None:
    """Numbers side by side are compared with the end at once; those behind a text once more."""
    with own(Struct("a" / int32, "b" / int32, "c" / String(int16), "d" / behind)) as key:
        data = wirekit.encode(key, {"a": 1, "b": 2, "c": "xyz", "d": 7 if behind is int32 else {"x": 7, "y": 8}})
        assert wirekit.columns(key, data).num_rows == 1
        for size in range(1, len(data)):
            batch, errors = scan(key, data[:size])
            assert (batch.num_rows, errors["kind"].to_pylist()) == (0, ["short"]), size


def test_a_column_that_a_batch_lacks_is_refused_with_names_near_to_it() -> None:
    batch = pa.RecordBatch.from_pydict({name: [1] for name in ("offset", *map(str, range(30)))})
    for read in (lambda name: wirekit.rows(batch, [name]), lambda name: list(lines(batch, [name], {}))):
        with pytest.raises(wirekit.Misuse, match=r"^the batch has no column 'ofset'; did you mean offset\?$"):
            read("ofset")
        with pytest.raises(wirekit.Misuse, match=r"has no column 'zzz'; it has offset, 0, 1, .*, 18 and 11 more$"):
            read("zzz")
