"""``wirekit fuzz`` as a command: exit status, what it prints, files."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from wirekit.cli import main

KEY = "kafka.sasl_token"


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parent)


def fuzz(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["fuzz", *arguments])
    return int(ended.value.code or 0)


def test_a_sound_target_has_no_findings(capsys: pytest.CaptureFixture[str]) -> None:
    assert fuzz(KEY, "--target", "python:parsers:sound", "--count", "50", "--compare") == 0
    assert capsys.readouterr().out.splitlines()[-1] == "0 findings"


def test_findings_are_reported_and_replayed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = ["--target", "python:parsers:unchecked", "--corpus", str(tmp_path)]
    assert fuzz(KEY, *target, "--count", "60", "--output", "json", "--report", str(tmp_path / "out.xml")) == 1
    report = json.loads(capsys.readouterr().out)
    assert [each["finding"] for each in report["findings"]] == ["exception"]
    assert "<failure" in (tmp_path / "out.xml").read_text()
    assert fuzz("--replay", report["findings"][0]["file"], *target[:2]) == 1
    assert "exception: struct.error: unpack_from" in capsys.readouterr().out
    assert fuzz("--replay", report["findings"][0]["file"], "--target", "python:parsers:sound") == 0
    assert fuzz(KEY, *target, "--count", "60") == 0  # it is known by now
    assert "of earlier runs occurred again" in capsys.readouterr().err


def test_coverage_guides_a_search_for_inputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("atheris")
    target = ["--target", "python:parsers:deep", "--corpus", str(tmp_path)]
    assert fuzz(KEY, *target, "--explore", "10", "--count", "100", "--output", "json") == 1
    report = json.loads(capsys.readouterr().out)
    assert [each["finding"] for each in report["findings"]] == ["exception"]
    assert report["kinds"]["original"]


@pytest.mark.skipif(find_spec("atheris") is not None, reason="atheris is installed")
def test_exploring_without_its_extra_names_the_package(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    target = ["--target", "python:parsers:deep", "--corpus", str(tmp_path)]
    assert fuzz(KEY, *target, "--explore", "1", "--count", "1") == 2
    assert "pip install 'wirekit[fuzz-coverage]'" in capsys.readouterr().err


def test_a_second_run_without_a_corpus_reports_the_same(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "refuser.sh").write_text("exit 7")
    target = ["--target", f"command:sh {tmp_path}/refuser.sh", "--count", "1"]
    assert [fuzz(KEY, *target), fuzz(KEY, *target)] == [1, 1]
    first, second = capsys.readouterr().out.split("1 finding\n")[:2]
    assert first == second


def test_vectors(tmp_path: Path) -> None:
    assert fuzz(KEY, "--export", str(tmp_path / "vectors.jsonl"), "--count", "20") == 0
    assert len((tmp_path / "vectors.jsonl").read_text().splitlines()) == 20
    assert fuzz(KEY, "--export", str(tmp_path / "vectors.jsonl"), "--count", "20", "--kind", "truncated") == 0
    lines = (tmp_path / "vectors.jsonl").read_text().splitlines()
    assert {json.loads(line)["kind"] for line in lines} == {"sound", "truncated"}


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        (KEY,),
        ("--target", "python:parsers:sound"),
        (KEY, "--target", "parsers"),
        (KEY, "--target", "python:parsers:nothing"),
        (KEY, "--target", "tcp:192.0.2.1:9092"),
        (KEY, "--target", "tcp:localhost:9092", "--compare"),
        (KEY, "--target", "tcp:localhost:9092", "--explore", "1"),
        (KEY, "--target", "python:parsers:sound", "--kind", "bit rot"),
        (KEY, "--target", "python:parsers:sound", "--field", "topic=t"),
        (KEY, "--target", "python:parsers:sound", "--export", "vectors.jsonl"),
        (KEY, "--export", "no/such/directory/vectors.jsonl", "--replay", "parsers.py"),
        (KEY, "--target", "python:parsers:sound", "--exit-status", "one"),
        (KEY, "--target", "python:parsers:sound", "--count", "1", "--report", "no/such/directory/fuzz.xml"),
        ("kafka.nothing", "--target", "python:parsers:sound"),
        (KEY, "--target", "python:parsers:sound", "--time", "nan"),
        (KEY, "--target", "python:parsers:sound", "--count", "1", "--timeout", "nan"),
        (KEY, "--target", "python:parsers:sound", "--count", "1", "--memory", "512k"),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...]) -> None:
    assert fuzz(*arguments) == 2
