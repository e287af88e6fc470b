"""A lake grows by bundles: nothing twice, nothing lost, whatever kills a run and however inputs change."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import FIXTURES
from tests.pipeline.helpers import pcap_records, rows, tables
from wirekit.capture.files import open_capture
from wirekit.errors import Misuse
from wirekit.pipeline import bundles, packet_rows
from wirekit.pipeline.commits import VERSION
from wirekit.pipeline.folders import LocalFolder
from wirekit.pipeline.inputs import Input, Job, find_inputs, renumbered
from wirekit.pipeline.run import Result
from wirekit.pipeline.serial import run
from wirekit.road import tables as road_tables
from wirekit.tables.columns import FROM_INPUTS, OUTPUTS

PULSAR = FIXTURES / "pcap" / "pulsar-batch.pcap"
JOYQUEUE = FIXTURES / "pcap" / "jmq4-consume.pcap"


def pipeline(output: Path, *inputs: Path, options: dict[str, Any] | None = None, **how: Any) -> Result:
    return run(Job(find_inputs(inputs), **(options or {})), output, **how)


def content(output: Path) -> dict[str, list[dict[str, Any]]]:
    """All tables but what tells of the run."""
    return {name: content_rows for name, content_rows in tables(output).items() if name in FROM_INPUTS}


def test_tables_do_not_depend_on_bundles(captures: Path, tmp_path: Path) -> None:
    whole = pipeline(tmp_path / "whole", captures)
    several = pipeline(tmp_path / "several", captures, bundle=200_000)
    assert len(whole.manifest["bundles"]) == 1
    assert len(several.manifest["bundles"]) > 3
    assert content(tmp_path / "several") == content(tmp_path / "whole")
    assert several.summary == whole.summary
    assert several.manifest["summary"] == whole.manifest["summary"]
    inputs, expected = ({row["file"]: row for row in rows(tmp_path / name, "inputs")} for name in ("several", "whole"))
    assert {name: row | {"run_id": None} for name, row in inputs.items()} == {
        name: row | {"run_id": None} for name, row in expected.items()
    }
    ids = {row["run_id"] for row in rows(tmp_path / "several", "runs")}
    assert len(ids) == len(several.manifest["bundles"])
    assert {row["run_id"] for row in inputs.values()} == ids


def test_a_bundle_has_so_many_files_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless one capture has more, which is not cut."""
    monkeypatch.setattr(bundles, "BUNDLE_FILES", 10)
    alone = [(Input(0, f"{number}.pcap", f"/{number}.pcap", 5, 0),) for number in range(25)]
    rotation = tuple(Input(number, f"r.pcap{number}", f"/r.pcap{number}", 5, 0) for number in range(12))
    job = Job(renumbered([*alone[:24], rotation, alone[24]]))
    for cut, counts in ((False, [10, 10, 4, 12, 1]), (True, [10, 10, 10, 7])):
        assert [len(each.inputs) for each in bundles.plan_bundles(job, {}, cut=cut).bundles] == counts


def test_the_same_inputs_again_add_nothing(tmp_path: Path) -> None:
    first = pipeline(tmp_path / "lake", PULSAR, JOYQUEUE)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "lake").rglob("*.*")}
    again = pipeline(tmp_path / "lake", JOYQUEUE, PULSAR)
    assert (again.committed, again.summary.files, again.manifest) == (2, {}, first.manifest)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "lake").rglob("*.*")} == before


def test_new_inputs_are_added(tmp_path: Path) -> None:
    pipeline(tmp_path / "lake", PULSAR)
    added = pipeline(tmp_path / "lake", PULSAR, JOYQUEUE)
    assert (added.committed, list(added.summary.files)) == (1, [str(JOYQUEUE)])
    pipeline(tmp_path / "whole", PULSAR, JOYQUEUE)
    assert content(tmp_path / "lake") == content(tmp_path / "whole")
    assert {each["file"] for each in added.manifest["inputs"]} == {str(PULSAR), str(JOYQUEUE)}


def test_replacing_leaves_nothing_of_before(tmp_path: Path) -> None:
    pipeline(tmp_path / "lake", PULSAR)
    pipeline(tmp_path / "lake", JOYQUEUE, replace=True)
    pipeline(tmp_path / "alone", JOYQUEUE)
    assert tables(tmp_path / "lake") == tables(tmp_path / "alone")
    assert len(list((tmp_path / "lake" / "calls").iterdir())) == 1


def test_other_options_are_refused(tmp_path: Path) -> None:
    pipeline(tmp_path / "lake", PULSAR)
    with pytest.raises(Misuse, match=r"with other options \(without --values\)"):
        pipeline(tmp_path / "lake", JOYQUEUE, options={"values": True})
    assert {row["file"] for row in rows(tmp_path / "lake", "frames")} == {str(PULSAR)}


def test_the_tables_of_an_earlier_version_are_refused(tmp_path: Path) -> None:
    pipeline(tmp_path / "lake", PULSAR)
    shutil.rmtree(tmp_path / "lake" / "commits")
    for path in (tmp_path / "lake").glob("*/*.parquet"):
        path.rename(path.with_name("part-00000.parquet"))
    with pytest.raises(Misuse, match="earlier version"):
        pipeline(tmp_path / "lake", JOYQUEUE)
    pipeline(tmp_path / "lake", JOYQUEUE, replace=True)
    assert {row["file"] for row in rows(tmp_path / "lake", "frames")} == {str(JOYQUEUE)}


def test_tables_with_other_columns_are_refused(tmp_path: Path) -> None:
    """Readers take the columns from one file: those that earlier files lack would be missing from all rows."""
    pipeline(tmp_path / "lake", PULSAR)
    commit = tmp_path / "lake" / "commits" / "00000.json"
    commit.write_text(commit.read_text().replace(f'"version": {VERSION}', '"version": 2', 1))
    with pytest.raises(Misuse, match=r"another version of wirekit wrote the tables \(format 2, not"):
        pipeline(tmp_path / "lake", JOYQUEUE)
    pipeline(tmp_path / "lake", JOYQUEUE, replace=True)
    assert {row["file"] for row in rows(tmp_path / "lake", "frames")} == {str(JOYQUEUE)}


def test_other_columns_are_another_version() -> None:
    """Increase ``VERSION`` with every change of the columns or of their types, and put both here."""
    columns = [f"{name}.{field.name} {field.type}" for name, table in OUTPUTS.items() for field in table.schema]
    assert (VERSION, hashlib.sha256("\n".join(columns).encode()).hexdigest()[:16]) == (3, "a2a654bd1836059f")


def test_files_are_moved_away_before_others_take_their_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An object store makes several moves at once, so their order among each other is any."""
    pipeline(tmp_path / "lake", PULSAR)
    shutil.rmtree(tmp_path / "lake" / "commits")
    each = LocalFolder.each
    monkeypatch.setattr(LocalFolder, "each", lambda self, function, items: each(self, function, [*items][::-1])[::-1])
    pipeline(tmp_path / "lake", JOYQUEUE, replace=True)
    assert {row["file"] for row in rows(tmp_path / "lake", "frames")} == {str(JOYQUEUE)}


def rotation(folder: Path, *cuts: int) -> list[Path]:
    """A capture cut into the files of a rotation."""
    folder.mkdir(parents=True)
    header, packets = pcap_records(PULSAR)
    files = []
    for number, (begin, end) in enumerate(zip((0, *cuts), (*cuts, len(packets)), strict=True)):
        files.append(folder / f"trace.pcap{number or ''}")
        files[-1].write_bytes(header + b"".join(packets[begin:end]))
    return files


def test_a_rotation_that_goes_on_is_read_again_as_a_whole(tmp_path: Path) -> None:
    files = rotation(tmp_path / "all", 5, 12)
    for count in (1, 2, 3):
        (tmp_path / "some").mkdir(exist_ok=True)
        shutil.copy2(files[count - 1], tmp_path / "some")
        grown = pipeline(tmp_path / "lake", tmp_path / "some")
        assert len(grown.notes) == (count > 1)
    assert [path.name for path in (tmp_path / "lake" / "commits").iterdir()] == ["00002.json"]
    pipeline(tmp_path / "whole", tmp_path / "some")
    assert content(tmp_path / "lake") == content(tmp_path / "whole")
    assert len(rows(tmp_path / "lake", "messages")) == 10


def test_the_next_file_of_a_ring_is_a_capture_of_its_own(tmp_path: Path) -> None:
    """``dumpcap -b files:2`` has removed the first one: its rows stay, and so do those of the second."""
    files = rotation(tmp_path / "some", 5, 12)
    third = files[2].read_bytes()
    files[2].unlink()
    pipeline(tmp_path / "lake", tmp_path / "some")
    before = content(tmp_path / "lake")
    files[0].unlink()
    files[2].write_bytes(third)
    grown = pipeline(tmp_path / "lake", tmp_path / "some")
    assert (list(grown.summary.files), len(grown.notes)) == ([str(files[2])], 1)
    pipeline(tmp_path / "alone", files[2])
    alone = content(tmp_path / "alone")
    assert content(tmp_path / "lake") == {name: sorted(before[name] + alone[name], key=repr) for name in before}


def test_a_file_that_has_changed_is_read_again(tmp_path: Path) -> None:
    for name in ("a.pcap", "b.pcap"):
        shutil.copy2(PULSAR, tmp_path / name)
    pipeline(tmp_path / "lake", tmp_path / "a.pcap", tmp_path / "b.pcap")
    shutil.copy2(JOYQUEUE, tmp_path / "a.pcap")
    with pytest.raises(Misuse, match=r"a\.pcap had 2,385 bytes when it was read"):
        pipeline(tmp_path / "lake", tmp_path / "a.pcap")
    assert pipeline(tmp_path / "lake", tmp_path / "b.pcap").committed == 1
    again = pipeline(tmp_path / "lake", tmp_path / "a.pcap", tmp_path / "b.pcap")
    assert (again.committed, again.manifest["bundles"]) == (0, [1])
    pipeline(tmp_path / "whole", tmp_path / "a.pcap", tmp_path / "b.pcap")
    assert tables(tmp_path / "lake") == tables(tmp_path / "whole")


def test_a_file_that_could_not_be_read_is_read_by_the_next_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = pipeline(tmp_path / "expected", PULSAR, JOYQUEUE)

    def refusing(path: str) -> Any:
        if path == str(PULSAR):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        return open_capture(path)

    with monkeypatch.context() as patch:
        for module in (packet_rows, road_tables):
            patch.setattr(module, "open_capture", refusing)
        refused = pipeline(tmp_path / "out", PULSAR, JOYQUEUE)
        patch.setattr(bundles, "open_binary", refusing)
        still_refused = pipeline(tmp_path / "out", PULSAR, JOYQUEUE)
    assert refused.summary.unreadable == still_refused.summary.unreadable == {str(PULSAR): "No space left on device"}
    assert (still_refused.committed, still_refused.manifest["bundles"]) == (1, [0])
    assert pipeline(tmp_path / "out", PULSAR, JOYQUEUE).summary == expected.summary
    assert content(tmp_path / "out") == content(tmp_path / "expected")
    assert pipeline(tmp_path / "out", PULSAR, JOYQUEUE).committed == 2


def test_a_changed_file_whose_bundle_is_not_there_any_more_stops_no_other(tmp_path: Path) -> None:
    """Its rows stay as they are, and new files are added."""
    folder = tmp_path / "captures"
    folder.mkdir()
    shutil.copy(PULSAR, folder)
    grown = folder / "grown.pcap"
    whole = (FIXTURES / "pcap" / "pulsar-nobatch.pcap").read_bytes()
    grown.write_bytes(whole[:2900])
    pipeline(tmp_path / "out", folder)
    before = content(tmp_path / "out")
    (folder / PULSAR.name).unlink()
    grown.write_bytes(whole)
    shutil.copy(JOYQUEUE, folder)
    (note,) = pipeline(tmp_path / "out", folder).notes
    assert f"{grown}: has changed, and the tables keep what was read before, because {folder / PULSAR.name} " in note
    after = content(tmp_path / "out")
    assert [row for row in after["calls"] if not row["file"].endswith(JOYQUEUE.name)] == before["calls"]
    assert len(after["calls"]) == len(before["calls"]) + 11


def test_another_file_of_the_same_name_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids depend on names as given."""
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        shutil.copy(JOYQUEUE, tmp_path / name / "trace.pcap")
        monkeypatch.chdir(tmp_path / name)
        if name == "one":
            pipeline(tmp_path / "out", Path("trace.pcap"))
    with pytest.raises(Misuse, match=r"trace\.pcap: the tables have another file of this name, .*/one/trace\.pcap"):
        pipeline(tmp_path / "out", Path("trace.pcap"))
    assert pipeline(tmp_path / "out", tmp_path / "other" / "trace.pcap").committed == 0
    assert len({row["call_id"] for row in content(tmp_path / "out")["calls"]}) == 22


def test_standard_input_is_new_each_time(tmp_path: Path) -> None:
    """With a name of its own, so that ids are distinct."""
    for path in (PULSAR, JOYQUEUE, PULSAR):
        shutil.copy2(path, tmp_path / "stdin")
        (named,) = find_inputs([tmp_path / "stdin"])
        run(Job((replace(named, name="-"),)), tmp_path / "lake")
    frames = rows(tmp_path / "lake", "frames")
    assert {(row["file"], row["protocol"]) for row in frames} == {
        ("-", "pulsar"), ("-#2", "joyqueue"), ("-#3", "pulsar")
    }  # fmt: skip
    assert len({row["frame_id"] for row in frames}) == len(frames)


RUN = """
import sys
from wirekit.pipeline import bundles
from wirekit.pipeline.inputs import Input, Job, find_inputs, renumbered
from wirekit.pipeline.serial import run
job = Job(find_inputs([sys.argv[1]]))
import wirekit.capture.files, wirekit.protocols.kafka.dialogue, wirekit.protocols.pulsar.dialogue
print("begin", flush=True)
run(job, sys.argv[2], bundle=0, form=sys.argv[3])
print("end", flush=True)
"""
KILLS = 5


def test_a_run_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    """Killed again and again, without any warning, at random moments of a run of 16 bundles."""
    (tmp_path / "captures").mkdir()
    paths = [path for path in sorted((FIXTURES / "pcap").glob("*.pcap*")) if path.stat().st_size < 30_000]
    for number in range(16):
        path = paths[number % len(paths)]
        letters = chr(97 + number // 26) + chr(97 + number % 26)  # a number would make them parts of a rotation
        shutil.copy2(path, tmp_path / "captures" / f"{letters}{path.suffix}")
    form = "delta" if find_spec("deltalake") else "parquet"
    pipeline(tmp_path / "whole", tmp_path / "captures", bundle=0, form=form)
    random_ = random.Random(9)
    counts_of_commits, killed, ended = [0], 0, False

    def commits() -> int:
        return len(list((tmp_path / "lake" / "commits").glob("*.json")))

    command = [sys.executable, "-c", RUN, str(tmp_path / "captures"), str(tmp_path / "lake"), form]
    while not ended:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "begin\n"
            if killed < KILLS:
                until = counts_of_commits[-1] + random_.randrange(4)
                while commits() < until and process.poll() is None:
                    time.sleep(0.001)
                time.sleep(random_.uniform(0, 0.1))
                process.send_signal(signal.SIGKILL)
            out, err = process.communicate()
        ended = "end" in out
        killed += not ended
        assert err == ""
        counts_of_commits.append(commits())
    assert counts_of_commits == sorted(counts_of_commits)
    assert killed >= 3
    assert len({*counts_of_commits}) > 3  # it went on, more than once
    mine, other = tables(tmp_path / "lake"), tables(tmp_path / "whole")
    assert mine == other
    assert not (tmp_path / "lake" / ".wirekit").exists()
    assert sorted(os.listdir(tmp_path / "lake" / "commits")) == sorted(os.listdir(tmp_path / "whole" / "commits"))
    for name in other:
        assert sorted(os.listdir(tmp_path / "lake" / name)) == sorted(os.listdir(tmp_path / "whole" / name))
        if form == "delta":
            assert transactions(tmp_path / "lake" / name) == transactions(tmp_path / "whole" / name)


def transactions(table: Path) -> list[list[str]]:
    """The files that each transaction of a Delta table adds."""
    logs = sorted((table / "_delta_log").glob("*.json"))
    actions = [[json.loads(line) for line in log.read_text().splitlines()] for log in logs]
    return [sorted(each["add"]["path"] for each in log if "add" in each) for log in actions]
