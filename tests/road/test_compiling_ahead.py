"""Compiling ahead: the sample is read by columns in all its parts, and what is compiled is said."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("numba")

from click.testing import CliRunner

from tests.road.law import assert_same, odd_packets
from wirekit.cli.warm import command
from wirekit.compiler import cache
from wirekit.road.warming import sample

SOURCE = """\
from numba import njit


@njit(cache=True)
def scan(number):
    return number + 1
"""


def test_the_sample_is_read_by_columns(tmp_path: Path) -> None:
    path = tmp_path / "sample.pcap"
    path.write_bytes(sample())
    assert odd_packets(path)[0] == 0
    assert_same(path)


def test_compiling_a_function_is_reported_once_a_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))
    names: list[str] = []
    for _ in range(2):
        monkeypatch.setattr(cache, "_modules", {})
        with cache.listening(names.append):
            assert cache.function(SOURCE)(1) == 2
    assert len(names) == 1
    assert "scan" in names[0]


def test_nothing_is_left_to_compile() -> None:
    assert CliRunner().invoke(command, standalone_mode=False).return_value == 0
    again = CliRunner().invoke(command, standalone_mode=False)
    assert "everything is compiled already" in again.output
