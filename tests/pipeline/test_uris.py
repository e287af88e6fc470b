"""Captures and stored files by URI: an object store gives what local files give, and says in a line what is wrong."""

from __future__ import annotations

import gzip
import os
import random
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import wirekit
from tests.conftest import FIXTURES
from tests.pipeline.helpers import pcap_records, tables
from tests.pipeline.object_store import BUCKET, MANY, MANY_KEYS, ObjectStore
from wirekit import storage
from wirekit.capture.files import open_capture
from wirekit.cli import main
from wirekit.errors import Misuse
from wirekit.pipeline import parallel
from wirekit.pipeline.inputs import Job, captures, find_inputs
from wirekit.pipeline.serial import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PULSAR = FIXTURES / "pcap" / "pulsar-batch.pcap"
KAFKA = FIXTURES / "pcap" / "kafka-0.9.0.1-2-produce.pcapng"
SEGMENT = FIXTURES / "kafka" / "disk" / "0.10.2.2-t-snappy-0.log"


def command(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """(exit status, standard output, standard error)."""
    with pytest.raises(SystemExit) as ended:
        main([*map(str, arguments)])
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


def plain(table: Any, names: dict[str, str]) -> list[str]:
    """A table's rows as text, with other names for their files; without ids, and what the segment's folder tells."""
    texts = [
        repr({name: row[name] for name in row if not name.endswith(("_id", "topic", "partition"))}) for row in table
    ]
    for uri, name in names.items():
        texts = [text.replace(uri, name) for text in texts]
    return sorted(texts)


@pytest.fixture(scope="module")
def objects(object_store_server: ObjectStore, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """{URI: path} of captures of two kinds and a segment under one prefix; something else there is not read."""
    folder = "some/captures"
    segment = tmp_path_factory.mktemp("orders-") / f"{0:020}.log"
    segment.write_bytes(SEGMENT.read_bytes())
    files = {f"{folder}/{path.name}": path for path in (PULSAR, KAFKA)} | {f"{folder}/orders-3/{0:020}.log": segment}
    object_store_server.upload(f"{folder}/readme.txt", b"not read")
    return {object_store_server.upload(key, path): str(path) for key, path in files.items()}


def test_the_tables_of_objects_are_those_of_files(store: ObjectStore, objects: dict[str, str], tmp_path: Path) -> None:
    inputs = find_inputs([f"s3://{BUCKET}/some/captures"])
    assert {each.name for each in inputs} == {*objects}
    run(Job(inputs), tmp_path / "objects")
    run(Job(find_inputs(objects.values())), tmp_path / "files")
    remote, near = tables(tmp_path / "objects"), tables(tmp_path / "files")
    for table in ("calls", "messages", "connections", "frames", "quarantine", "gaps"):
        assert plain(remote[table], objects) == plain(near[table], {})
    assert {(row["file"], row["size"], row["sha256"]) for row in remote["inputs"]} == {
        (uri, os.path.getsize(path), None) for uri, path in objects.items()
    }
    assert {(row["topic"], row["partition"]) for row in remote["messages"] if row["direction"] == "stored"} == {
        ("orders", 3)
    }


def test_small_objects_are_fetched_ahead_in_the_order_of_the_run(
    store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tables are those of files; an object that is gone is noted, and the others have their rows."""
    under_way, most, lock = 0, 0, threading.Lock()
    files = {}
    for number in range(9):
        path = tmp_path / f"{'abcdefghi'[number]}.pcap"
        path.write_bytes((PULSAR, KAFKA)[number % 2].read_bytes())
        files[store.upload(f"ahead/{path.name}", path)] = str(path)
    job, gone = Job(find_inputs([f"s3://{BUCKET}/ahead"])), f"s3://{BUCKET}/ahead/d.pcap"
    store.system().delete_file(gone.removeprefix("s3://"))

    def slow(method: str, path: str) -> None:
        nonlocal under_way, most
        with lock:
            under_way += method == "GET"
            most = max(most, under_way)
        time.sleep(0.1)
        with lock:
            under_way -= method == "GET"

    with store.faulty(slow) as endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        result = run(job, tmp_path / "objects")
    assert most > 3
    assert list(result.summary.files) == list(files)
    assert (result.summary.unreadable, result.gone) == ({gone: "no such object"}, {gone})
    del files[gone]
    run(Job(find_inputs(files.values())), tmp_path / "files")
    remote, near = tables(tmp_path / "objects"), tables(tmp_path / "files")
    for table in ("calls", "messages", "connections"):
        assert plain(remote[table], files) == plain(near[table], {})


def test_few_objects_are_fetched_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "CHUNK", 1000)
    fetched: list[str] = []

    def fetch(uri: str) -> pa.BufferReader:
        fetched.append(uri)
        if uri.endswith("bad"):
            raise FileNotFoundError(uri)
        return pa.BufferReader(uri.encode())

    monkeypatch.setattr(storage, "_fetched", fetch)
    monkeypatch.setattr(storage, "_ranged", lambda uri: pa.BufferReader(b"opened"))
    names = [f"s3://b/{number:02}" for number in range(40)]
    names[3] += "bad"
    others = [("s3://b/large", 1001), ("local", 1)]
    with storage.ReadAhead([*others, *((name, 1) for name in names)]):
        for number in (0, 1, 2, 6, 7):
            assert storage.open_binary(names[number]).read().decode() == names[number]
        for number in (0, 3):  # is read, or was passed over
            assert storage.open_binary(names[number]).read() == b"opened"
    assert {*names[:8]} <= {*fetched} <= {*names[: storage.REQUESTS + 8]}
    assert len(fetched) == len({*fetched})
    fetched.clear()
    with storage.ReadAhead([(name, 1000) for name in names]):
        assert storage.open_binary(names[2]).read().decode() == names[2]
        with pytest.raises(FileNotFoundError):
            storage.open_binary(names[3])
    assert {*names[:4]} <= {*fetched} <= {*names[: storage.HELD + 4]}
    assert storage.open_binary(names[5]).read() == b"opened"


@pytest.mark.parametrize("size", [0, 10, 50_000])
def test_an_object_may_grow_before_it_is_fetched_ahead(
    size: int, store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "CHUNK", 1000)
    content = random.Random(1).randbytes(size)
    uri = store.upload("grown.bin", content)
    with storage.ReadAhead([(uri, 10)]), storage.open_binary(uri) as file:
        store.system().delete_file(uri.removeprefix("s3://"))
        assert file.read() == (content if size <= storage.CHUNK else b"")


@pytest.mark.parametrize("road", ["objects", "columns"])
def test_a_rotation_is_recognised_among_objects(store: ObjectStore, tmp_path: Path, road: str) -> None:
    header, packets = pcap_records(PULSAR)
    cuts = [packets[:6], packets[6:15], packets[15:]]
    parts = [header + b"".join(each) for each in cuts]
    uris = [store.upload(f"rotated/trace.pcap{number or ''}", part) for number, part in enumerate(parts)]
    inputs = find_inputs([f"s3://{BUCKET}/rotated/*"])
    assert [tuple(each.name for each in files) for files in captures(inputs)] == [tuple(uris)]
    run(Job(inputs, road=road), tmp_path / "objects")
    run(Job(find_inputs([PULSAR])), tmp_path / "file")
    remote, near = tables(tmp_path / "objects"), tables(tmp_path / "file")
    for table in ("messages", "connections"):
        assert plain(remote[table], {uris[0]: str(PULSAR)}) == plain(near[table], {})


def test_patterns_prefixes_and_compressed_objects(store: ObjectStore) -> None:
    for key in ("globs/a/one.pcap", "globs/a/two.pcap", "globs/b/one.pcap", "globs/a/notes.txt"):
        store.upload(key, b"")
    store.upload("globs/c/packed.pcap.gz", gzip.compress(PULSAR.read_bytes()))

    def names_of(pattern: str) -> list[str]:
        names = [each.name for each in find_inputs([f"s3://{BUCKET}/{pattern}"], separate=True)]
        return sorted(name.removeprefix(f"s3://{BUCKET}/globs/") for name in names)

    assert names_of("globs/*/one.pcap") == ["a/one.pcap", "b/one.pcap"]
    assert names_of("globs/[!b]/t?o.pcap") == ["a/two.pcap"]
    assert names_of("globs/**/*.pcap") == ["a/one.pcap", "a/two.pcap", "b/one.pcap"]
    assert names_of("globs/a/") == names_of("globs/a") == ["a/one.pcap", "a/two.pcap"]
    assert names_of("globs/a/notes.txt") == names_of("globs/a/*.txt") == ["a/notes.txt"]
    assert wirekit.read(f"s3://{BUCKET}/globs/c", "messages").read_all().num_rows == 10
    store.upload("globs/[d]/what[1].pcap", b"")
    assert names_of("globs/[d]/what[1].pcap") == ["[d]/what[1].pcap"]
    with pytest.raises(Misuse, match=r"nothing matches s3://captures/globs/\*\.log"):
        names_of("globs/*.log")


def test_an_object_with_an_empty_folder_in_its_name_does_not_end_a_run(
    store: ObjectStore, capsys: pytest.CaptureFixture[str]
) -> None:
    """S3 has such objects, pyarrow cannot open them."""
    readable, other = store.upload("empty/a.pcap", PULSAR), f"s3://{BUCKET}/empty//b.pcap"
    kind = {"Content-Type": "application/octet-stream"}
    url = f"{store.endpoint}/{BUCKET}/empty//b.pcap"
    with urllib.request.urlopen(urllib.request.Request(url, PULSAR.read_bytes(), kind, method="PUT")):
        pass
    for pattern in ("empty/", "empty/**/*.pcap"):
        with pytest.warns(RuntimeWarning, match=f"skipped, // in the name: {other}"):
            assert [each.name for each in find_inputs([f"s3://{BUCKET}/{pattern}"])] == [readable]
    status, out, err = command(capsys, "sql", "FROM calls", other)
    assert (status, out, err) == (1, "", f"wirekit: {other}: cannot read an object with // in its name; rename it\n")


def test_patterns_and_file_uris_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a b").mkdir()
    for name in ("one.pcap", "two.pcap"):
        (tmp_path / "a b" / name).symlink_to(PULSAR)
    monkeypatch.chdir(tmp_path)
    assert [each.name for each in find_inputs(["a b/t*.pcap"])] == ["a b/two.pcap"]
    uri = (tmp_path / "a b" / "one.pcap").as_uri()
    for each in (uri, uri.replace("///", "/"), uri.replace("///", "//localhost/")):
        assert [file.path for file in find_inputs([each])] == [str(tmp_path / "a b" / "one.pcap")]
    assert "%20" in uri
    with pytest.raises(Misuse, match="nothing matches"):
        find_inputs(["no*.pcap"])
    for wrong, text in (("ftp://host/a.pcap", "ftp://"), ("file://host/a", "host"), ("s3:///a", "no bucket")):
        with pytest.raises(Misuse, match=text):
            find_inputs([wrong])


def test_commands_that_take_captures_take_uris(
    store: ObjectStore, objects: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    uri = next(uri for uri in objects if uri.endswith(PULSAR.name))
    segment = next(uri for uri in objects if uri.endswith(".log"))
    for name, local, remote in (
        ("frames", PULSAR, uri),
        ("messages", PULSAR, uri),
        ("messages", PULSAR, uri.replace("batch", "ba*")),
        ("inspect", PULSAR, uri),
    ):
        expected = command(capsys, name, local)
        assert command(capsys, name, remote) == (expected[0], expected[1].replace(str(PULSAR), uri), "")
    status, out, _ = command(capsys, "messages", segment)
    assert (status, out.count("\n")) == (0, command(capsys, "messages", SEGMENT)[1].count("\n"))
    status, out, _ = command(capsys, "sql", "SELECT count(*) AS n FROM messages", f"s3://{BUCKET}/some/captures")
    assert (status, '"n":' in out) == (0, True)


def test_an_object_is_read_by_ranges_and_little_of_it_is_held(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "CHUNK", 1000)
    content = random.Random(1).randbytes(100_500)
    uri = store.upload("ranges.bin", content)
    with storage.open_binary(uri) as file:
        raw = file.raw
        assert isinstance(raw, storage.RangedFile)
        assert file.peek(4)[:4] == content[:4]
        assert len(raw._chunks) == 1
        most = 0
        read = b""
        while piece := file.read(700):
            read += piece
            most = max(most, len(raw._chunks))
        assert read == content
        assert storage.AHEAD < most <= storage.HELD
        for at in random.Random(2).sample(range(len(content)), 50):
            file.seek(at)
            assert file.read(2500) == content[at : at + 2500]
        assert file.seek(-10, os.SEEK_END) == len(content) - 10
        assert file.read() == content[-10:]
    with open_capture(store.upload("mapped.pcap", PULSAR)) as capture:
        assert capture.read(24, 100) == PULSAR.read_bytes()[24:124]
        assert capture.read(0, 1 << 30) == PULSAR.read_bytes()
        capture.keep()
        assert capture.read(24, 100) == PULSAR.read_bytes()[24:124]


@pytest.mark.parametrize(("left", "reason"), [(b"", "no such object"), (b"short", "the object has no such bytes")])
def test_an_object_that_changes_under_a_reader_is_an_error(
    left: bytes, reason: str, store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a run compares the status of its inputs afterwards."""
    monkeypatch.setattr(storage, "CHUNK", 1000)
    uri = store.upload("changes.bin", bytes(50_000))
    with storage.open_binary(uri) as file:
        file.read(700)
        if left:
            store.upload("changes.bin", left)
        else:
            store.system().delete_file(f"{BUCKET}/changes.bin")
        with pytest.raises(OSError, match=reason) as raised:
            file.read()
    assert raised.value.filename == uri


COMMANDS = (("pipeline", "-o", "out"), ("frames",), ("messages",), ("inspect",), ("sql", "FROM calls"))


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda arguments: arguments[0])
@pytest.mark.parametrize(
    ("uri", "text"),
    [
        ("s3://captures/nowhere.pcap", "no such object"),
        ("s3://nowhere/a.pcap", "no such bucket"),
        ("s3://nowhere/*.pcap", "no such bucket"),
        ("s3://captures/nowhere/*.pcap", "no such object"),
    ],
)
def test_a_missing_object_or_bucket_is_reported_in_one_line(
    store: ObjectStore,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    arguments: tuple[str, ...],
    uri: str,
    text: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    status, out, err = command(capsys, *arguments, uri)
    assert status in (1, 2)
    assert (out, err.count("\n")) == ("", 1)
    assert text in err
    assert uri in err
    assert not (tmp_path / "out").exists()


def test_ten_thousand_keys_are_listed_in_pages(
    store: ObjectStore, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    listed: list[storage.Status] = []

    def listing(uri: str) -> list[storage.Status]:
        listed.extend(storage.objects(uri))
        return listed

    monkeypatch.setattr("wirekit.pipeline.inputs.objects", listing)
    status, out, err = command(capsys, "frames", f"s3://{MANY}/logs")
    assert (status, out) == (2, "")
    assert len(listed) == MANY_KEYS
    assert err == f"wirekit: nothing to read in s3://{MANY}/logs; pass an object, or a prefix of captures\n"


def test_no_permission_and_no_store_are_lines(
    store: ObjectStore, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = store.upload("denied/a.pcap", PULSAR)
    with store.refusing():
        for each in (uri, f"s3://{BUCKET}/denied/*"):
            status, out, err = command(capsys, "frames", each)
            assert (status, out, err.count("\n")) == (1, "", 1)
            assert err.startswith(f"wirekit: {each}: access denied (")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{listener.getsockname()[1]}")
        monkeypatch.setattr(storage, "ATTEMPTS", 1)
        status, out, err = command(capsys, "frames", uri)
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert err.startswith(f"wirekit: {uri}: the object store does not answer: ")


@pytest.mark.parametrize(
    ("raised", "reason"),
    [
        (
            OSError("Unable to load libjvm dlopen(/usr/lib/jvm/libjvm.so) failed: " + 99 * "no such file "),
            "load libjvm",
        ),
        (OSError("google::cloud::Status(UNAVAILABLE: Could not create a OAuth2 access token to"), "see GOOGLE_APP"),
        (OSError("google::cloud::Status(INTERNAL: broken error_info={reason=, domain=})"), "INTERNAL: broken: 'gs:"),
        (pa.ArrowException("Failed to get token from DefaultAzureCredential.\nSee"), "see AZURE_TENANT_ID"),
        (pa.ArrowException("broken"), "broken: 'gs:"),
        (OSError(99 * "broken "), "…: 'gs:"),
    ],
    ids=["libjvm", "no token of Google", "Google", "no token of Azure", "Azure", "long"],
)
def test_failures_of_other_stores_are_short_lines(raised: Exception, reason: str) -> None:
    with pytest.raises(OSError, match=reason) as caught, storage.failures("gs://b/a.pcap"):
        raise raised
    assert caught.value.filename == "gs://b/a.pcap"
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 400


@pytest.mark.parametrize(
    ("raised", "seconds"),
    [("Could not create a OAuth2 access token to", [5]), ("Permission denied", [5, 60]), ("", [5, 60])],
)
def test_a_run_without_credentials_of_google_ends_at_once(
    raised: str, seconds: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client tries for a minute and a half; the first request has less time, and the others keep theirs."""
    limits: list[int] = []

    class Google:
        def __init__(self, retry_time_limit: timedelta) -> None:
            limits.append(retry_time_limit.seconds)

        def get_file_info(self, path: str) -> None:
            assert path == "b"
            if raised:
                raise OSError(raised)

    storage._file_system.cache_clear()
    monkeypatch.setattr("pyarrow.fs.GcsFileSystem", Google)
    if len(seconds) == 1:
        with pytest.raises(PermissionError, match="no credentials; see GOOGLE_APPLICATION_CREDENTIALS"):
            storage.place_of("gs://b/a.pcap")
    else:
        assert storage.place_of("gs://b/a.pcap").path == "b/a.pcap"
    assert limits == seconds
    storage._file_system.cache_clear()


@pytest.mark.parametrize("kind", [pa.ArrowMemoryError, pa.ArrowInvalid, KeyError])
def test_errors_that_are_none_of_a_store_stay_what_they_are(kind: type[Exception]) -> None:
    with pytest.raises(kind), storage.failures("gs://b/a.pcap"):
        raise kind("text")


@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("hdfs://nowhere/a.pcap", "cannot load lib"),
        ("abfs://container/a.pcap", r"names no account; pass abfs://CONTAINER@ACCOUNT\.dfs\.core\.windows\.net/PATH"),
    ],
)
def test_stores_that_lack_something_here_are_lines(
    uri: str, reason: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HADOOP_HOME", str(tmp_path))
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT", raising=False)
    status, out, err = command(capsys, "frames", uri)
    assert status in (1, 2)
    assert (out, err.count("\n")) == ("", 1)
    assert re.search(reason, err)
    assert len(err) < 400


def test_without_pyarrow_the_extra_is_named() -> None:
    code = "import sys; sys.modules['pyarrow'] = None; from wirekit.cli import main; main(['frames', 's3://b/a.pcap'])"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (
        2,
        "wirekit: s3://b/a.pcap needs pyarrow: pip install 'wirekit[columns]'\n",
    )


@pytest.mark.spark
def test_spark_reads_objects_and_writes_them(
    store: ObjectStore,
    objects: dict[str, str],
    tmp_path: Path,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in store.environment.items():  # the workers' environment is else that of the session's begin
        monkeypatch.setitem(spark.sparkContext.environment, name, value)
    from wirekit.spark import pipeline
    from wirekit.spark.source import register

    pipeline.run(Job(find_inputs([f"s3://{BUCKET}/some/captures"])), f"s3://{BUCKET}/spark/lake", spark)
    run(Job(find_inputs([f"s3://{BUCKET}/some/captures"])), tmp_path / "serial")
    assert tables(store.fetched("spark/lake", tmp_path / "spark")) == tables(tmp_path / "serial")
    parts: list[int] = []

    def parts_of(*arguments: Any) -> Any:
        parts_read = splits(*arguments)
        parts.append(len(parts_read))
        return parts_read

    splits = parallel._Bundle._splits
    monkeypatch.setattr(parallel._Bundle, "_splits", parts_of)
    monkeypatch.setattr(parallel, "PARTITION_BYTES", 5000)
    job = Job(find_inputs([f"s3://{BUCKET}/some/captures"]), road="columns")
    pipeline.run(job, f"s3://{BUCKET}/spark/split", spark, shuffled=True)
    assert max(parts) > 2
    assert tables(store.fetched("spark/split", tmp_path / "split")) == tables(tmp_path / "serial")
    register(spark)  # with this environment
    source = spark.read.format("wirekit").option("table", "messages")
    assert source.load(f"s3://{BUCKET}/some/captures/*batch.pcap").count() == 10


def test_a_stream_keeps_its_state_in_an_object_store(store: ObjectStore, tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    from tests.spark.test_stream_state import Query, whole

    header, packets = pcap_records(PULSAR)
    for number, part in enumerate((packets[:6], packets[6:15], packets[15:])):
        store.upload(f"streamed/trace.pcap{number or ''}", header + b"".join(part))
    folder = f"s3://{BUCKET}/streamed/*"
    query = Query(folder, f"s3://{BUCKET}/state", maxFilesPerTrigger="1")
    assert query.finish() == whole(folder, "calls")
    assert query.batches == [[["trace.pcap"]], [["trace.pcap1"]], [["trace.pcap2"]], [[]]]
