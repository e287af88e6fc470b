"""What the wire says always fits the columns."""

from __future__ import annotations

import pyarrow as pa
import pytest

from wirekit.errors import Misuse
from wirekit.pipeline.rows import Rows, array
from wirekit.tables.columns import PROPERTIES, arrow_type
from wirekit.values import Symbol

SCHEMA = pa.schema([("text", pa.string()), ("small", pa.int32()), ("long", pa.int64()), ("raw", pa.binary())])


def only(*rows: tuple[object, ...]) -> list[dict[str, object]]:
    collected = Rows(SCHEMA)
    for row in rows:
        assert collected.add(row) is None
    batch = collected.flush()
    assert batch.schema == SCHEMA
    return batch.to_pylist()


def test_plain_values() -> None:
    values = ("á", Symbol(3, "LZ4"), -1, b"\xff")
    assert only(values, (None,) * 4) == [
        {"text": "á", "small": 3, "long": -1, "raw": b"\xff"},
        dict.fromkeys(SCHEMA.names),
    ]


def test_lone_surrogates_are_escaped() -> None:
    assert only(("a\udcffb", 0, 0, b""))[0]["text"] == "a\\udcffb"


def test_unsigned_numbers_become_signed_and_others_null() -> None:
    numbers = only(("", 2**31, 2**64 - 1, b""), ("", -(2**31), 2**63, b""), ("", 2**40, 2**64, b""))
    assert [(row["small"], row["long"]) for row in numbers] == [(None, -1), (-(2**31), -(2**63)), (None, None)]


def test_batches_are_full_by_rows_or_bytes() -> None:
    by_rows = Rows(SCHEMA, batch_rows=2)
    assert by_rows.add(("", 1, 1, b"")) is None
    assert by_rows.add(("", 1, 1, b"")).num_rows == 2
    assert by_rows.flush() is None
    by_bytes = Rows(SCHEMA, batch_bytes=1000)
    assert by_bytes.add(("", 1, 1, bytes(500)), 500) is None
    assert by_bytes.add(("", 1, 1, bytes(500)), 500).num_rows == 2


def test_columns_that_a_row_lacks_are_null() -> None:
    collected = Rows(SCHEMA)
    collected.add({"small": 3, "other": 4})
    assert collected.flush().to_pylist() == [{"text": None, "small": 3, "long": None, "raw": None}]


def test_lone_surrogates_in_lists_are_escaped() -> None:
    column = array([[{"name": "a\udcff", "value": None}], [], None], arrow_type(PROPERTIES))
    assert column.to_pylist() == [[{"name": "a\\udcff", "value": None}], [], None]


def test_times_that_no_reader_can_show_are_null() -> None:
    latest = 253_402_300_799_999
    times = array([0, latest, latest + 1, -(2**63), None], pa.timestamp("ms", "UTC"))
    assert times.is_null().to_pylist() == [False, False, True, True, True]
    assert array([0, 2_932_896, 2_932_897], pa.date32()).is_null().to_pylist() == [False, False, True]


def test_a_value_of_another_type_is_refused_with_its_column() -> None:
    with pytest.raises(Misuse, match=r"the column raw of a table has values of type binary: .*int"):
        only(("a", 1, 2, 7))
