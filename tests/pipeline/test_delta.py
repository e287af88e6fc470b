"""Each bundle is one transaction of each Delta table, whatever kills a run and whoever else writes to the tables."""

from __future__ import annotations

import json
import shutil
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.test_bundles import JOYQUEUE, PULSAR, content, pipeline, rotation
from tests.pipeline.test_output import ABOUT, attempt, killed
from wirekit.errors import Misuse
from wirekit.pipeline import delta
from wirekit.pipeline.folders import folder
from wirekit.pipeline.output import Output
from wirekit.tables.columns import FROM_INPUTS, OUTPUTS

deltalake = pytest.importorskip("deltalake")


def lake_rows(output: Path, name: str, version: int | None = None) -> list[dict[str, Any]]:
    """The rows of a Delta table, in an order that depends on their content only."""
    table = deltalake.DeltaTable(str(output / name), version=version)
    return sorted(table.to_pyarrow_table().cast(OUTPUTS[name].schema).to_pylist(), key=repr)


def delta_content(output: Path) -> dict[str, list[dict[str, Any]]]:
    return {name: lake_rows(output, name) for name in FROM_INPUTS}


def test_bundles_are_transactions(tmp_path: Path) -> None:
    first = pipeline(tmp_path / "lake", PULSAR, form="delta")
    for _ in range(2):  # the second run has nothing to add
        pipeline(tmp_path / "lake", PULSAR, JOYQUEUE)
    plain = pipeline(tmp_path / "plain", PULSAR, JOYQUEUE, form="parquet")
    assert delta_content(tmp_path / "lake") == content(tmp_path / "plain")
    assert first.manifest["tables"].keys() == plain.manifest["tables"].keys()
    calls = deltalake.DeltaTable(str(tmp_path / "lake" / "calls"))
    assert (calls.version(), calls.transaction_version("wirekit")) == (1, 1)
    assert {row["protocol"] for row in lake_rows(tmp_path / "lake", "calls", version=0)} == {"pulsar"}


@pytest.mark.parametrize("name", ["a%20b", "a\\b", "a\tb"])
def test_a_path_that_deltalake_reads_as_another_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(Misuse, match=r"deltalake does not read .* in a path as it is; use another directory"):
        pipeline(tmp_path / name, PULSAR, form="delta")
    assert not list(tmp_path.glob("*/*"))
    pipeline(tmp_path / name, PULSAR, form="parquet")


@pytest.mark.parametrize("name", ["100% 主=ü", "a[1]?#&", "it's"])
def test_other_paths_have_delta_tables(name: str, tmp_path: Path) -> None:
    pipeline(tmp_path / name, PULSAR, form="delta")
    pipeline(tmp_path / name, PULSAR, JOYQUEUE)
    assert len(lake_rows(tmp_path / name, "calls")) == 17


def test_the_bundles_that_are_replaced_stay_in_earlier_versions(tmp_path: Path) -> None:
    files = rotation(tmp_path / "all", 5)
    (tmp_path / "some").mkdir()
    shutil.copy2(JOYQUEUE, tmp_path / "other.pcap")
    pipeline(tmp_path / "lake", tmp_path / "other.pcap", form="delta")
    states = []
    for path in files:
        shutil.copy2(path, tmp_path / "some")
        grown = pipeline(tmp_path / "lake", tmp_path / "other.pcap", tmp_path / "some")
        states.append(lake_rows(tmp_path / "lake", "frames"))
    assert grown.manifest["bundles"] == [0, 2]
    pipeline(tmp_path / "plain", tmp_path / "other.pcap", tmp_path / "some")
    assert delta_content(tmp_path / "lake") == content(tmp_path / "plain")
    assert states[0] != states[1]
    assert [lake_rows(tmp_path / "lake", "frames", version) for version in (1, 2)] == states


@pytest.mark.parametrize("transactions", [0, 1, 5, len(OUTPUTS)])
def test_the_next_run_finishes_transactions_of_a_killed_run(
    tmp_path: Path, transactions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Output(tmp_path) as output:
        output.is_delta = True
        output.commit([attempt(output, 0, "only", 1)], ABOUT)
    transact = delta.transact

    def dying(lake: Any, bundle: int, changes: Any) -> None:
        transact(lake, bundle, islice(changes, transactions))
        raise KeyboardInterrupt

    monkeypatch.setattr(delta, "transact", dying)
    output = Output(tmp_path)
    output.__enter__()
    with pytest.raises(KeyboardInterrupt):
        output.commit([attempt(output, 0, "only", 3, 2)], ABOUT, [0])
    killed(output)
    monkeypatch.undo()
    with Output(tmp_path) as output:
        assert (list(output.commits), output.is_delta) == ([1], True)
    gaps = deltalake.DeltaTable(str(tmp_path / "gaps"))
    assert (gaps.version(), gaps.transaction_version("wirekit")) == (1, 1)
    assert [row["position"] for row in gaps.to_pyarrow_table().to_pylist()] == [3, 2]
    assert not (tmp_path / ".wirekit").exists()


def test_the_next_run_finishes_a_failed_transaction(tmp_path: Path) -> None:
    pipeline(tmp_path / "lake", PULSAR, form="delta")
    log = tmp_path / "lake" / "messages" / "_delta_log" / f"{0:020}.json"
    whole = log.read_bytes()
    log.write_bytes(b"no JSON")
    for _ in range(2):
        with pytest.raises(OSError, match=r"run the pipeline again to finish: '.*/messages'"):
            pipeline(tmp_path / "lake", PULSAR, JOYQUEUE)
    log.write_bytes(whole)
    result = pipeline(tmp_path / "lake", PULSAR, JOYQUEUE)
    assert (result.committed, result.manifest["bundles"]) == (2, [0, 1])
    pipeline(tmp_path / "plain", PULSAR, JOYQUEUE)
    assert delta_content(tmp_path / "lake") == content(tmp_path / "plain")


def test_others_may_rewrite_files_until_they_are_to_be_replaced(tmp_path: Path) -> None:
    files = rotation(tmp_path / "all", 5)
    (tmp_path / "some").mkdir()
    shutil.copy2(files[0], tmp_path / "some")
    pipeline(tmp_path / "lake", tmp_path / "some", form="delta")
    pipeline(tmp_path / "lake", tmp_path / "some", JOYQUEUE)
    assert deltalake.DeltaTable(str(tmp_path / "lake" / "frames")).optimize.compact()["numFilesRemoved"] == 2
    pipeline(tmp_path / "lake", tmp_path / "some", JOYQUEUE)
    shutil.copy2(files[1], tmp_path / "some")
    with pytest.raises(Misuse, match=r"frames: another program has rewritten part-00000-00000\.parquet"):
        pipeline(tmp_path / "lake", tmp_path / "some", JOYQUEUE)
    pipeline(tmp_path / "lake", tmp_path / "some", JOYQUEUE, replace=True)
    pipeline(tmp_path / "plain", tmp_path / "some", JOYQUEUE)
    assert delta_content(tmp_path / "lake") == content(tmp_path / "plain")


def test_a_lake_has_one_form(tmp_path: Path) -> None:
    pipeline(tmp_path / "lake", PULSAR)
    with pytest.raises(Misuse, match="not Delta tables"):
        pipeline(tmp_path / "lake", JOYQUEUE, form="delta")
    pipeline(tmp_path / "lake", JOYQUEUE, form="delta", replace=True)
    assert {row["protocol"] for row in lake_rows(tmp_path / "lake", "calls")} == {"joyqueue"}
    with pytest.raises(Misuse, match="has Delta tables"):
        pipeline(tmp_path / "lake", PULSAR, form="parquet", replace=True)


def test_logs_bound_the_values_of_files(tmp_path: Path) -> None:
    pipeline(tmp_path, PULSAR, JOYQUEUE, form="delta")
    table = deltalake.DeltaTable(str(tmp_path / "calls"))
    rows = table.to_pyarrow_table().to_pylist()
    log = (tmp_path / "calls" / "_delta_log" / f"{0:020}.json").read_text()
    (added,) = [each["add"] for each in map(json.loads, log.splitlines()) if "add" in each]
    stats = json.loads(added["stats"])
    assert stats["numRecords"] == len(rows)
    for name in ("api", "date", "latency_us", "request_time", "topic"):
        values = [row[name] for row in rows if row[name] is not None]
        assert stats["nullCount"][name] == len(rows) - len(values)
        if name == "topic":  # the longest of Pulsar's are not repeated in logs
            assert name not in stats["minValues"]
        elif name == "request_time":  # logs have milliseconds: one before all, and one behind all
            below, above = (datetime.fromisoformat(stats[each][name]) for each in ("minValues", "maxValues"))
            assert timedelta(0) <= min(values) - below < timedelta(milliseconds=1)
            assert timedelta(0) <= above - max(values) < timedelta(milliseconds=1)
        else:
            least, greatest = (value if name != "date" else value.isoformat() for value in (min(values), max(values)))
            assert (stats["minValues"][name], stats["maxValues"][name]) == (least, greatest)
    latest = max(row["request_time"] for row in rows)
    assert table.to_pyarrow_table(filters=[("request_time", ">=", latest)]).num_rows == 1


def test_the_error_of_a_damaged_log_is_its_message_alone(tmp_path: Path) -> None:
    pipeline(tmp_path / "lake", JOYQUEUE, form="delta")
    (tmp_path / "lake" / "calls" / "_delta_log" / f"{0:020}.json").write_text("[1]")
    with pytest.raises(OSError, match="Json error") as error:
        delta.table_of(folder(tmp_path / "lake"), "calls")
    assert "<unknown>" not in str(error.value)


def test_a_lost_log_is_not_begun_again(tmp_path: Path) -> None:
    pipeline(tmp_path / "lake", PULSAR, form="delta")
    shutil.rmtree(tmp_path / "lake" / "calls" / "_delta_log")
    with pytest.raises(Misuse, match="calls has lost its transaction log; restore _delta_log, or pass --replace"):
        pipeline(tmp_path / "lake", PULSAR, JOYQUEUE)
    pipeline(tmp_path / "lake", PULSAR, JOYQUEUE, replace=True)
    pipeline(tmp_path / "plain", PULSAR, JOYQUEUE)
    assert delta_content(tmp_path / "lake") == content(tmp_path / "plain")
