"""Damaged inputs of the fast generator leave no engine in disagreement; ``make agreement-bulk`` tries millions."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

import wirekit
from tests.agreement import bulk
from tests.agreement.run import Finding, Task

KEYS = (
    "kafka.request",
    "kafka.response",
    "kafka.message_set",
    "kafka.fetch.response.v2",
    "pulsar.frame",
    "joyqueue.frame",
    "jmq4.batch",
    "net.pcapng.blocks.le",
)
COUNT = 60


@pytest.mark.parametrize("key", KEYS)
def test_engines_agree(key: str) -> None:
    tally = bulk.work(Task(key, 0, COUNT))
    assert [str(finding) for finding in tally.findings.values()] == []
    assert tally.counts["inputs"] == tally.counts["by columns"] == COUNT
    assert min(tally.counts[f"by {engine}"] for engine in ("reference", "trace")) > 0


def test_columns_that_miss_an_error_fail_the_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    def blind(key: str, column: pa.Array, **options: object) -> list[SimpleNamespace]:
        return [SimpleNamespace(firsts=np.arange(len(column) + 1), errors={})]

    monkeypatch.setattr(bulk, "scan_each", blind)
    assert "columns: []" in _finding("kafka.sasl_token").error


def test_generated_code_that_loses_bytes_fails_the_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wirekit, "encode", lambda *arguments, **options: b"")
    assert "AssertionError" in _finding("kafka.sasl_token").error


def _finding(key: str) -> Finding:
    (finding,) = bulk.work(Task(key, 0, 30)).findings.values()
    return finding
