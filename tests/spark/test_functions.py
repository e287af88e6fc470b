"""Functions on columns of bytes: what Spark hands over in Arrow, and what they give; a few of them in Spark itself."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wirekit
from tests.conftest import FIXTURES
from wirekit.compiler.building.each import build_each
from wirekit.compiler.columns.each import is_list, scan_each
from wirekit.errors import Misuse, WirekitError
from wirekit.registry import registry
from wirekit.spark import functions
from wirekit.spark.nested import flat, nested, shape
from wirekit.strategies import frames, mutations
from wirekit.wire.stream import Limits

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SET = "kafka.message_set"
MESSAGE = wirekit.encode("kafka.message", {"magic": 1, "timestamp": 1_500_000_000_000, "key": b"k", "value": b"v" * 9})
ENTRIES = wirekit.encode(
    SET, {"messages": [{"offset": n, "message": {"magic": 0, "value": b"v%d" % n}} for n in range(3)]}
)
WRONG = ENTRIES[:44] + b"\x09" + ENTRIES[45:]
"""The magic of the second of three messages is none."""

KEYS = [
    registry.protocol(name).key(layout)
    for name in ("kafka", "pulsar", "joyqueue", "jmq4")
    for layout in registry.protocol(name).layouts
]
EMPTY = {key for key in KEYS if key.partition(".")[2] in (
    "remove_connection.request", "heartbeat.request", "fetch_health.request"
)}  # fmt: skip
"""Frames of which nothing is behind the header."""
TAILED = {
    "kafka.message_set",
    "kafka.message_set.untimed",
    "kafka.log_segment",
    "kafka.offset_index",
    "kafka.time_index",
}
"""Lists with bytes behind them in the example: a message that is cut, an index that was not closed."""


def decoded(key: str, *values: bytes | None, mode: str = "PERMISSIVE", **choices: Any) -> list[dict[str, Any]]:
    """What ``decode`` gives, without Spark."""
    function = functions._decoder(key, mode=mode, **choices).func
    return [row for part in function(iter([pa.array(values, pa.binary())])) for row in part.to_pylist()]


def messages_of(key: str, *values: bytes | None) -> list[list[dict[str, Any]] | None]:
    """What ``messages`` gives, without Spark."""
    function = functions._message_reader(key).func
    return [row for part in function(iter([pa.array(values, pa.binary())])) for row in part.to_pylist()]


def checked(key: str, *values: bytes | None) -> list[tuple[str | None, str | None]]:
    """What ``check`` gives, without Spark."""
    checks = functions.checked_values(pa.array(values, pa.binary()), pa.array([key] * len(values)))
    return [(row["status"], row["error"]) for row in checks.to_pylist()]


def encoded(key: str, structs: list[Any], mode: str = "PERMISSIVE") -> list[bytes | None]:
    """What ``encode`` gives, without Spark."""
    shape_of_rows, listed = shape(key), is_list(key)
    column = pa.array(structs, pa.list_(shape_of_rows.type) if listed else shape_of_rows.type)
    return functions.encoded_values(key, column, None, shape_of_rows, listed, mode == "FAILFAST").to_pylist()


def test_bad_bytes_are_null_with_the_reason_beside_it() -> None:
    good, short, long, nothing = decoded("kafka.message", MESSAGE, MESSAGE[:9], MESSAGE + b"!!", None)
    assert (good["value"]["key"], good["error"]) == (b"k", None)
    assert short == {
        "value": None,
        "error": "kafka.message: timestamp: needs 8 bytes, 3 available, at byte 6 (0x6)",
    }
    assert long == {"value": None, "error": "kafka.message: 2 bytes left over, at byte 32 (0x20)"}
    assert nothing == {"value": None, "error": None}


def test_a_list_is_good_as_a_whole_or_not_at_all() -> None:
    good, wrong, empty, nothing = decoded(SET, ENTRIES, WRONG, b"", None)
    assert [each["offset"] for each in good["value"]] == [0, 1, 2]
    assert wrong["value"] is None
    assert (
        wrong["error"]
        == f"{SET}: messages[1].message.magic: expected magic: V0 (0), V1 (1), found 9, at byte 44 (0x2c)"
    )
    assert (empty["value"], nothing["value"]) == ([], None)


def test_failfast_raises_the_first_error() -> None:
    with pytest.raises(WirekitError, match=r"kafka\.message: timestamp: needs 8 bytes, 3 available"):
        decoded("kafka.message", MESSAGE, MESSAGE[:9], mode="FAILFAST")
    with pytest.raises(Misuse, match=r"kafka\.message: row 1: magic: "):
        encoded("kafka.message", [{"magic": 0}, {"magic": 7}, None], "FAILFAST")
    with pytest.raises(Misuse, match="mode must be PERMISSIVE or FAILFAST, not 'DROPMALFORMED'"):
        functions.decode("column", "kafka.message", mode="DROPMALFORMED")


def test_messages_that_do_not_decode_stand_behind_their_neighbours() -> None:
    good, wrong, nothing, empty = messages_of(SET, ENTRIES, WRONG, None, b"")
    assert [(each["value"]["offset"], each["error"]) for each in good or []] == [(0, None), (1, None), (2, None)]
    assert [each["value"] and each["value"]["offset"] for each in wrong or []] == [0, 2, None]
    assert (wrong or [])[2]["error"] == decoded(SET, WRONG)[0]["error"]
    assert (nothing, empty) == (None, [])


def test_messages_are_those_of_the_columns_engine() -> None:
    """Of segments with compressed sets, and of Pulsar frames with batches: in each value its own, in order."""
    segments = [path.read_bytes() for path in sorted((FIXTURES / "kafka" / "disk").glob("*-[gls]*-0.log"))][:6]
    assert len(segments) > 3
    cells = messages_of("kafka.log_segment", *segments, None, segments[0])
    for data, cell in zip([*segments, None, segments[0]], cells, strict=True):
        if data is None:
            assert cell is None
            continue
        batch = wirekit.columns("kafka.log_segment", data, times="int")
        assert [each["value"]["message"]["value"] for each in cell or []] == batch["message.value"].to_pylist()
        assert [each["value"]["_depth"] for each in cell or []] == batch["@depth"].to_pylist()
    metadata = {"producer_name": "p", "sequence_id": 7, "publish_time": 1, "num_messages_in_batch": 2}
    payload = [{"metadata": {"payload_size": 1, "partition_key": key}, "payload": b"v"} for key in "ab"]
    send = {"type": "SEND", "send": {"producer_id": 1, "sequence_id": 7}}
    frame = wirekit.encode("pulsar.frame", {"command": send, "entry": {"metadata": metadata, "payload": payload}})
    ping = wirekit.encode("pulsar.frame", {"command": {"type": "PING", "ping": {}}})
    cells = messages_of("pulsar.frame", frame, ping, frame)
    keys = [
        [each["value"]["entry"]["payload"]["metadata"] for each in cell or [] if each["value"]["entry"]]
        for cell in cells
    ]
    assert [[each and each["partition_key"] for each in cell] for cell in keys] == [["a", "b"], [], ["a", "b"]]
    assert [len(cell or []) for cell in cells] == [2, 1, 2]


def test_check_distinguishes_errors_from_bad_verdicts() -> None:
    damaged = ENTRIES[:-1] + b"?"
    compressed = wirekit.build_columns(
        SET, pa.RecordBatch.from_pydict({"offset": [1], "message.magic": [0], "message.value": [b"v"]}), codec="gzip"
    )
    checks = checked(SET, ENTRIES, damaged, WRONG, None, b"", compressed)
    assert [status for status, _ in checks] == ["ok", "bad", "error", None, "ok", "ok"]
    assert (checks[1][1] or "").startswith(f"{SET}: messages[2].message.crc: crc32: expected ")
    both = functions.checked_values(
        pa.array([MESSAGE, ENTRIES, MESSAGE, ENTRIES]), pa.array(["kafka.message", SET, SET, None])
    )
    assert [row["status"] for row in both.to_pylist()][:2] == ["ok", "ok"]
    assert both.to_pylist()[3] == {"status": None, "error": None}


@given(st.data())
def test_check_says_what_decode_says(data: st.DataObject) -> None:
    """Of wrappers, their contents and frames around them; the error is that of ``decode``, with its path."""
    key = data.draw(st.sampled_from([SET, "kafka.produce.request.v0", "pulsar.frame"]))
    values = data.draw(st.lists(frames(key) | mutations(key).map(lambda each: each.data), max_size=4))
    for value, (status, text) in zip(values, checked(key, *values), strict=True):
        expected = wirekit.decode(value, key)
        bad = any(each.status == "bad" and each.kind != "acceptance" for each in expected.checks)
        if expected.error is not None:
            assert (status, text) == ("error", str(expected.error))
        elif expected.consumed < len(value):
            assert status == "error"
        else:
            assert (status == "bad") == bool(bad or expected.gaps)


def test_check_verifies_wrappers() -> None:
    rows = pa.RecordBatch.from_pydict({"offset": [1], "message.magic": [0], "message.value": [b"v"]})
    wrapper = wirekit.build_columns(SET, rows, codec="gzip")
    empty = {"magic": 0, "key": None, "attributes": {"codec": "GZIP"}, "value": gzip.compress(b"")}
    nothing = wirekit.encode(SET, {"messages": [{"offset": 1, "message": empty}]})
    for sound in (wrapper, nothing):
        wrong = sound[:12] + bytes([sound[12] ^ 1]) + sound[13:]
        (status, _), (of_wrong, text) = checked(SET, sound, wrong)
        assert (status, of_wrong) == ("ok", "bad")
        assert (text or "").startswith(f"{SET}: messages[0].message.crc: crc32: expected ")


def test_check_reports_limits_inside_frames() -> None:
    nested: dict[str, Any] = {"messages": []}
    for _ in range(10):
        content = gzip.compress(wirekit.encode(SET, nested))
        wrapper = {"magic": 0, "key": None, "attributes": {"codec": "GZIP"}, "value": content}
        nested = {"messages": [{"offset": 1, "message": wrapper}]}
    key, topic = "kafka.produce.request.v0", {"topic": "t", "data": [{"partition": 0, "record_set": nested}]}
    body = {"acks": 1, "timeout": 1, "topic_data": [topic]}
    frame = wirekit.encode(key, {"correlation_id": 7, "client_id": None, "body": body})
    assert checked(key, frame) == [("error", str(wirekit.decode(frame, key).error))]
    assert "exceeds the limit of 8 (depth)" in (checked(key, frame)[0][1] or "")


def test_check_looks_into_compressed_content_without_columns() -> None:
    message = {"magic": 1, "timestamp": 5, "key": None}
    packed, token = {**message, "attributes": {"codec": 1}}, b"no gzip"
    inside = wirekit.encode(SET, {"messages": [{"offset": 0, "message": {**message, "value": b"v"}}]})
    values = [gzip.compress(inside), token, gzip.compress(inside)[:-3]]
    checks = checked(
        "kafka.message", *(wirekit.encode("kafka.message", {**packed, "value": value}) for value in values)
    )
    assert [status for status, _ in checks] == ["ok", "bad", "bad"]
    assert (checks[1][1] or "").startswith("kafka.message: value: decompression: gzip: ")


def test_check_verifies_markers_without_a_checksum() -> None:
    metadata = {"producer_name": "p", "sequence_id": 7, "publish_time": 1, "marker_type": 10}
    entry = {"magic_number": None, "checksum": None, "metadata": metadata}
    command = {"type": "SEND", "send": {"producer_id": 0, "sequence_id": 7}}
    texts = [{"snapshot_id": "s"}, {"snapshot_id": "\udcff"}, {"$keep": ["snapshot_id"]}]
    values = [wirekit.encode("pulsar", {"command": command, "entry": {**entry, "payload": each}}) for each in texts]
    (good, _), (bad, text), (lacking, _) = checked("pulsar.frame", *values)
    assert (good, bad, lacking) == ("ok", "bad", "bad")
    assert (text or "").startswith("pulsar.frame: entry.payload.snapshot_id: utf-8: invalid start byte")


@pytest.mark.parametrize("key", [key for key in KEYS if key not in EMPTY])
def test_every_layout_goes_into_structs_and_back(key: str) -> None:
    """Spark has a type for each; three values go there and back, a null stays null, and a cut one is refused or not."""
    functions.spark_schema(key)
    data = wirekit.encode(key, wirekit.example(key))
    column = pa.array([data, None, data, data[:-1], data], pa.binary())
    rows = decoded(key, *column.to_pylist())
    assert [row["error"] for row in (rows[0], rows[2], rows[4])] == [None] * 3
    assert rows[1] == {"value": None, "error": None}
    (built, nothing, again) = encoded(key, [rows[0]["value"], None, rows[4]["value"]])
    assert nothing is None
    assert built == again
    assert built == (data[: len(built)] if key in TAILED and built else data)


def test_fields_are_those_that_are_asked_for() -> None:
    (row,) = decoded(SET, ENTRIES, fields=("offset", "message.value"))
    assert row["value"][1] == {"offset": 1, "message": {"value": b"v1"}}
    with pytest.raises(Misuse, match=r"kafka\.message_set has no column 'massage'"):
        functions.spark_schema(SET, fields=["massage"])
    with pytest.raises(Misuse, match=r"values of kafka\.message contain no messages; use decode"):
        functions.messages("column", "kafka.message")


def test_times_are_timestamps_or_integers() -> None:
    far = wirekit.encode("kafka.message", {"magic": 1, "timestamp": 1 << 60, "key": None, "value": None})
    none = wirekit.encode("kafka.message", {"magic": 1, "timestamp": -1, "key": None, "value": None})
    shown = [row["value"]["timestamp"] for row in decoded("kafka.message", MESSAGE, far, none)]
    assert (shown[0].isoformat(), shown[1]) == ("2017-07-14T02:40:00+00:00", None)
    assert encoded("kafka.message", [row["value"] for row in decoded("kafka.message", MESSAGE, none)]) == [
        MESSAGE,
        none,
    ]
    rows = decoded("kafka.message", MESSAGE, far, none, times="int")
    assert [row["value"]["timestamp"] for row in rows] == [1_500_000_000_000, 1 << 60, -1]


def test_a_value_that_cannot_be_built_costs_no_other() -> None:
    good = {"magic": 0, "value": b"v"}
    built = encoded("kafka.message", [good, {"magic": 7}, good, None, {"magic": None, "key": b"k", "crc": -1}, good])
    expected = wirekit.encode("kafka.message", {"magic": 0, "key": None, "value": b"v"})
    assert [built[at] for at in (0, 2, 5)] == [expected] * 3
    assert built[1] is None
    assert built[3] is None


def test_a_null_literal_is_a_null_of_any_type() -> None:
    """Its type in Arrow is null, whether the field is a number, a list or a struct."""
    key = "kafka.metadata.request.v1"
    request = pa.array([{"correlation_id": 7, "client_id": None, "body": {"topics": None}}])
    (built,) = functions.encoded_values(key, request, None, shape(key), False, True).to_pylist()
    assert built == wirekit.encode(key, {"correlation_id": 7, "client_id": None, "body": {"topics": None}})
    message = pa.array([{"magic": 0, "attributes": None, "key": None, "value": b"v"}])
    (built,) = functions.encoded_values("kafka.message", message, None, shape("kafka.message"), False, True).to_pylist()
    assert built == wirekit.encode("kafka.message", {"magic": 0, "key": None, "value": b"v"})


def test_a_bomb_costs_no_other_value() -> None:
    from wirekit.compression import compress

    inner = wirekit.encode(SET, {"messages": [{"offset": 0, "message": {"magic": 0, "value": bytes(30_000)}}]})
    wrapper = {"magic": 0, "attributes": {"codec": "GZIP"}, "value": compress("gzip", inner)}
    bomb = wirekit.encode(SET, {"messages": [{"offset": 0, "message": wrapper}]})
    limits = Limits(decompressed=40_000, total_ratio=0)
    scanned = [*scan_each(SET, pa.array([bomb, ENTRIES, bomb, None, ENTRIES]), limits=limits, unpack=True)]
    assert [count for each in scanned for count in np.diff(each.firsts).tolist()] == [1, 3, 1, 0, 3]
    assert not any(each.errors for each in scanned)
    small = Limits(decompressed=20_000, total_ratio=0)
    scanned = [*scan_each(SET, pa.array([bomb, ENTRIES, bomb, ENTRIES]), limits=small, unpack=True)]
    assert [count for each in scanned for count in np.diff(each.firsts).tolist()] == [0, 3, 0, 3]
    assert sum(len(each.errors) for each in scanned) == 2


@given(st.data())
def test_any_bytes_are_read_as_decode_reads_them(data: st.DataObject) -> None:
    """A value is there where ``wirekit.decode`` gives one without anything left over, and nowhere else."""
    keys = ["kafka.message", "kafka.sasl_token", "jmq4.header", "kafka.metadata.request.v0", "kafka.offset_index", SET]
    key = data.draw(st.sampled_from(keys))
    whole = wirekit.encode(key, wirekit.example(key))
    values = data.draw(st.lists(st.one_of(st.none(), st.binary(max_size=40), st.sampled_from(
        [whole, whole[:-1], whole + b"\0", whole[:3] + b"\xff" + whole[4:]])), max_size=6))  # fmt: skip
    rows = decoded(key, *values)
    for value, row in zip(values, rows, strict=True):
        if value is None:
            assert row == {"value": None, "error": None}
            continue
        expected = wirekit.decode(value, key)
        whole_value = expected.error is None and expected.consumed == len(value)
        assert (row["value"] is not None) == (row["error"] is None)
        assert (row["error"] is None) == whole_value, (expected.error, expected.consumed, row)
        assert expected.error is None or row["error"] == str(expected.error)


def test_bytes_that_no_record_has_in_a_length_are_no_error() -> None:
    """As ``wirekit.decode`` reports them: a gap in the value."""
    batch = wirekit.encode("jmq4.batch", {"messages": [{"body": b"one"}], "$trailing": {"length": "010203"}})
    good, longer = decoded("jmq4.batch", batch, batch + b"?")
    assert [each["body"] for each in good["value"]] == [b"one"]
    assert longer["error"] == f"jmq4.batch: 1 byte left over, at byte {len(batch)} ({len(batch):#x})"
    assert wirekit.columns("jmq4.batch", batch + b"?").schema.metadata[b"wirekit.consumed"] == b"%d" % len(batch)
    assert [gap.length for gap in wirekit.decode(batch, "jmq4.batch").gaps] == [3]


def test_slices_and_chunks_of_a_column_are_read_where_they_are() -> None:
    column = pa.array([b"junk", MESSAGE, None, MESSAGE[:3], MESSAGE], pa.binary()).slice(1, 3)
    (values,) = scan_each("kafka.message", column)
    assert values.firsts.tolist() == [0, 1, 1, 1]
    assert list(values.errors) == [2]
    (values,) = scan_each("kafka.message", column.cast(pa.large_binary()))
    assert values.firsts.tolist() == [0, 1, 1, 1]
    with pytest.raises(Misuse, match="columns decode bytes, not string; cast it to binary"):
        next(scan_each("kafka.message", pa.array(["text"])))


def test_columns_and_structs_are_inverse() -> None:
    key = "kafka.metadata.response.v1"
    brokers = [{"node_id": node, "host": "h", "port": 9090 + node} for node in (1, 2)]
    partitions = [{"partition_error_code": 0, "partition_id": 0, "leader": 1, "replicas": [1, 2], "isr": []}]
    one = {"topic_error_code": 0, "is_internal": False}
    topics = [{**one, "topic": "t", "partition_metadata": partitions}, {**one, "topic": "u", "partition_metadata": []}]
    bodies = [{"brokers": brokers, "topic_metadata": topics}, {"brokers": [], "topic_metadata": []}]
    values = [wirekit.encode(key, {"correlation_id": 7, "body": {"controller_id": 1, **body}}) for body in bodies]
    batch = wirekit.columns(key, b"".join(values), times="int")
    structs = nested(shape(key), batch)
    assert [each["host"] for each in structs[0]["body"]["brokers"].as_py()] == ["h", "h"]
    assert structs[0]["body"]["topic_metadata"].as_py()[0]["partition_metadata"][0]["replicas"] == [1, 2]
    columns = flat(shape(key), structs)
    rows = pa.RecordBatch.from_arrays([*columns.values()], names=[*columns])
    assert build_each(key, rows, np.arange(3))[0].to_pylist() == values
    with pytest.raises(Misuse, match=r"no field body\.broker; choose from brokers, "):
        flat(shape(key), pa.array([{"body": {"broker": 1}}]))


@pytest.mark.spark
def test_functions_in_spark(spark: SparkSession) -> None:
    from pyspark.sql import functions as sf

    import wirekit.spark as wk

    rows = [(1, bytearray(ENTRIES)), (2, bytearray(WRONG)), (3, None)]
    frame = spark.createDataFrame(rows, "id int, data binary").coalesce(1)
    checked_rows = frame.select("id", wk.decode("data", SET).alias("set"), wk.check("data", SET).status.alias("status"))
    assert checked_rows.schema["set"].dataType["value"].dataType == wk.spark_schema(SET)  # type: ignore[index]
    assert [(row.id, row.set.error is None, row.status) for row in checked_rows.collect()] == [
        (1, True, "ok"),
        (2, False, "error"),
        (3, True, None),
    ]
    each = checked_rows.select("id", wk.encode("set.value", SET).alias("data"))
    assert [row.data and bytes(row.data) for row in each.collect()] == [ENTRIES, None, None]
    exploded = frame.select("id", sf.explode(wk.messages("data", SET, fields=["message.value"])).alias("each"))
    found_rows = exploded.select("id", "each.value.message.value", "each.error").collect()
    assert [(row.id, row.value and bytes(row.value)) for row in found_rows] == [
        (1, b"v0"),
        (1, b"v1"),
        (1, b"v2"),
        (2, b"v0"),
        (2, b"v2"),
        (2, None),
    ]
    assert found_rows[-1].error == decoded(SET, WRONG)[0]["error"]


def test_calls_that_make_no_sense() -> None:
    import wirekit.spark as wk
    from wirekit.spark.functions import _checker

    with pytest.raises(Misuse, match="fields must name at least one field"):
        wk.spark_schema(SET, fields=[])
    one: Any = pa.array([b"a", b"b"])
    for arguments in (one, (one, one, one), (pa.array(["kafka.message"] * 2), one)):
        with pytest.raises(Misuse, match="wirekit_check takes a column of bytes and the key of a schema"):
            next(_checker().func(iter([arguments])))


@pytest.mark.spark
def test_functions_in_sql(spark: SparkSession) -> None:
    from pyspark.errors import PySparkException

    import wirekit.spark as wk

    keys: Any = ["kafka.message", SET]
    with pytest.raises(Misuse, match="the key of a schema must be text"):
        wk.register(spark, keys)
    wk.register(spark, *keys)
    rows = [(1, bytearray(ENTRIES)), (2, bytearray(b"??"))]
    spark.createDataFrame(rows, "id int, data binary").coalesce(1).createOrReplaceTempView("dump")
    query = """
        SELECT id, each.value.offset, each.error, wirekit_check(data, 'kafka.message').status
        FROM dump LATERAL VIEW OUTER explode(wirekit_messages_kafka_message_set(data)) AS each
    """
    assert [tuple(row) for row in spark.sql(query).collect()] == [
        (1, 0, None, "error"),
        (1, 1, None, "error"),
        (1, 2, None, "error"),
        (2, None, None, "error"),
    ]
    back = "SELECT wirekit_encode_kafka_message_set(wirekit_decode_kafka_message_set(data).value) = data FROM dump"
    assert [row[0] for row in spark.sql(back).collect()] == [True, False]
    null = ", ".join(
        f"wirekit_{call}"
        for call in ("decode_kafka_message(null)", "messages_kafka_message_set(null)", "check(null, 'kafka.message')")
    )
    (row,) = spark.sql(f"SELECT {null}, wirekit_encode_kafka_message(null)").collect()
    assert [*row] == [(None, None), None, (None, None), None]
    for arguments in ("", "data, data"):
        with pytest.raises(PySparkException, match="the function takes one argument, not"):
            spark.sql(f"SELECT wirekit_decode_kafka_message({arguments}) FROM dump").collect()


@pytest.mark.parametrize(
    ("key", "values", "bytes_"),
    [
        ("kafka.message", [{}], [None]),
        ("kafka.sasl_token", [{}, None, {}], [b"\0\0\0\0", None, b"\0\0\0\0"]),
        ("kafka.offset_index", [[{}], [], [{}, {}]], [None, b"", None]),
    ],
)
def test_structs_without_a_field_are_built_or_null(key: str, values: list[Any], bytes_: list[bytes | None]) -> None:
    """They had no rows: one gave no bytes instead of null, several an error of their offsets."""
    listed = is_list(key, None)
    kind: pa.DataType = pa.struct([])
    column = pa.array(values, pa.list_(kind) if listed else kind)
    assert functions.encoded_values(key, column, None, shape(key), listed, fails=False).to_pylist() == bytes_


def test_a_key_that_is_a_column_is_refused() -> None:
    for function in (functions.decode, functions.messages, functions.check, functions.encode):
        with pytest.raises(Misuse, match="the key of a schema must be text, the same for all rows, not list"):
            function("payload", ["kafka.message"])  # type: ignore[arg-type]
