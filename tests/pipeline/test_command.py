"""``wirekit pipeline``: what it prints and how it ends."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

from tests.conftest import FIXTURES
from tests.pipeline.helpers import rows
from wirekit.cli import main
from wirekit.cli.common import interruption
from wirekit.errors import Misuse
from wirekit.pipeline import parallel

if TYPE_CHECKING:
    import pyarrow as pa


BATCH = FIXTURES / "pcap" / "pulsar-batch.pcap"
KAFKA = FIXTURES / "pcap" / "kafka-0.9.0.1-2-produce.pcapng"


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """(exit status, standard output, standard error)."""
    with pytest.raises(SystemExit) as ended:
        main(["pipeline", *map(str, arguments)])
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


def test_a_clean_capture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, BATCH, "--output", tmp_path / "out", "--strict")
    assert (status, err) == (0, "")
    assert f"{BATCH}\n" in out
    assert "connections    pulsar ×1" in out
    assert "PRODUCER ×1" in out
    assert "messages       pulsar ×10" in out
    assert f"{tmp_path / 'out'}: calls 6, call_topics 5, messages 10, group_events 0, offsets 0, connections 1, " in out
    assert "frames 12, quarantine 0, gaps 0, runs 1, inputs 1" in out
    assert len(rows(tmp_path / "out", "messages")) == 10


def test_quarantine_fails_only_when_strict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    complaint = "wirekit: not decoded: 153 bytes in 2 pieces; the table quarantine has the reasons\n"
    assert run(capsys, KAFKA, "-o", tmp_path)[::2] == (0, complaint)
    status, _, err = run(capsys, KAFKA, "-o", tmp_path, "--strict", "--no-raw", "--replace")
    assert (status, err) == (1, complaint)
    assert {row["raw"] for row in rows(tmp_path, "quarantine")} == {None}


def test_a_failed_check_fails_only_when_strict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    segment = tmp_path / "t-none-0" / f"{0:020}.log"
    segment.parent.mkdir()
    data = bytearray(next((FIXTURES / "kafka" / "disk").glob("*-t-none-0.log")).read_bytes())
    data[40] ^= 1
    segment.write_bytes(data)
    complaint = "wirekit: 1 check failed: crc32 ×1\n"
    assert run(capsys, segment, "-o", tmp_path / "out")[::2] == (0, complaint)
    assert run(capsys, segment, "-o", tmp_path / "out", "--strict", "--replace")[::2] == (1, complaint)


def test_a_capture_that_cannot_be_read_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = tmp_path / "bad.pcap"
    bad.write_bytes(b"no capture")
    status, out, err = run(capsys, bad, BATCH, "-o", tmp_path / "out")
    assert status == 1
    assert err.startswith(f"wirekit: {bad}: ")
    assert "at byte 0" in err
    assert "messages       pulsar ×10" in out


def test_an_empty_file_has_nothing_in_quarantine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty.pcap").touch()
    status, _, err = run(capsys, tmp_path / "empty.pcap", "-o", tmp_path / "lake")
    assert (status, err.count("the file is empty"), "quarantine" in err) == (1, 1, False)


def test_a_protocol_can_be_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, BATCH, "-o", tmp_path, "--protocol", "joyqueue")
    assert "joyqueue ×1" in out
    status, _, err = run(capsys, BATCH, "-o", tmp_path, "--port", "6650=jmq4")
    assert (status, "with other options (--protocol joyqueue, without --port)" in err) == (2, True)
    _, out, _ = run(capsys, BATCH, "-o", tmp_path, "--port", "6650=jmq4", "--replace")
    assert "jmq4 ×1" in out


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (["nowhere.pcap", "-o", "out"], 1, "wirekit: nowhere.pcap: No such file or directory"),
        ([BATCH, "-o", "out", "--port", "kafka"], 2, "not PORT=PROTOCOL"),
        ([BATCH, "-o", "out", "--protocol", "smtp"], 2, "'smtp' is not a protocol of connections"),
        (
            [BATCH, "-o", "out", "--port", "6650=net"],
            2,
            "'net' is not a protocol of connections; choose from kafka, pulsar,",
        ),
        ([BATCH, "-o", "out", "--port", "6650=jmq4", "--port", "6650=kafka"], 2, "given twice, for jmq4 and for kafka"),
        ([BATCH, "-o", "out", "--protocol", "jmq4", "--port", "6650=jmq4"], 2, "leave out --protocol or --port"),
        ([BATCH, "-o", "out", "--engine", "serial", "--master", "local[2]"], 2, "--master needs --engine spark"),
        ([BATCH, "-o", "out", "--settle", "5"], 2, "--settle needs --watch"),
        ([BATCH, "-o", "out", "--rotating", "--separate"], 2, "leave out one"),
        ([BATCH, "-o", "out", "--rotating", "--idle", "inf"], 2, "inf is not a number of seconds"),
        ([BATCH, "-o", "out", "--watch", "--settle", "nan"], 2, "nan is not a number of seconds"),
        (
            [BATCH, "-o", "out", "--bundle", "1.5 miles"],
            2,
            "'1.5 miles' is not a number of bytes, such as 512m or 1GiB",
        ),
        ([BATCH], 2, "Missing option '--output'"),
        ([BATCH, "-o", FIXTURES], 2, "which wirekit did not write"),
    ],
)
def test_wrong_arguments_are_reported_with_their_exit_status(
    arguments: list[object],
    status: int,
    text: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    ended, _, err = run(capsys, *arguments)
    assert ended == status
    assert text in err
    assert not os.path.exists("out")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
@pytest.mark.parametrize("command", [["pipeline", "-o", "out"], ["sql", "FROM frames"]])
def test_a_named_pipe_is_refused_with_the_way_to_pass_it(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "pipe")  # opening it would wait for a writer
    with pytest.raises(SystemExit) as ended:
        main([*command, str(tmp_path / "pipe")])
    assert ended.value.code == 2
    assert f"save it to a file first, or pass it as standard input: - < {tmp_path}/pipe" in capsys.readouterr().err


def test_standard_input(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "wirekit", "pipeline", "-", "--replace", "--output", str(tmp_path)]
    with BATCH.open("rb") as capture:
        ended = subprocess.run(command, stdin=capture, capture_output=True, text=True, check=False)
    piped = subprocess.run(command, input=BATCH.read_bytes(), capture_output=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, piped.stdout.decode(), "")
    (input_row,) = json.loads((tmp_path / "manifest.json").read_text())["inputs"]
    assert (input_row["file"], input_row["size"]) == ("-", BATCH.stat().st_size)


def test_the_report_on_many_files_fits_a_screen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """2,000 captures: half are empty, and each tenth is none. The table ``inputs`` has them all."""
    (tmp_path / "captures").mkdir()
    header = BATCH.read_bytes()[:24]
    for number in range(2000):
        letters = "".join(chr(97 + number // 26**place % 26) for place in range(3))
        content = f"not a capture, {number}".encode() if number % 10 == 0 else header + b"x" * (number % 2)
        (tmp_path / "captures" / f"{letters}.pcap").write_bytes(content)
    shutil.copy(KAFKA, tmp_path / "captures")
    status, out, err = run(capsys, tmp_path / "captures", "-o", tmp_path / "out")
    assert status == 1
    assert out.startswith("all 2,001 files\n")
    assert "not all read   1,200 files" in out
    assert "and 1,190 more files not read to their end; the table inputs lists all\n" in err
    assert out.count("\n") + err.count("\n") <= 40
    inputs = rows(tmp_path / "out", "inputs")
    assert (len(inputs), sum(row["unreadable"] is not None for row in inputs)) == (2001, 200)
    assert sum(row["damaged"] is not None for row in inputs) == 1000
    status, out, err = run(capsys, tmp_path / "captures", "-o", tmp_path / "out")
    assert (status, err) == (0, "")
    assert out.startswith(f"skipped 2,001 files that {tmp_path / 'out'} already contains\n")


def test_the_report_on_ten_files_fits_a_screen(
    fixtures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    odd = fixtures / "pcap" / "jmq4-odd.pcap"
    files = [*sorted(each for each in (fixtures / "pcap").glob("*.pcap*") if each != odd)[:8], odd]
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(b"no capture" * 9)
    _, out, _ = run(capsys, *files, cut, "-o", tmp_path / "tables")
    lines = out.splitlines()
    assert len(lines) <= 30
    assert lines[8:11] == [
        f"{odd}: 1 connection, 8 requests, 4 messages; failed checks",
        f"{cut}: not read",
        "all 10 files",
    ]


def test_without_a_terminal_lines_tell_the_progress(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    captures = [FIXTURES / "pcap" / f"jmq4-{name}.pcap" for name in ("consume", "produce")]
    assert run(capsys, *captures, "--output", tmp_path / "short")[2] == ""
    monkeypatch.setattr("wirekit.cli.pipeline.LINE_SECONDS", 0.0)
    lines = run(capsys, *captures, "--output", tmp_path / "lines", "--bundle", 1)[2].splitlines()
    assert len(lines) >= len(captures)
    form = re.compile(r"wirekit: bundle \d of 2, .+: .+B of [\d.]+ kB after 0 min(, 0 min left)?")
    assert all(map(form.fullmatch, lines))


@pytest.mark.parametrize(
    ("module", "engine", "text"),
    [
        ("pyarrow", "serial", "the pipeline needs pyarrow: pip install 'wirekit[columns]'"),
        ("pyspark", "spark", "the pipeline on Spark needs pyspark: pip install 'wirekit[spark]'"),
        ("pandas", "spark", "the pipeline on Spark needs pandas: pip install 'wirekit[spark]'"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(module: str, engine: str, text: str, tmp_path: Path) -> None:
    arguments = ["pipeline", str(BATCH), "-o", str(tmp_path / "out"), "--engine", engine]
    code = f"import sys; sys.modules[{module!r}] = None; from wirekit.cli import main; main({arguments!r})"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == f"wirekit: {text}\n"


@pytest.mark.spark
def test_on_spark(tmp_path: Path, capsys: pytest.CaptureFixture[str], spark: object) -> None:
    status, out, err = run(capsys, BATCH, "-o", tmp_path, "--engine", "spark")
    assert (status, err) == (0, "")
    assert "messages       pulsar ×10" in out
    assert len(rows(tmp_path, "messages")) == 10


def test_the_driver_is_compiled_briefly_unless_asked_otherwise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Java takes the last of options that contradict each other."""
    pytest.importorskip("pyspark")
    from wirekit.spark import session

    options: list[str] = []

    def refuse(master: str | None, name: str, conf: dict[str, str]) -> None:
        options.append(conf[session.JAVA_OPTIONS])
        raise Misuse("no session")

    monkeypatch.setattr(session, "session", refuse)
    mine = ("--conf", f"{session.JAVA_OPTIONS}=-XX:TieredStopAtLevel=4")
    for more in ((), mine, (*mine, "--debug")):
        assert run(capsys, BATCH, "-o", tmp_path / "out", "--engine", "spark", *more)[0] == 2
    assert options == [
        session.BRIEF,
        f"{session.BRIEF} -XX:TieredStopAtLevel=4",
        f"{session.BRIEF} -XX:TieredStopAtLevel=4 {session.LOUD}",
    ]


@pytest.mark.spark
def test_a_job_that_no_executor_takes_says_so_once_and_is_interrupted_in_one_line(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    # Executors want two cores, and the workers have one.
    conf = ("spark.executor.cores=2", "spark.starvation.timeout=1s")
    command = [sys.executable, "-m", "wirekit", "pipeline", str(BATCH), "--output", str(tmp_path / "out")]
    command += ["--master", "local-cluster[1,1,1024]", *(f"--conf={each}" for each in conf)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        warning = process.stderr.readline()
        time.sleep(3)  # Spark repeats its warning each second here
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert "Initial job has not accepted any resources" in warning
    assert (process.returncode, out, err) == (130, "", "interrupted\n")
    assert not (tmp_path / "out").exists()


@pytest.mark.spark
def test_an_error_of_spark_after_an_interruption_does_not_hide_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], spark: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    from py4j.protocol import Py4JNetworkError

    from wirekit.spark import pipeline

    def interrupted(*_: object, **__: object) -> NoReturn:
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            raise Py4JNetworkError("Answer from Java side is empty")

    monkeypatch.setattr(pipeline, "run", interrupted)
    assert run(capsys, BATCH, "-o", tmp_path / "out", "--engine", "spark") == (130, "", "interrupted\n")
    handler = signal.getsignal(signal.SIGINT)
    with interruption():
        assert signal.getsignal(signal.SIGINT) is not handler
    assert signal.getsignal(signal.SIGINT) is handler


@pytest.mark.spark
def test_a_failure_on_spark_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], spark: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> Iterator[pa.RecordBatch]:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(parallel, "read_whole", broken)
    status, out, err = run(capsys, BATCH, "-o", tmp_path / "out", "--engine", "spark")
    assert (status, out, err) == (1, "", "wirekit: Spark failed: OSError: [Errno 28] No space left on device\n")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("road", ["columns", "objects"])
def test_tables_without_spark_do_not_import_pandas(road: str, tmp_path: Path) -> None:
    arguments = ["pipeline", str(BATCH), "--output", str(tmp_path / "out"), "--road", road]
    code = (
        "import atexit, sys; atexit.register(lambda: print('pandas' in sys.modules)); "
        f"from wirekit.cli import main; main({arguments!r})"
    )
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (completed.returncode, completed.stdout.splitlines()[-1]) == (0, "False"), completed.stderr


def test_packets_by_columns_do_not_import_pandas() -> None:
    code = (
        "import atexit, sys; atexit.register(lambda: print('pandas' in sys.modules)); "
        "from wirekit.cli import captures, main; captures.by_columns = lambda *_, **__: True; "
        f"main(['frames', {str(BATCH)!r}])"
    )
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (completed.returncode, completed.stdout.splitlines()[-1]) == (0, "False"), completed.stderr
