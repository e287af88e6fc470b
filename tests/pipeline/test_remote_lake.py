"""A lake in an object store: the tables of one on disk, with the same care for what is somebody else's."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import FIXTURES
from tests.pipeline.helpers import tables
from tests.pipeline.object_store import BUCKET, ObjectStore
from wirekit.cli import main
from wirekit.errors import Misuse
from wirekit.pipeline import folders
from wirekit.pipeline.inputs import Job, find_inputs
from wirekit.pipeline.run import Result
from wirekit.pipeline.serial import run
from wirekit.tables.columns import OUTPUTS

PULSAR = FIXTURES / "pcap" / "pulsar-batch.pcap"
JOYQUEUE = FIXTURES / "pcap" / "jmq4-consume.pcap"


def pipeline(output: str | Path, *inputs: str | Path, **how: Any) -> Result:
    return run(Job(find_inputs(inputs)), output, **how)


def test_a_lake_in_an_object_store_is_that_on_disk(store: ObjectStore, tmp_path: Path) -> None:
    uri = f"s3://{BUCKET}/same/lake"
    for lake in (uri, tmp_path / "disk"):
        pipeline(lake, PULSAR)
        assert pipeline(lake, PULSAR, JOYQUEUE).committed == 1
    assert tables(store.fetched("same/lake", tmp_path / "copy")) == tables(tmp_path / "disk")
    expected = sorted(str(path.relative_to(tmp_path / "disk")) for path in (tmp_path / "disk").rglob("*.*"))
    assert store.names("same/lake") == expected
    assert store.names("same") == [f"lake/{name}" for name in expected]  # nothing beside it
    pipeline(uri, JOYQUEUE, replace=True)
    assert len(store.names("same/lake/calls")) == len(store.names("same/lake/commits")) == 1


def test_sql_reads_a_lake_in_an_object_store(store: ObjectStore, capsys: pytest.CaptureFixture[str]) -> None:
    uri = f"s3://{BUCKET}/asked/lake"
    pipeline(uri, PULSAR)
    with pytest.raises(SystemExit) as ended:
        main(["sql", "SELECT protocol, count(*) AS n FROM messages GROUP BY 1", uri, f"{uri}/calls/", str(JOYQUEUE)])
    assert not ended.value.code
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert sorted((line["protocol"], line["n"]) for line in lines) == [("joyqueue", 1), ("pulsar", 10)]


def test_a_run_and_a_query_make_few_requests(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each takes a third of a second in a slow store; small objects are written by one, unrelated ones at once."""
    uri, sent, under_way, most = f"s3://{BUCKET}/few/lake", list[tuple[str, str]](), Counter[str](), 0

    def fault(method: str, path: str) -> None:
        nonlocal most
        sent.append((method, path))
        under_way[method] += 1
        most = max(most, under_way["PUT"])
        time.sleep(0.02)
        under_way[method] -= 1

    def requests() -> list[tuple[str, str]]:
        without_locks = [(method, path) for method, path in sent if "/lock-" not in path]
        sent.clear()
        return without_locks

    with store.faulty(fault) as endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        pipeline(uri, PULSAR)
        first = requests()
        pipeline(uri, PULSAR, JOYQUEUE)
        second = requests()
        pipeline(uri, PULSAR, JOYQUEUE)
        third = requests()
        with pytest.raises(SystemExit):
            main(["sql", "SELECT count(*) AS n FROM messages", uri])
        assert capsys.readouterr().out == '{"n": 11}\n'
        query = requests()
    assert (len(first) < 60, len(second) < 65, len(third) < 40) == (True, True, True)
    written = [path for method, path in first if method == "PUT" and not path.endswith("/")]
    assert len(written) == len({*written}) == 2 * len(OUTPUTS) + 4  # commit and moves; then the commit, the manifest
    assert most > 2
    assert sum("/commits/" in path for _, path in query) <= 4 * 2  # whether it is a lake, and its files: each once


def test_delta_tables_in_an_object_store(store: ObjectStore, capsys: pytest.CaptureFixture[str]) -> None:
    deltalake = pytest.importorskip("deltalake")
    uri = f"s3://{BUCKET}/delta"
    pipeline(uri, PULSAR, form="delta")
    pipeline(uri, PULSAR, JOYQUEUE)
    table = deltalake.DeltaTable(f"{uri}/messages", storage_options={"AWS_ALLOW_HTTP": "true"})
    assert (table.version(), table.transaction_version("wirekit")) == (1, 1)
    with pytest.raises(SystemExit):
        main(["sql", "SELECT protocol, count(*) AS n FROM messages GROUP BY 1 ORDER BY 1", uri])
    assert capsys.readouterr().out == '{"protocol": "joyqueue", "n": 1}\n{"protocol": "pulsar", "n": 10}\n'


@pytest.mark.parametrize("name", ["data.csv", "calls/mine.parquet", ".wirekit/mine", "commits/mine.json"])
def test_a_prefix_of_something_else_is_refused(store: ObjectStore, name: str) -> None:
    prefix = f"foreign/{name.replace('/', '-')}"
    store.upload(f"{prefix}/{name}", b"mine")
    with pytest.raises(Misuse, match="which wirekit did not write"):
        pipeline(f"s3://{BUCKET}/{prefix}", PULSAR)
    assert store.names(prefix) == [name]


def test_other_objects_in_a_lake_stay(store: ObjectStore) -> None:
    pipeline(f"s3://{BUCKET}/shared", PULSAR)
    store.upload("shared/notes.txt", b"mine")
    store.upload("shared-too/a.txt", b"mine")
    pipeline(f"s3://{BUCKET}/shared", JOYQUEUE, replace=True)
    assert "notes.txt" in store.names("shared")
    assert store.names("shared-too") == ["a.txt"]


def test_another_run_is_refused_while_its_lease_is_fresh(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store's clock tells, which has seconds."""
    uri = f"s3://{BUCKET}/leased"
    store.upload(f"leased/.wirekit/lock-{'0' * 32}", b"wirekit tables\n")
    with pytest.raises(Misuse, match=r"another run writes to s3://captures/leased, or was killed less than 60 seconds"):
        pipeline(uri, PULSAR)
    assert store.names("leased") == [f".wirekit/lock-{'0' * 32}"]
    monkeypatch.setattr(folders, "LEASE_SECONDS", 1)
    time.sleep(2.1)
    pipeline(uri, PULSAR)
    assert not any(name.startswith(".wirekit") for name in store.names("leased"))


RUN = """
import sys
from wirekit.pipeline import folders
from wirekit.pipeline.inputs import Job, find_inputs
from wirekit.pipeline.serial import run
folders.LEASE_SECONDS = 1
run(Job(find_inputs([sys.argv[1]])), sys.argv[2], bundle=0)
"""


def test_a_run_that_is_killed_goes_on_where_it_was(store: ObjectStore, tmp_path: Path) -> None:
    (tmp_path / "captures").mkdir()
    for letter in "abcd":
        (tmp_path / "captures" / f"{letter}.pcap").write_bytes((PULSAR if letter < "c" else JOYQUEUE).read_bytes())
    command = [sys.executable, "-c", RUN, str(tmp_path / "captures"), f"s3://{BUCKET}/killed"]
    for after in ("commits/00000.json", ".wirekit/moves.json"):
        with subprocess.Popen(command) as process:
            until = time.monotonic() + 60
            while after not in store.names("killed") and process.poll() is None and time.monotonic() < until:
                pass
            process.kill()
        time.sleep(2.1)  # the lease, by a clock of seconds
    subprocess.run(command, check=True)
    pipeline(tmp_path / "disk", tmp_path / "captures", bundle=0)
    assert tables(store.fetched("killed", tmp_path / "copy")) == tables(tmp_path / "disk")
    assert len(store.names("killed/commits")) == 4
    assert not any(name.startswith(".wirekit") for name in store.names("killed"))
    assert {name.partition("/")[0] for name in store.names("killed")} == {*OUTPUTS, "commits", "manifest.json"}


def test_an_object_that_is_still_denied_has_its_bundle_read_once(
    store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri, denied = store.upload("partly/a.pcap", PULSAR), store.upload("partly/b.pcap", JOYQUEUE)
    paths: list[str] = []

    def fault(method: str, path: str) -> int | None:
        paths.append(path)
        return 403 if path.endswith("b.pcap") and method == "GET" and denied else None

    with store.faulty(fault) as endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        first = pipeline(tmp_path / "lake", f"s3://{BUCKET}/partly")
        before = tables(tmp_path / "lake")
        paths.clear()
        second = pipeline(tmp_path / "lake", f"s3://{BUCKET}/partly")
        assert not any(path.endswith("a.pcap") for path in paths)
        assert tables(tmp_path / "lake") == before
        denied = ""
        third = pipeline(tmp_path / "lake", f"s3://{BUCKET}/partly")
    reason = "access denied (GetObject); see AWS_ACCESS_KEY_ID and AWS_PROFILE"
    assert first.summary.unreadable == second.summary.unreadable == {f"s3://{BUCKET}/partly/b.pcap": reason}
    assert (second.committed, second.manifest["bundles"], second.notes) == (1, [0], ())
    assert (third.committed, third.manifest["bundles"], third.summary.unreadable) == (0, [1], {})
    assert {*third.summary.files} == {uri, f"s3://{BUCKET}/partly/b.pcap"}


def test_a_store_that_refuses_to_write_is_a_line(store: ObjectStore, capsys: pytest.CaptureFixture[str]) -> None:
    with store.refusing(), pytest.raises(SystemExit) as ended:
        main(["pipeline", str(PULSAR), "-o", f"s3://{BUCKET}/denied"])
    err = capsys.readouterr().err
    assert (ended.value.code, err.count("\n")) == (1, 1)
    assert err.startswith(f"wirekit: s3://{BUCKET}/denied: access denied")
    with pytest.raises(SystemExit):
        main(["pipeline", str(PULSAR), "-o", "s3://nowhere/lake"])
    assert capsys.readouterr().err == "wirekit: s3://nowhere/lake: no such bucket: nowhere\n"
