"""The named queries: DuckDB and Spark SQL answer them alike, and the answers are true."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import wirekit
from tests.conftest import FIXTURES
from wirekit.capture.files import open_capture, segments
from wirekit.capture.follow import follow
from wirekit.capture.tcp import Segment
from wirekit.conversation import Frame
from wirekit.pipeline import serial
from wirekit.pipeline.inputs import Job, find_inputs
from wirekit.protocols.kafka.segment_file import pieces_of_file
from wirekit.tables import queries
from wirekit.tables.columns import FROM_INPUTS, OUTPUTS, TABLES
from wirekit.tables.queries import query

if TYPE_CHECKING:
    import duckdb
    from pyspark.sql import SparkSession

RELEASE = "0.10.2.2"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Captures of one Kafka cluster with the segments of its broker, of Pulsar and of JMQ4."""
    folder = tmp_path_factory.mktemp("files")
    for pattern in (f"kafka-{RELEASE}-*", "pulsar-*", "jmq4-*"):
        for path in (FIXTURES / "pcap").glob(f"{pattern}.pcap*"):
            shutil.copy(path, folder)
    for log in (FIXTURES / "kafka" / "disk").glob(f"{RELEASE}-*.log"):
        partition = folder / log.stem.removeprefix(f"{RELEASE}-")
        partition.mkdir()
        shutil.copy(log, partition / f"{0:020}.log")
    return folder


@pytest.fixture(scope="module")
def lake(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lake")
    serial.run(Job(find_inputs([files])), folder)
    return folder


@pytest.fixture(scope="module")
def duck(lake: Path) -> duckdb.DuckDBPyConnection:
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    for table in OUTPUTS:
        connection.execute(f"CREATE VIEW {table} AS FROM '{lake}/{table}/*.parquet'")
    return connection


@pytest.fixture(scope="module")
def frames(files: Path) -> list[Frame]:
    """The frames of all captures, by the library itself."""
    frames_of_all = []
    for path in sorted(files.glob("*.pcap*")):
        with open_capture(path) as capture:
            packets = [each for each in segments(capture) if isinstance(each, Segment)]
        frames_of_all += [item for _, item in follow(packets) if isinstance(item, Frame)]
    return frames_of_all


def rows(duck: duckdb.DuckDBPyConnection, statement: str) -> list[dict[str, Any]]:
    result = duck.sql(statement)
    return [dict(zip(result.columns, row, strict=True)) for row in result.fetchall()]


def answers(duck: duckdb.DuckDBPyConnection, name: str) -> list[dict[str, Any]]:
    return rows(duck, query(name))


@pytest.mark.parametrize("name", queries.NAMES)
def test_every_query_has_an_answer(duck: duckdb.DuckDBPyConnection, name: str) -> None:
    assert duck.execute(query(name)).fetchall()


def test_every_file_has_a_name_a_subject_and_a_description() -> None:
    files = Path(queries.__file__).parent.glob("*.sql")
    assert sorted(file.stem for file in files) == sorted(queries.NAMES)
    for name in queries.NAMES:
        text = query(name)
        comment = "".join(f"-- {line}\n" for line in queries.description(name))
        assert text.startswith(comment), name
        assert "--" not in text.removeprefix(comment), name
        assert re.fullmatch(r"[A-Z].{,60}\.", queries.description(name)[0]), name
        assert max(map(len, text.splitlines())) <= 120, name


def test_no_name_is_a_statement_or_a_table() -> None:
    """So that a name changes the meaning of no query."""
    import duckdb

    for name in queries.NAMES:
        assert name not in TABLES
        with pytest.raises(duckdb.ParserException):
            duckdb.extract_statements(name)


def test_an_unknown_name_gets_similar_ones() -> None:
    with pytest.raises(wirekit.Misuse, match=r"^no query has the name 'slow-calls'; did you mean slow_calls\?$"):
        query("slow-calls")
    with pytest.raises(wirekit.Misuse, match=r"^no query has the name 'slow'; did you mean slow_calls\?$"):
        query("slow")
    with pytest.raises(wirekit.Misuse, match=r"^no query has the name 'xyz'; `wirekit sql --list` lists the names$"):
        query("xyz")


@pytest.mark.spark
def test_spark_answers_alike(duck: duckdb.DuckDBPyConnection, lake: Path, spark: SparkSession) -> None:
    for table in OUTPUTS:
        spark.read.parquet(str(lake / table)).createOrReplaceTempView(table)
    for name in queries.NAMES:
        answered = spark.sql(query(name)).toArrow().to_pylist()
        # Where values are equal, or null, the engines order rows each in its own way.
        assert sorted(map(plain, answered), key=repr) == sorted(map(plain, answers(duck, name)), key=repr), name


def plain(row: dict[str, Any]) -> dict[str, Any]:
    """A row without the differences of the engines' types: times as seconds, all numbers rounded alike."""

    def number(value: Any) -> Any:
        value = value.timestamp() if isinstance(value, datetime) else value
        return round(float(value), 6) if isinstance(value, (int, float, Decimal)) else value

    return {name: number(value) for name, value in row.items()}


def test_no_name_needs_quoting(duck: duckdb.DuckDBPyConnection) -> None:
    for name, table in OUTPUTS.items():
        columns = ", ".join(table.names)
        result = duck.sql(f"SELECT {columns} FROM (SELECT {columns} FROM {name} ORDER BY {columns}) AS again LIMIT 1")
        assert result.columns == list(table.names)
        assert len(result.fetchall()) <= 1


@pytest.mark.spark
def test_no_name_needs_quoting_in_spark(lake: Path, spark: SparkSession) -> None:
    for name, table in OUTPUTS.items():
        spark.read.parquet(str(lake / name)).createOrReplaceTempView(name)
        columns = ", ".join(table.names)
        assert spark.sql(f"SELECT {columns} FROM (SELECT {columns} FROM {name}) AS again").columns == list(table.names)


@pytest.mark.spark
@pytest.mark.parametrize("table", FROM_INPUTS)
def test_spark_accepts_the_rows_of_read(files: Path, lake: Path, spark: SparkSession, table: str) -> None:
    frame = spark.createDataFrame(wirekit.read(files, table).read_all())
    assert frame.count() == spark.read.parquet(str(lake / table)).count()


# What the answers say, against what the library says of the same bytes.


def test_requests_per_client(duck: duckdb.DuckDBPyConnection, frames: list[Frame]) -> None:
    expected = Counter(
        frame.value.client_id
        for frame in frames
        if frame.protocol == "kafka" and frame.description.role == "request" and "client_id" in frame.value
    )
    counted: Counter[str | None] = Counter()
    for row in answers(duck, "clients"):
        counted[row["client"]] += row["requests"] if row["protocol"] == "kafka" else 0
    tokens = sum(frame.schema == "kafka.sasl_token" for frame in frames)
    assert +counted - Counter({None: tokens}) == expected


def test_latency_of_each_api(duck: duckdb.DuckDBPyConnection, frames: list[Frame]) -> None:
    expected: dict[tuple[str, str | None, int | None], list[int]] = {}
    for frame in frames:
        if frame.request is not None and frame.latency_us is not None:
            about = frame.request.description
            expected.setdefault((frame.protocol, about.api, about.version), []).append(frame.latency_us)
    latencies = {(row["protocol"], row["api"], row["version"]): row for row in answers(duck, "latency")}
    assert {key: (row["answered"], row["max_us"]) for key, row in latencies.items()} == {
        key: (len(each), max(each)) for key, each in expected.items()
    }


def test_errors_by_topic(duck: duckdb.DuckDBPyConnection) -> None:
    errors = {(row["topic"], row["api"], row["error"]): row["errors"] for row in answers(duck, "topic_errors")}
    assert errors["made-by-api", "create_topics", "TOPIC_ALREADY_EXISTS"] == 1
    assert errors["missing", "FETCH_CLUSTER", "FW_TOPIC_NOT_EXIST"] == 1
    assert errors["t2", "COMMIT_ACK", "FW_CONSUMER_ACK_FAIL"] == 1


def test_failed_calls(duck: duckdb.DuckDBPyConnection) -> None:
    failed = {(row["api"], row["client"], row["error"]): row for row in answers(duck, "failed_calls")}
    assert failed["sasl_handshake", "sasl-bad", "UNSUPPORTED_SASL_MECHANISM"]["calls"] == 2
    assert failed["api_versions", "rdkafka", "UNSUPPORTED_VERSION"]["calls"] == 12
    assert failed["ADD_CONNECTION", "demo", "FW_CONNECTION_NOT_EXISTS"]["error_text"] == "连接不存在"
    assert failed["fetch", "rdkafka", None]["outcome"] == "unanswered"


def test_undecoded_bytes(duck: duckdb.DuckDBPyConnection) -> None:
    """Responses without a request are one reason, whatever their correlation ids."""
    undecoded = [row for row in answers(duck, "undecoded") if row["reason"].startswith("no request has")]
    assert [(row["side"], row["reason"]) for row in undecoded] == [("server", "no request has correlation id")]
    (counts,) = rows(
        duck, "SELECT count(*) AS pieces, sum(length) AS bytes FROM quarantine WHERE reason LIKE 'no request%'"
    )
    assert counts.items() <= undecoded[0].items()


def test_duplicate_bytes(duck: duckdb.DuckDBPyConnection) -> None:
    (repeated,) = rows(duck, "SELECT sum(client_duplicate + server_duplicate) AS bytes FROM connections")
    answered = answers(duck, "retransmissions")
    assert sum(row["client_duplicate"] + row["server_duplicate"] for row in answered) == repeated["bytes"] > 0


def test_clients_of_topics(duck: duckdb.DuckDBPyConnection) -> None:
    """Those who send or receive messages; followers are no clients."""
    users = answers(duck, "topic_clients")
    (count,) = rows(
        duck, "SELECT count(*) AS messages FROM messages WHERE direction IN ('produced', 'fetched', 'pushed')"
    )
    assert sum(row["messages"] for row in users) == count["messages"]
    assert {row["api"] for row in users if row["topic"] == "t-none"} == {"produce", "fetch"}
    assert not any((row["client"] or "").startswith("ReplicaFetcher") for row in users)


def test_messages_per_topic(duck: duckdb.DuckDBPyConnection, frames: list[Frame]) -> None:
    expected = Counter(message.topic for frame in frames for message in frame.messages)
    counted: Counter[str | None] = Counter()
    for row in answers(duck, "throughput"):
        counted[row["topic"]] += row["messages"]
    assert counted == expected


def test_produced_messages_never_delivered_are_counted(duck: duckdb.DuckDBPyConnection, frames: list[Frame]) -> None:
    by_direction: dict[str, Counter[tuple[Any, ...]]] = {"client": Counter(), "server": Counter()}
    for frame in frames:
        body = frame.request.value.get("body") if frame.request is not None and frame.protocol == "kafka" else None
        follower = frame.schema.startswith("kafka.fetch.response") and body is not None and body.replica_id >= 0
        for each in () if follower else frame.messages:
            by_direction[frame.side][each.topic, each.key, each.value] += 1
    delivered = by_direction["server"]
    expected = sum(count for each, count in by_direction["client"].items() if each not in delivered)
    undelivered = answers(duck, "undelivered")
    assert sum(row["messages"] for row in undelivered) == expected > 0


def test_refused_messages_are_among_the_undelivered_ones() -> None:
    """As a message that is too large: no consumer can receive it, because the broker did not store it."""
    import duckdb

    duck = duckdb.connect()
    duck.execute(
        "CREATE TABLE messages AS SELECT 'a' AS call_id, 't' AS topic, 'k' AS key, 5 AS time, * FROM (VALUES "
        "('produced', 0, 'delivered'), ('fetched', 0, 'delivered'), ('produced', 0, 'waits'), "
        "('produced', 1, 'large'), ('produced', 1, 'larger'), ('produced', NULL, 'refused')) "
        "AS each(direction, partition, value)"
    )
    duck.execute(
        "CREATE TABLE call_topics AS SELECT 'a' AS call_id, 't' AS topic, * FROM "
        "(VALUES (0, NULL), (1, 'MESSAGE_TOO_LARGE'), (1, 'MESSAGE_TOO_LARGE'), (NULL, 'X')) AS each(partition, error)"
    )
    undelivered = {row["partition"]: (row["messages"], row["refused"]) for row in answers(duck, "undelivered")}
    assert undelivered == {0: (1, 0), 1: (2, 2), None: (1, 1)}


def test_the_same_message_on_the_wire_and_on_disk(duck: duckdb.DuckDBPyConnection, files: Path) -> None:
    for row in answers(duck, "on_disk"):
        log = files / f"{row['topic']}-{row['partition']}" / f"{0:020}.log"
        stored = {m.offset for piece in pieces_of_file(str(log)) for m in piece.messages} if log.exists() else set()
        assert row["stored"] == row["same"] == (row["messages"] if stored else 0)


def test_a_message_on_the_disks_of_two_replicas_counts_once() -> None:
    """It is the same if one of the replicas has it."""
    import duckdb

    duck = duckdb.connect()
    duck.execute(
        "CREATE TABLE messages AS SELECT 't' AS topic, 0 AS partition, 7 AS timestamp_ms, * FROM (VALUES "
        "('fetched', 1, 'a'), ('fetched', 2, 'b'), ('fetched', 3, 'c'), ('fetched', 4, NULL), "
        "('stored', 1, 'a'), ('stored', 1, 'a'), ('stored', 2, 'b'), ('stored', 2, 'x'), ('stored', 3, 'x')"
        ") AS messages (direction, log_offset, value)"
    )
    (row,) = answers(duck, "on_disk")
    assert (row["messages"], row["stored"], row["same"]) == (4, 3, 2)


def test_lag(duck: duckdb.DuckDBPyConnection, frames: list[Frame], files: Path) -> None:
    ends: dict[tuple[str, int], int] = {}
    for frame in frames:
        if frame.schema.startswith("kafka.fetch.response"):
            for topic in frame.value.body.get("responses", ()):  # a frame at the end of a capture may have none
                for each in topic.partition_responses:
                    key = topic.topic, each.partition
                    ends[key] = max(ends.get(key, -1), each.high_watermark)
    committed: dict[tuple[str, str, int], int | None] = {}
    for piece in pieces_of_file(str(files / "__consumer_offsets-0" / f"{0:020}.log")):
        for message in piece.messages:
            key = wirekit.decode(message.key or b"", "kafka.consumer_offsets.key").value
            if key.version <= 1:
                offset = None
                if message.value is not None:
                    offset = wirekit.decode(message.value, "kafka.consumer_offsets.offset_value").value.offset
                committed[key.group, key.topic, key.partition] = offset
    lags = {(row["group_id"], row["topic"], row["partition"]): row for row in answers(duck, "lag")}
    assert None in committed.values()  # a deleted position
    for (group, topic, partition), offset in committed.items():
        row = lags.get((group, topic, partition), {})
        assert row.get("committed") == offset
        assert offset is None or row["log_end"] == ends.get((topic, partition))
    own = lags["kpy-group", "t-none", 0]
    assert own["lag"] == ends["t-none", 0] - own["committed"]
    assert (own["client"], own["client_address"]) == ("kpy", "127.0.0.1")  # although the stored position is the latest


def test_rebalances(duck: duckdb.DuckDBPyConnection, frames: list[Frame]) -> None:
    (joined,) = [f for f in frames if f.schema.startswith("kafka.join_group.response") and f.value.body.error_code == 0]
    request = joined.request
    assert request is not None
    (row,) = answers(duck, "rebalances")
    assert (row["group_id"], row["generation"], row["members"]) == ("kpy-group", joined.value.body.generation_id, 1)
    assert (row["ended"] - row["began"]).microseconds == joined.latency_us
    (member,) = [each for each in answers(duck, "members") if each["group_id"] == "kpy-group"]
    assert member["member_id"] == joined.value.body.member_id
    assert (member["client"], member["client_address"]) == (request.value.client_id, "127.0.0.1")
    assert (member["generation"], member["last_event"], member["partitions"]) == (row["generation"], "leave", 2)
    (group,) = [each for each in answers(duck, "groups") if each["group_id"] == "kpy-group"]
    assert (group["members"], group["last_event"]) == (1, "leave")  # although the broker stores the group afterwards


def test_failed_calls_of_groups(duck: duckdb.DuckDBPyConnection) -> None:
    failed = {(row["group_id"], row["api"], row["error"]): row for row in answers(duck, "group_errors")}
    assert failed["demo", "COMMIT_ACK", "FW_CONSUMER_ACK_FAIL"]["calls"] == 1


def test_only_a_member_that_was_not_refused_is_one() -> None:
    import duckdb

    duck = duckdb.connect()
    duck.execute("CREATE TABLE calls AS SELECT 'a' AS call_id, '10.0.0.1' AS client_address")
    duck.execute(
        "CREATE TABLE group_events AS SELECT 'a' AS call_id, 'kafka' AS protocol, 'g' AS group_id, 'c' AS client, "
        "[1] AS assignment, * FROM (VALUES (TIMESTAMP '2026-01-31', 'ghost', 9, 'join', 'UNKNOWN_MEMBER_ID'), "
        "(TIMESTAMP '2026-02-01', 'm', 3, 'join', NULL), (TIMESTAMP '2026-02-02', 'm', 3, 'heartbeat failed', 'X')) "
        "AS events (time, member_id, generation, event, error)"
    )
    duck.execute(
        "CREATE TABLE offsets AS SELECT protocol, 'old' AS group_id, time, 'request' AS source, error FROM group_events"
    )
    assert [(row["member_id"], row["last_event"]) for row in answers(duck, "members")] == [("m", "heartbeat failed")]
    group, old = answers(duck, "groups")
    assert (group["members"], group["generation"], group["last_event"]) == (1, 3, "heartbeat failed")
    assert (old["members"], old["generation"], old["last_event"], old["errors"]) == (0, None, "commit", 2)


def test_a_refused_commit_does_not_change_the_lag() -> None:
    import duckdb

    duck = duckdb.connect()
    duck.execute("CREATE TABLE calls AS SELECT 'a' AS call_id, 1 AS response_time")
    duck.execute("CREATE TABLE call_topics AS SELECT 'a' AS call_id, 't' AS topic, 0 AS partition, 9 AS high_watermark")
    duck.execute(
        "CREATE TABLE offsets AS SELECT 't' AS topic, 0 AS partition, 'g' AS group_id, 'request' AS source, * "
        "FROM (VALUES (2, 4, NULL), (3, 8, 'ILLEGAL_GENERATION')) AS commits (time, log_offset, error)"
    )
    assert [(row["time"], row["lag"]) for row in answers(duck, "lag_over_time")] == [(2, 5)]


def test_a_deleted_position_has_no_lag() -> None:
    import duckdb

    duck = duckdb.connect()
    duck.execute("CREATE TABLE calls AS SELECT 'a' AS call_id, 'c' AS client, '10.0.0.1' AS client_address")
    duck.execute("CREATE TABLE call_topics AS SELECT 't' AS topic, 0 AS partition, 9 AS high_watermark")
    duck.execute(
        "CREATE TABLE offsets AS SELECT 't' AS topic, 0 AS partition, 'a' AS call_id, NULL AS error, * "
        "FROM (VALUES ('gone', TIMESTAMP '2026-01-31', 4, 'request', NULL), "
        "('gone', '2026-02-01', NULL, 'stored', true), ('back', '2026-01-31', NULL, 'stored', true), "
        "('back', '2026-02-01', 4, 'stored', false)) "
        "AS positions (group_id, time, log_offset, source, deleted)"
    )
    assert [(row["group_id"], row["lag"]) for row in answers(duck, "lag")] == [("back", 5)]


def test_positions_are_stored_when_they_are_committed(duck: duckdb.DuckDBPyConnection) -> None:
    positions = answers(duck, "stored_commits")
    assert len(positions) == 4
    for row in positions:
        assert (row["stored_at"] - row["committed_at"]).total_seconds() < 0.1
        assert (row["expires_at"] - row["stored_at"]).days == 1


def test_equal_rows_are_in_the_order_of_time() -> None:
    """Ids depend on the names of files."""
    import duckdb

    duck = duckdb.connect()
    ends = "'10.0.0.1' AS client_address, 4000 AS client_port, '10.0.0.2' AS server_address, 9092 AS server_port"
    ids = "FROM (VALUES ('b', 1), ('a', 2), ('c', 3))"
    duck.execute(
        f"CREATE TABLE calls AS SELECT 7 AS latency_us, 'x' AS api, 'c' AS client, NULL AS topic, {ends}, * "
        f"{ids} AS calls (call_id, request_time)"
    )
    duck.execute(
        f"CREATE TABLE connections AS SELECT 'kafka' AS protocol, 'c' AS client, {ends}, 9 AS client_captured, "
        f"1 AS client_duplicate, 9 AS server_captured, 0 AS server_duplicate, * {ids} AS links (connection_id, opened)"
    )
    assert [row["request_time"] for row in answers(duck, "slow_calls")] == [1, 2, 3]
    assert [row["opened"] for row in answers(duck, "retransmissions")] == [1, 2, 3]
