"""What a run makes becomes visible whole or not at all, and never at the cost of foreign files."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from wirekit.errors import Misuse
from wirekit.pipeline.commits import lake_files
from wirekit.pipeline.folders import LocalFolder
from wirekit.pipeline.inputs import Job
from wirekit.pipeline.output import Output
from wirekit.pipeline.rows import Rows
from wirekit.pipeline.sink import MERGED, Manifest, Sink
from wirekit.pipeline.summary import Summary
from wirekit.tables.columns import FRAMES, GAPS, MESSAGES, OUTPUTS

TABLES = sorted(OUTPUTS)


def gaps(*offsets: int) -> pa.RecordBatch:
    rows = Rows(GAPS.schema)
    for offset in offsets:
        rows.add({"file": "a.pcap", "time": 1000 - offset, "position": offset, "length": 1})
    return rows.flush()


def attempt(output: Output, task: int, name: str, *offsets: int) -> Manifest:
    summary = Summary()
    summary.file("a.pcap").segments = len(offsets)
    with Sink(output.attempts, task, name) as sink:
        sink.write("gaps", gaps(*offsets))
        return Manifest.loads(sink.finish(summary).dumps())


ABOUT = {
    "wirekit": "",
    "engine": "",
    "configuration": Job(()).configuration(),
    "inputs": [],
    "changed_while_read": [],
    "summary": {},
}


def publish(path: Path, *offsets: int) -> dict[str, Any]:
    """A lake of one bundle."""
    with Output(path) as output:
        output.commit([attempt(output, 0, "only", *offsets)], ABOUT, [*output.commits])
        return output.finish()


def killed(output: Output) -> None:
    """What the system does with the lock of a process that is killed."""
    assert isinstance(output.folder, LocalFolder)
    assert output.folder._lock is not None
    output.folder._lock.close()


def offsets(path: Path) -> list[int]:
    return pq.read_table(path / "gaps").column("position").to_pylist()


def test_only_the_attempts_that_are_named_count(tmp_path: Path) -> None:
    with Output(tmp_path / "out") as output:
        attempt(output, 0, "dead", 1)
        second = attempt(output, 1, "b", 3, 2)
        first = attempt(output, 0, "a", 5, 4)
        output.commit([second, first], ABOUT)
        written = output.finish()
    assert offsets(tmp_path / "out") == [5, 4, 3, 2]  # by time, which falls as the offset rises
    assert sorted(os.listdir(tmp_path / "out")) == sorted([*TABLES, "commits", "manifest.json"])
    assert json.loads((tmp_path / "out" / "manifest.json").read_text()) == written
    assert [(file["file"], file["rows"]) for file in written["tables"]["gaps"]["files"]] == [
        ("gaps/part-00000-00000.parquet", 2),
        ("gaps/part-00000-00001.parquet", 2),
    ]
    assert written["tables"]["frames"]["rows"] == 0


def test_a_table_without_rows_has_its_columns(tmp_path: Path) -> None:
    publish(tmp_path / "out", 1)
    for name, table in OUTPUTS.items():
        assert pq.read_schema(tmp_path / "out" / name / "part-00000-00000.parquet").equals(table.schema)


def test_bundles_are_added(tmp_path: Path) -> None:
    for number in (1, 2):
        with Output(tmp_path) as output:
            committed = output.commit([attempt(output, 0, "only", number)], ABOUT)
            assert committed["bundle"] == number - 1
            output.finish()
    assert offsets(tmp_path) == [1, 2]
    assert sorted(os.listdir(tmp_path / "commits")) == ["00000.json", "00001.json"]
    assert os.listdir(tmp_path / "quarantine") == ["part-00000-00000.parquet"]  # one without rows is enough
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert (manifest["bundles"], manifest["tables"]["gaps"]["rows"]) == ([0, 1], 2)


@pytest.mark.parametrize("moved", range(14))
def test_the_next_run_finishes_moves_of_a_killed_run(
    tmp_path: Path, moved: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(tmp_path, 1)
    move = LocalFolder.move
    moves: list[str] = []

    def dying(self: LocalFolder, source: str, target: str) -> None:
        if len(moves) == moved:
            raise KeyboardInterrupt  # as a kill: nothing is taken back
        moves.append(target)
        move(self, source, target)

    monkeypatch.setattr(LocalFolder, "move", dying)
    output = Output(tmp_path)
    output.__enter__()
    with pytest.raises(KeyboardInterrupt):
        output.commit([attempt(output, 0, "only", 3, 2)], ABOUT, [0])
    killed(output)
    monkeypatch.undo()
    with pytest.raises(Misuse, match=r"a run replaces rows of .*; wait for it, or if it was killed, run the pipeline"):
        lake_files(tmp_path)
    with Output(tmp_path) as output:
        assert list(output.commits) == [1]
        output.finish()
    assert offsets(tmp_path) == [3, 2]
    assert lake_files(tmp_path)["gaps"] == [f"{tmp_path}/gaps/part-00001-00000.parquet"]
    assert sorted(os.listdir(tmp_path)) == sorted([*TABLES, "commits", "manifest.json"])
    assert all(len(os.listdir(tmp_path / name)) == 1 for name in (*TABLES, "commits"))


@pytest.mark.parametrize(
    "move",
    [
        ["../precious", "gaps/part-00000-00000.parquet"],
        [".wirekit/../../precious", ".wirekit/a"],
        [".wirekit/lock", "a"],
    ],
)
def test_moves_out_of_the_folder_are_refused(tmp_path: Path, move: list[str]) -> None:
    (tmp_path / "precious").write_text("mine")
    out = tmp_path / "out"
    publish(out, 1)
    (out / ".wirekit").mkdir()
    (out / ".wirekit" / "lock").write_bytes(b"wirekit tables\n")
    (out / ".wirekit" / "moves.json").write_text(json.dumps([move]))
    before = contents(tmp_path)
    with pytest.raises(Misuse, match="which wirekit did not write"), Output(out):
        pass
    assert {name: each for name, each in contents(tmp_path).items() if "lock" not in name} == {
        name: each for name, each in before.items() if "lock" not in name
    }


def test_two_attempts_of_one_task_are_refused(tmp_path: Path) -> None:
    with Output(tmp_path / "out") as output:
        both = [attempt(output, 0, "a", 1), attempt(output, 0, "b", 1)]
        with pytest.raises(Misuse, match="two manifests"):
            output.commit(both, ABOUT)
    assert not (tmp_path / "out").exists()


def test_a_new_bundle_replaces_an_old_one_when_it_is_complete(tmp_path: Path) -> None:
    publish(tmp_path, 1)
    (tmp_path / "notes.txt").write_text("mine")

    def failing() -> None:
        with Output(tmp_path) as output:
            attempt(output, 0, "a", 2)
            assert offsets(tmp_path) == [1]
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failing()
    assert offsets(tmp_path) == [1]
    publish(tmp_path, 3)
    assert offsets(tmp_path) == [3]
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert not (tmp_path / ".wirekit").exists()


def test_files_of_a_killed_run_do_not_stop_the_next(tmp_path: Path) -> None:
    output = Output(tmp_path / "out")
    output.__enter__()
    attempt(output, 0, "a", 2)
    killed(output)
    publish(tmp_path / "out", 3)
    assert offsets(tmp_path / "out") == [3]
    assert not (tmp_path / "out" / ".wirekit").exists()


def test_a_failed_run_removes_only_directories_it_created(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    for name in ("mine", "new"):
        with Output(tmp_path / name):
            pass
    assert os.listdir(tmp_path) == ["mine"]


def test_a_failed_move_leaves_the_old_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(tmp_path, 1)
    move = LocalFolder.move

    def full(self: LocalFolder, source: str, target: str) -> None:
        if target == "quarantine/part-00001-00000.parquet":
            raise OSError(28, "No space left on device")
        move(self, source, target)

    monkeypatch.setattr(LocalFolder, "move", full)
    with pytest.raises(OSError, match="No space"):
        publish(tmp_path, 2)
    assert offsets(tmp_path) == [1]
    assert json.loads((tmp_path / "manifest.json").read_text())["tables"]["gaps"]["rows"] == 1


@pytest.mark.parametrize("name", ["data.csv", "frames/part-00000.parquet", "manifest.json"])
def test_a_foreign_directory_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text('{"format": "another"}')
    with pytest.raises(Misuse, match="wirekit did not write"), Output(tmp_path):
        pass
    assert path.read_text() == '{"format": "another"}'
    assert not (tmp_path / ".wirekit").exists()


def test_a_path_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "odd\udcff"
    with pytest.raises(Misuse, match="is not UTF-8 at character"), Output(path):
        pass
    assert not path.exists()


def test_a_foreign_file_among_the_parts_is_refused(tmp_path: Path) -> None:
    publish(tmp_path, 1)
    (tmp_path / "gaps" / "mine.parquet").write_text("mine")
    with pytest.raises(Misuse, match=r"gaps/mine\.parquet"), Output(tmp_path):
        pass


LINKED = [".wirekit", "manifest.json", "frames", "commits", ".wirekit/lock"]


@pytest.mark.parametrize("name", LINKED)
@pytest.mark.parametrize("published", [False, True])
def test_a_link_is_refused_and_never_followed(tmp_path: Path, name: str, published: bool) -> None:
    precious = tmp_path / "elsewhere" / "precious"
    precious.mkdir(parents=True)
    (precious / "part-00000.parquet").write_text("mine")
    out = tmp_path / "out"
    if published:
        publish(out, 1)
    link = out / name
    link.parent.mkdir(parents=True, exist_ok=True)
    if link.is_dir():
        shutil.rmtree(link)
    link.unlink(missing_ok=True)
    directory = name not in ("manifest.json", ".wirekit/lock")
    link.symlink_to(precious.parent if directory else precious / "part-00000.parquet")
    before = contents(tmp_path)
    with pytest.raises(Misuse, match="wirekit did not write"), Output(out):
        pass
    assert contents(tmp_path) == before


@pytest.mark.parametrize("mark", [None, "", "another's"])
def test_a_work_directory_without_the_mark_of_a_run_stays(tmp_path: Path, mark: str | None) -> None:
    publish(tmp_path, 1)
    (tmp_path / ".wirekit" / "attempts").mkdir(parents=True)
    (tmp_path / ".wirekit" / "attempts" / "mine").write_text("mine")
    if mark is not None:
        (tmp_path / ".wirekit" / "lock").write_text(mark)
    before = contents(tmp_path)
    with pytest.raises(Misuse, match=r"\.wirekit/attempts, which wirekit did not write"), Output(tmp_path):
        pass
    assert contents(tmp_path) == before


def test_links_inside_files_of_a_killed_run_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("mine")
    output = Output(tmp_path / "out")
    output.__enter__()
    Path(output.attempts, "link").symlink_to(tmp_path / "precious")
    (tmp_path / "out" / ".wirekit" / "link").symlink_to(tmp_path / "precious")
    killed(output)
    publish(tmp_path / "out", 3)
    assert (tmp_path / "precious" / "file").read_text() == "mine"
    assert offsets(tmp_path / "out") == [3]
    assert not (tmp_path / "out" / ".wirekit").exists()


def test_a_run_that_was_killed_before_it_marked_its_directory_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / ".wirekit").mkdir()
    publish(tmp_path, 1)
    (tmp_path / ".wirekit").mkdir()
    (tmp_path / ".wirekit" / "lock").touch()
    publish(tmp_path, 2)
    assert offsets(tmp_path) == [2]


def contents(path: Path) -> dict[str, bytes | str | None]:
    """All files and links under a directory."""
    return {
        str(each.relative_to(path)): os.readlink(each)
        if each.is_symlink()
        else each.read_bytes()
        if each.is_file()
        else None
        for each in sorted(path.rglob("*"))
    }


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(Misuse, match="not a directory"), Output(tmp_path / "out"):
        pass


def test_two_runs_at_once_are_refused(tmp_path: Path) -> None:
    with Output(tmp_path) as output:
        with pytest.raises(Misuse, match="another run"), Output(tmp_path):
            pass
        output.commit([attempt(output, 0, "a", 1)], ABOUT)
    assert offsets(tmp_path) == [1]


def test_rows_in_a_file_are_in_order_and_memory_is_bounded(tmp_path: Path) -> None:
    rows = Rows(MESSAGES.schema)
    for number in range(1000):
        topic = None if number % 7 == 0 else f"topic-{number % 3}"
        rows.add({"file": "a.pcap", "time": 10_000 - number, "topic": topic, "log_offset": number, "key": b"k" * 9})
    batch = rows.flush()
    with Output(tmp_path) as output:
        with Sink(output.attempts, 0, "a", held_bytes=batch.nbytes // 4) as sink:
            for start in range(0, 1000, 10):
                sink.write("messages", batch.slice(start, 10))
            manifest = sink.finish(Summary())
        committed = output.commit([manifest], ABOUT)
    files = committed["tables"]["messages"]["files"]
    assert len(files) >= 4
    log_offsets = []
    for file in files:
        content = pq.read_table(tmp_path / file["file"]).to_pylist()
        keys = [(row["topic"] is None, row["topic"] or "", row["time"]) for row in content]
        assert keys == sorted(keys)
        log_offsets += [row["log_offset"] for row in content]
    assert sorted(log_offsets) == list(range(1000))
    assert pq.ParquetFile(tmp_path / files[0]["file"]).metadata.row_group(0).column(0).compression == "ZSTD"


def test_sorting_takes_little_more_memory_than_the_rows(tmp_path: Path) -> None:
    texts = [field.name for field in MESSAGES.schema if pa.types.is_string(field.type)]
    before, pool = pa.default_memory_pool(), pa.proxy_memory_pool(pa.default_memory_pool())
    pa.set_memory_pool(pool)
    try:
        with Sink(tmp_path, 0, "a") as sink:
            for start in range(0, 8000, 400):
                rows = Rows(MESSAGES.schema)
                for number in range(start, start + 400):
                    rows.add({"time": 10_000 - number, **{name: str(number % 7) * 200 for name in texts}})
                sink.write("messages", rows.flush())
            allocated = pool.bytes_allocated()
            sink.finish(Summary())
    finally:
        pa.set_memory_pool(before)
    assert pool.max_memory() < 1.5 * allocated


def test_batches_of_one_row_take_little_more_memory_than_their_rows(tmp_path: Path) -> None:
    """A directory of a broker may have tens of thousands of segments with few messages."""
    count, held = 4 * MERGED, 0
    before, pool = pa.default_memory_pool(), pa.proxy_memory_pool(pa.default_memory_pool())
    pa.set_memory_pool(pool)
    try:
        with Output(tmp_path) as output, Sink(output.attempts, 0, "a") as sink:
            for number in range(count):
                rows = Rows(MESSAGES.schema)
                rows.add({"file": "a.log", "log_offset": number})
                batch = rows.flush()
                held += batch.nbytes
                sink.write("messages", batch)
                del rows, batch
            allocated = pool.bytes_allocated()
            committed = output.commit([sink.finish(Summary())], ABOUT)
    finally:
        pa.set_memory_pool(before)
    assert allocated < 2 * held
    (file,) = committed["tables"]["messages"]["files"]
    assert pq.read_table(tmp_path / file["file"])["log_offset"].to_pylist() == list(range(count))


def test_columns_with_few_repeats_are_written_without_a_dictionary(tmp_path: Path) -> None:
    rows = Rows(FRAMES.schema)
    for number in range(100):
        checks = [{"path": "crc", "kind": "crc32c", "stored": "1", "computed": "2"}]
        rows.add({"frame_id": f"f{number}", "api": "fetch", "time": number, "checks": checks})
    with Output(tmp_path) as output, Sink(output.attempts, 0, "a") as sink:
        sink.write("frames", rows.flush())
        sink.finish(Summary())
        (file,) = tmp_path.rglob("frames-*.parquet")
        group = pq.ParquetFile(file).metadata.row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    having = {each.path_in_schema for each in columns if "RLE_DICTIONARY" in each.encodings}
    assert {"api", "checks.list.element.kind"} <= having
    assert not having & {"frame_id", "call_id", "time"}


def _without(commit: dict[str, Any], name: str) -> dict[str, Any]:
    return {each: value for each, value in commit.items() if each != name}


def _with_file(commit: dict[str, Any], name: str) -> dict[str, Any]:
    commit["tables"]["gaps"]["files"][0]["file"] = name
    return commit


def _with_files(commit: dict[str, Any], times: int) -> dict[str, Any]:
    commit["tables"]["gaps"]["files"] *= times
    return commit


@pytest.mark.parametrize(
    "damage",
    [
        lambda commit: "",
        lambda commit: "[" * 100_000,
        lambda commit: '{"version": ' + "9" * 5_000 + "}",
        lambda commit: "[1]",
        lambda commit: json.dumps(dict.fromkeys(commit)),
        lambda commit: json.dumps(commit | {"inputs": [1]}),
        lambda commit: json.dumps(_without(commit, "summary")),
        lambda commit: json.dumps(commit | {"tables": {"gaps": {"rows": 1, "files": [{"file": 5}]}}}),
        lambda commit: json.dumps(_with_file(commit, "gaps/../../other.parquet")),
        lambda commit: json.dumps(_with_file(commit, "/other.parquet")),
        lambda commit: json.dumps(_with_file(commit, "gaps/..")),
        lambda commit: json.dumps(_with_file(commit, "gaps/part-00000-00000.parquet\udc80")),
        lambda commit: json.dumps(_with_file(commit, "gaps/part-00001-00000.parquet")),
        lambda commit: json.dumps(_with_files(commit, 2)),
        lambda commit: json.dumps(commit | {"bundle": 1}),
        lambda commit: json.dumps(_without(commit, "version")),
        lambda commit: json.dumps(commit | {"configuration": {}}),
        lambda commit: json.dumps(commit | {"inputs": [{"file": "a.pcap"}]}),
        lambda commit: json.dumps(commit | {"state": [{"file": "state/part-00000-00000.parquet"}]}),
    ],
)
def test_a_damaged_commit_is_refused_with_its_name(damage: Any, tmp_path: Path) -> None:
    publish(tmp_path / "lake", 1)
    path = tmp_path / "lake" / "commits" / "00000.json"
    path.write_text(damage(json.loads(path.read_text())))
    with pytest.raises(Misuse, match=r"commits/00000\.json is damaged"):
        lake_files(tmp_path / "lake")
    with pytest.raises(Misuse, match=r"commits/00000\.json is damaged"), Output(tmp_path / "lake"):
        pass


@pytest.mark.parametrize("change", ["other", "missing", "pipe"])
def test_a_file_that_no_bundle_wrote_so_is_not_read(change: str, tmp_path: Path) -> None:
    publish(tmp_path, 1)
    file = tmp_path / "gaps" / "part-00000-00000.parquet"
    if change == "other":
        pq.write_table(pq.read_table(file), file, compression="none", use_dictionary=False, write_statistics=False)
    else:
        file.unlink()
    if change == "pipe":
        os.mkfifo(file)
    state = "has .* bytes instead of .*" if change == "other" else "is missing"
    with pytest.raises(Misuse, match=rf"gaps/part-00000-00000\.parquet {state}; restore it, or"):
        lake_files(tmp_path)
    assert lake_files(tmp_path, ["calls"]) == {"calls": [f"{tmp_path}/calls/part-00000-00000.parquet"]}


def test_a_link_to_a_file_of_a_table_is_read(tmp_path: Path) -> None:
    publish(tmp_path / "lake", 1)
    file = tmp_path / "lake" / "gaps" / "part-00000-00000.parquet"
    file.rename(tmp_path / "elsewhere.parquet")
    file.symlink_to(tmp_path / "elsewhere.parquet")
    assert lake_files(tmp_path / "lake")["gaps"] == [str(file)]


def test_a_commit_that_is_a_pipe_is_refused(tmp_path: Path) -> None:
    publish(tmp_path, 1)
    commit = tmp_path / "commits" / "00000.json"
    commit.unlink()
    os.mkfifo(commit)
    with pytest.raises(Misuse, match=r"commits/00000\.json is not a file"):
        lake_files(tmp_path)


@pytest.mark.parametrize("content", ["", "\0", "[" * 100_000, "[]"])
def test_a_damaged_manifest_is_written_again(content: str, tmp_path: Path) -> None:
    publish(tmp_path, 1)
    manifest = tmp_path / "manifest.json"
    whole = manifest.read_bytes()
    manifest.write_text(content)
    with Output(tmp_path) as output:
        output.finish()
    assert json.loads(manifest.read_bytes())["tables"] == json.loads(whole)["tables"]


@pytest.mark.parametrize("content", ["", '{"a": 1}', '["a"]', "[" * 100_000])
def test_a_damaged_plan_is_refused_with_its_name(content: str, tmp_path: Path) -> None:
    publish(tmp_path, 1)
    with Output(tmp_path):
        (tmp_path / ".wirekit" / "moves.json").write_text(content)
    with pytest.raises(Misuse, match=r"moves\.json is damaged"), Output(tmp_path):
        pass
