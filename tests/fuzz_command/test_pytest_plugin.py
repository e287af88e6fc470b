"""The pytest plugin: a run of pytest inside of this one, with tests of a codec as its users write them."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.conftest import FIXTURES

TESTS = """
import os, struct
import pytest
from wirekit.testing import never_crashes

def decode(data):
    (size,) = struct.unpack_from(">i", data)
    if size < 0 or len(data) != 4 + size:
        raise ValueError("not a token")
    return data[4:]

@pytest.mark.wirekit_cases("kafka.sasl_token", count=40)
def test_verdicts(case):
    if case.expectation.verdict == "sound":
        assert decode(case.data).hex() == case.expectation.value["token"]
    elif case.expectation.verdict == "damaged":
        with pytest.raises((ValueError, struct.error)):
            decode(case.data)

@pytest.mark.wirekit_cases("kafka.sasl_token", count=3, seed=1, kinds=["truncated"])
def test_kinds(case):
    assert case.kind in ("sound", "truncated")

@pytest.mark.exhaustive
def test_much():
    assert os.environ["WIREKIT_PROFILE"] == "exhaustive"
"""


class Outcomes:
    def __init__(self) -> None:
        self.names: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome == "skipped":
            self.names[report.nodeid.partition("::")[2]] = report.outcome


def run(folder: Path, *arguments: str, text: str = TESTS) -> tuple[int, dict[str, str]]:
    file, outcomes = folder / f"test_codec_of_{folder.name}.py", Outcomes()
    file.write_text(text)
    options = [
        "-q",
        "-p",
        "wirekit.pytest_plugin",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(folder),
        "-c",
        os.devnull,
    ]
    return int(
        pytest.main(
            [*options, "--strict-markers", "--import-mode=importlib", *arguments, str(file)], plugins=[outcomes]
        )
    ), outcomes.names


def test_cases_are_parameters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, outcomes = run(tmp_path)
    assert status == 0, capsys.readouterr().out
    verdicts = [name for name in outcomes if name.startswith("test_verdicts")]
    assert len(verdicts) == 40
    assert any(name.endswith("-sound]") for name in verdicts)
    assert any("length negative" in name for name in verdicts)
    assert len([name for name in outcomes if name.startswith("test_kinds")]) == 3
    assert outcomes["test_much"] == "skipped"


def test_the_page_shows_a_test_that_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = (FIXTURES.parent / "docs" / "fuzzing.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"^```python\n(import struct\n.*?)^```$", page, re.M | re.S)
    status, outcomes = run(tmp_path, text=text)
    assert status == 0, capsys.readouterr().out
    assert list(outcomes.values()) == ["passed"] * 100


def test_profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WIREKIT_PROFILE", raising=False)
    status, outcomes = run(tmp_path, "--wirekit-profile", "exhaustive", "-k", "much")
    assert (status, outcomes) == (0, {"test_much": "passed"})
    assert "WIREKIT_PROFILE" not in os.environ
    monkeypatch.setenv("WIREKIT_PROFILE", "exhaustive")
    assert run(tmp_path, "-k", "much")[1] == {"test_much": "passed"}
    monkeypatch.setenv("WIREKIT_PROFILE", "thorough")
    assert run(tmp_path, "-k", "much")[0] == pytest.ExitCode.USAGE_ERROR


def test_a_marker_that_means_nothing(tmp_path: Path) -> None:
    wrong = TESTS.replace("count=40", "number=40")
    assert run(tmp_path, text=wrong)[0] in (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.INTERRUPTED)
