"""``wirekit sql``: what captures, segments and lakes answer, in which form, and what a wrong query is told."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import wirekit
from tests.cli.running import Run
from wirekit.cli import main
from wirekit.pipeline import serial, views
from wirekit.pipeline.commits import VERSION
from wirekit.pipeline.inputs import Job, find_inputs
from wirekit.tables import queries
from wirekit.tables.columns import FROM_INPUTS

duckdb = pytest.importorskip("duckdb")
pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

LATENCIES = "SELECT api, count(*) AS calls, max(latency_us) AS slowest FROM calls GROUP BY api ORDER BY api"


@pytest.fixture(scope="module")
def job(fixtures: Path) -> Job:
    return Job(find_inputs([fixtures / "pcap" / "pulsar-batch.pcap", fixtures / "pcap" / "jmq4-produce.pcap"]))


@pytest.fixture(scope="module")
def lake(job: Job, tmp_path_factory: pytest.TempPathFactory) -> Path:
    lake: Path = tmp_path_factory.mktemp("it's [a] lake")
    serial.run(job, lake)
    return lake


def rows(table: str, job: Job, lakes: list[Path]) -> list[dict[str, Any]]:
    with duckdb.connect() as connection:
        views.create_views(connection, job, lakes)
        reader = pa.RecordBatchReader.from_stream(connection.sql(f"FROM {table}"))
        content: list[dict[str, Any]] = reader.read_all().to_pylist()
    return sorted(content, key=repr)


@pytest.mark.parametrize("table", FROM_INPUTS)
def test_captures_and_their_lake_have_the_same_rows(table: str, job: Job, lake: Path) -> None:
    captured = rows(table, job, [])
    assert captured == rows(table, Job(()), [lake])
    assert sorted([*captured, *captured], key=repr) == rows(table, job, [lake])


def test_only_the_tables_of_the_query_are_read(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[str] = []
    read = views.table_batches

    def noted(job: Job, table: str, **options: Any) -> Any:
        names.append(table)
        return read(job, table, **options)

    monkeypatch.setattr(views, "table_batches", noted)
    with duckdb.connect() as connection:
        views.create_views(connection, job, [])
        connection.sql("SELECT count(*) FROM calls AS a JOIN calls AS b USING (call_id), offsets").fetchall()
    assert sorted(names) == ["calls", "calls", "offsets"]


def test_json_is_a_line_a_row(fixtures: Path) -> None:
    run = Run("sql", "SELECT value, timestamp, properties FROM messages LIMIT 1", f"{fixtures}/pcap/pulsar-batch.pcap")
    assert (run.status, run.err) == (0, "")
    assert run.lines == [{"value": "6d73672d30", "timestamp": "2026-11-21T00:35:11.536000+00:00", "properties": []}]


def test_a_table_has_numbers_to_the_right(fixtures: Path) -> None:
    run = Run("sql", LATENCIES, str(fixtures / "pcap" / "jmq4-produce.pcap"), "--output", "table")
    assert run.out.decode().splitlines()[:3] == [
        "api              calls  slowest",
        "ADD_CONNECTION       1     1790",
        "ADD_PRODUCER         1     1790",
    ]


@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_a_file_in_the_form_of_its_name(form: str, fixtures: Path, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    capture, file = str(fixtures / "pcap" / "jmq4-produce.pcap"), tmp_path / f"calls.{form}"
    expected = Run("sql", LATENCIES, capture).lines
    run = Run("sql", LATENCIES, capture, "--to", str(file))
    assert (run.status, run.out, run.err) == (0, b"", "")
    if form == "parquet":
        written = pq.read_table(file).to_pylist()
    elif form == "json":
        written = [json.loads(line) for line in file.read_text().splitlines()]
    else:
        with file.open() as lines:
            written = [
                {**row, **{name: int(row[name]) for name in ("calls", "slowest")}} for row in csv.DictReader(lines)
            ]
    assert written == expected


def test_a_lake_that_is_named_twice_is_read_once(lake: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(lake)
    query = "SELECT count(*) AS n FROM calls"
    once = Run("sql", query, str(lake)).lines
    assert Run("sql", query, str(lake), f"{lake}/", lake.as_uri(), str(tmp_path / "link")).lines == once


def test_a_part_of_a_lake_stands_for_the_lake(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = Run("sql", "topic_clients", str(lake)).lines
    assert answer
    assert {"manifest.json", "commits", "calls"} <= {path.name for path in lake.iterdir()}
    assert Run("sql", "topic_clients", *map(str, lake.iterdir())).lines == answer  # lake/*, of a shell
    for name in ("call_topics", "calls/"):
        assert Run("sql", "topic_clients", f"{lake}/{name}").lines == answer
    monkeypatch.chdir(lake / "calls")
    assert Run("sql", "topic_clients", ".").lines == answer
    (part,) = map(str, Path().iterdir())  # of several files, one alone would not give the rows of the others
    run = Run("sql", "topic_clients", part)
    assert (run.status, run.out) == (1, b"")
    assert run.err.endswith("; .. has tables of `wirekit pipeline`; `wirekit sql QUERY ..` queries them\n")


def test_a_query_that_an_older_lake_cannot_answer_names_its_format(job: Job, tmp_path: Path) -> None:
    """It lacks a column and a table; it still answers other queries."""
    serial.run(job, tmp_path)
    [commit] = (tmp_path / "commits").iterdir()
    content = json.loads(commit.read_text()) | {"version": VERSION - 1}
    del content["tables"]["gaps"]
    for entry in content["tables"]["calls"]["files"]:
        file = tmp_path / entry["file"]
        parquet.write_table(parquet.read_table(file).drop_columns(["outcome"]), file)
        entry["bytes"] = file.stat().st_size
    commit.write_text(json.dumps(content))
    about = f"another version of wirekit wrote {tmp_path} (format {VERSION - 1}, not {VERSION}); write its tables again"
    for query, problem in (("SELECT outcome FROM calls", '"outcome" not found'), ("FROM gaps", "no table gaps;")):
        run = Run("sql", query, str(tmp_path))
        assert run.status == 2
        assert problem in run.err
        assert about in run.err
    assert Run("sql", "SELECT api FROM calls", str(tmp_path)).status == 0
    assert about not in Run("sql", "SELECT api FROM", str(tmp_path)).err


def test_options_for_captures_are_refused_for_tables(lake: Path) -> None:
    run = Run("sql", "SELECT 1", str(lake), "--protocol", "kafka")
    assert (run.status, "all inputs are tables" in run.err) == (2, True)


def test_standard_input_is_read(fixtures: Path) -> None:
    data = (fixtures / "pcap" / "jmq4-produce.pcap").read_bytes()
    assert Run("sql", "SELECT DISTINCT file FROM calls", "-", stdin=data).lines == [{"file": "-"}]


@pytest.mark.parametrize(
    ("query", "complaint"),
    [
        ("slow-calls", "wirekit: no query has the name 'slow-calls'; did you mean slow_calls?"),
        ("calls", 'wirekit: calls is a table; pass "FROM calls" for its rows'),
        ("SELEC 1", 'Parser Error: syntax error at or near "SELEC"'),
        ("SELECT 1,\ntime, group, api", 'syntax error at or near ",", after: time, group\n'),
        ("SELECT upper(value) FROM messages", "Keys and values are bytes; decode(value) is text."),
        ("FROM call", "no table call; the tables of these inputs are packets, calls, call_topics, messages, "),
        ("SELECT apy FROM calls", 'column "apy" not found in FROM clause! Candidate bindings: "api"'),
        ("SELECT api::int FROM calls", "Conversion Error: Could not convert string"),
        ("SELECT '\udcff'", "QUERY is not UTF-8 at character 9"),
        (f"SELECT {'(' * 5000}1{')' * 5000}", "Max expression depth limit of 1000 exceeded"),
        (
            f"SELECT {'[' * 70}1{']' * 70}",
            "Arrow cannot express a column of this query: Recursion level in ArrowSchema",
        ),
    ],
    ids=lambda text: text[:12].encode("ascii", "replace").decode(),
)
def test_a_wrong_query_is_reported_in_one_line(query: str, complaint: str, fixtures: Path) -> None:
    run = Run("sql", query, str(fixtures / "pcap" / "jmq4-produce.pcap"))
    assert (run.status, run.out, run.err.count("\n")) == (2, b"", 1)
    assert complaint in run.err


def test_a_name_stands_for_its_query(
    lake: Path, fixtures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if a file has this name. Its text, which begins with a comment, is a query as well."""
    (tmp_path / "latency").touch()
    monkeypatch.chdir(tmp_path)
    captures = [str(fixtures / "pcap" / name) for name in ("pulsar-batch.pcap", "jmq4-produce.pcap")]
    answer = Run("sql", queries.query("latency"), *captures).lines
    assert len(answer) > 5
    assert Run("sql", "latency", *captures).lines == Run("sql", "latency", str(lake)).lines == answer
    for name in ("latency.csv", "latency.parquet"):
        assert Run("sql", "latency", str(lake), "--to", name).status == 0
    assert parquet.read_table("latency.parquet").to_pylist() == answer
    with Path("latency.csv").open() as lines:
        assert [int(row["p99_us"]) for row in csv.DictReader(lines)] == [row["p99_us"] for row in answer]


def test_a_word_that_is_a_statement_stays_one(fixtures: Path) -> None:
    run = Run("sql", "show", str(fixtures / "pcap" / "jmq4-produce.pcap"))
    assert (run.status, run.err) == (0, "")


def test_named_queries_are_listed_and_printed() -> None:
    listed = Run("sql", "--list")
    assert [line["name"] for line in listed.lines] == list(queries.NAMES)
    old = listed.lines[queries.NAMES.index("old_versions")]
    assert old["description"].startswith("Clients that use an old version of an API. An old version is ")
    assert Run("sql", "--list", "lag", "--output", "json").lines == [x for x in listed.lines if x["name"] == "lag"]
    assert Run("sql", "--list", "lag").out.decode() == queries.query("lag") + "\n"
    table = Run("sql", "--list", "--output", "table").out.decode().splitlines()
    assert table[:2] == ["Clients and versions", "  clients           Requests, errors and bytes of each client."]
    assert len(table) == len(queries.NAMES) + len(queries.SUBJECTS)
    unknown = Run("sql", "--list", "lagg", "--output", "json")
    assert (unknown.status, unknown.err) == (2, "wirekit: no query has the name 'lagg'; did you mean lag?\n")
    for arguments in (("lag", "trace.pcap"), ("--to", "a.json"), ("--output", "csv"), ("--separate",)):
        run = Run("sql", "--list", *arguments)
        assert (run.status, "--list reads no capture" in run.err) == (2, True)


def test_a_missing_query_or_capture_is_named(fixtures: Path) -> None:
    for run in (Run("sql"), Run("sql", "lag")):
        assert (run.status, "pass a query, and a capture, segment or directory" in run.err) == (2, True)
    assert "the query comes first" in Run("sql", str(fixtures / "pcap" / "jmq4-produce.pcap")).err


def test_several_statements_have_one_result(fixtures: Path) -> None:
    capture = str(fixtures / "pcap" / "jmq4-consume.pcap")
    run = Run("sql", "CREATE TEMP TABLE few AS FROM calls LIMIT 2; SELECT count(*) AS n FROM few", capture)
    assert (run.status, run.lines) == (0, [{"n": 2}])
    run = Run("sql", "FROM calls; FROM messages", capture)
    assert (run.status, run.out, run.err) == (2, b"", "wirekit: QUERY has 2 statements with a result; pass one\n")


def test_a_query_that_is_a_file_or_empty(fixtures: Path) -> None:
    capture = str(fixtures / "pcap" / "jmq4-produce.pcap")
    swapped, empty = Run("sql", capture, "FROM calls"), Run("sql", " ", capture)
    assert (swapped.status, empty.status) == (2, 2)
    assert f"{capture} is a path; the query comes first" in swapped.err
    assert "QUERY is empty" in empty.err


def test_a_file_that_is_no_capture_is_an_error(tmp_path: Path, fixtures: Path) -> None:
    """No rows would look like an answer; beside a capture the file is named, and the capture is read."""
    text = tmp_path / "text.txt"
    text.write_text("hello")
    count = "SELECT count(*) AS n FROM calls"
    refused = Run("sql", count, str(text))
    assert (refused.status, refused.out) == (1, b"")
    assert f"{text}: expected a pcap or pcapng file" in refused.err
    beside = Run("sql", count, str(text), str(fixtures / "pcap" / "jmq4-consume.pcap"))
    assert beside.status == 1
    assert beside.lines[0]["n"] > 0
    assert f"{text}: expected a pcap or pcapng file" in beside.err
    with pytest.raises(wirekit.Misuse, match=r"text\.txt: expected a pcap or pcapng file"):
        wirekit.read(text)


def test_undecoded_bytes_are_reported_unless_the_query_reads_them(fixtures: Path) -> None:
    """An empty table of calls may also mean that no client was understood."""
    wrong = (str(fixtures / "pcap" / "pulsar-batch.pcap"), "--protocol", "kafka")
    run = Run("sql", "FROM calls", *wrong)
    assert run.status == 0
    (size,) = Run("sql", "SELECT sum(length)::INT AS size FROM quarantine", *wrong).lines[0].values()
    assert run.err == f"wirekit: not decoded: {size:,} bytes; the table quarantine has the reasons\n"
    assert Run("sql", "FROM quarantine", *wrong).err == ""


def test_bytes_that_are_cut_at_the_ends_of_a_capture_are_not_reported(fixtures: Path) -> None:
    run = Run("sql", "FROM calls", str(fixtures / "pcap" / "kafka-0.10.2.2-4-clients.pcapng"))
    assert (run.status, run.err) == (0, "")


def test_a_table_is_aligned_for_characters_of_two_columns(fixtures: Path) -> None:
    values = "SELECT * FROM (VALUES ('主题', 1), ('orders', 20)) AS t(topic, n)"
    run = Run("sql", values, str(fixtures / "pcap" / "jmq4-produce.pcap"), "--output", "table")
    assert run.out.decode().splitlines() == ["topic    n", "主题     1", "orders  20"]


@pytest.mark.parametrize("name", ["rows.csv", "rows.json", "rows.parquet"])
def test_a_file_that_cannot_be_written_is_named(name: str, fixtures: Path, tmp_path: Path) -> None:
    to = str(tmp_path / "missing" / name)
    run = Run("sql", "FROM calls", str(fixtures / "pcap" / "jmq4-produce.pcap"), "--to", to)
    assert (run.status, run.err) == (1, f"wirekit: {to}: No such file or directory\n")


def test_a_result_is_not_written_to_an_object_store(fixtures: Path) -> None:
    run = Run("sql", "FROM calls", str(fixtures / "pcap" / "jmq4-produce.pcap"), "--to", "s3://bucket/rows.csv")
    assert (run.status, "write to a local file" in run.err) == (2, True)


@pytest.mark.parametrize(("name", "status"), [("old.parquet", 2), ("old.csv", 0)])
def test_a_type_that_a_form_lacks_leaves_the_file_as_it_was(
    name: str, status: int, fixtures: Path, tmp_path: Path
) -> None:
    to = tmp_path / name
    to.write_text("before")
    query = "SELECT 1::UNION(number INT, text VARCHAR) AS either"
    run = Run("sql", query, str(fixtures / "pcap" / "jmq4-produce.pcap"), "--to", str(to))
    assert (run.status, run.err.count("\n")) == (status, status // 2)
    assert (to.read_text() == "before") == bool(status)
    assert list(tmp_path.iterdir()) == [to]


def test_differences_of_times_are_text(fixtures: Path, tmp_path: Path) -> None:
    query = "SELECT max(time) - min(time) AS d, max(time) - min(time) AS \"d\", map {'k': 1} AS m FROM frames"
    capture = str(fixtures / "pcap" / "jmq4-consume.pcap")
    assert Run("sql", query, capture).lines == [{"d": "00:00:00.80889", "d_2": "00:00:00.80889", "m": [["k", 1]]}]
    Run("sql", query, capture, "--to", str(tmp_path / "d.parquet"))
    assert pa.parquet.read_table(tmp_path / "d.parquet").column("d").to_pylist() == ["00:00:00.80889"]


def test_no_output_replaces_an_input(fixtures: Path, tmp_path: Path) -> None:
    capture = tmp_path / "trace.pcap"
    before = (fixtures / "pcap" / "jmq4-produce.pcap").read_bytes()
    capture.write_bytes(before)
    for arguments in (
        ["sql", "FROM calls", str(capture), "--to", str(tmp_path / "." / "trace.pcap")],
        ["inspect", str(capture), "--report", str(capture)],
        ["inspect", "--report", str(capture), str(fixtures / "pcap" / "jmq4-produce.pcap")],
    ):
        assert Run(*arguments).status == 2
        assert capture.read_bytes() == before


@pytest.mark.parametrize(
    ("name", "options", "status"),
    [
        ("calls.xlsx", (), 2),
        ("calls.txt", ("--output", "table"), 0),
        ("calls.jsonl", (), 0),
        ("calls", (), 0),
    ],
)
def test_an_unknown_suffix_needs_a_form(
    name: str, options: tuple[str, ...], status: int, fixtures: Path, tmp_path: Path
) -> None:
    """JSON in a file named .xlsx surprises who opens it."""
    to = tmp_path / name
    run = Run("sql", "FROM calls", str(fixtures / "pcap" / "jmq4-produce.pcap"), "--to", str(to), *options)
    assert (run.status, to.exists()) == (status, not status)
    assert ("no output format has this suffix; write .parquet, .csv or .json, or pass --output" in run.err) == bool(
        status
    )


def test_parquet_needs_a_file(fixtures: Path) -> None:
    run = Run("sql", "FROM calls", str(fixtures / "pcap" / "jmq4-produce.pcap"), "--output", "parquet")
    assert (run.status, run.out) == (2, b"")
    assert "--output parquet needs --to FILE" in run.err


def test_the_missing_extra_is_named(fixtures: Path) -> None:
    code = "import sys; sys.modules['duckdb'] = None; from wirekit.cli import main; main()"
    arguments = ["sql", "FROM calls", str(fixtures / "pcap" / "jmq4-produce.pcap")]
    completed = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert (completed.returncode, completed.stderr) == (
        2,
        "wirekit: wirekit sql needs duckdb: pip install 'wirekit[sql]'\n",
    )


def test_an_interruption_while_a_table_is_read_is_one_line(
    fixtures: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> Iterator[Any]:
        signal.raise_signal(signal.SIGINT)
        yield

    monkeypatch.setattr(views, "table_batches", interrupted)
    handler = signal.getsignal(signal.SIGINT)
    try:
        with pytest.raises(SystemExit) as exit_of_command:
            main(["sql", "FROM calls", str(fixtures / "pcap" / "pulsar-batch.pcap")])
    finally:
        signal.signal(signal.SIGINT, handler)
    assert (exit_of_command.value.code, *capsys.readouterr()) == (130, "", "interrupted\n")
