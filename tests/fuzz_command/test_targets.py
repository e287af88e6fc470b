"""``wirekit fuzz`` finds what is planted in a parser with a fixed seed, and nothing in a correct one."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from wirekit.errors import Misuse
from wirekit.fuzz import Case, Finding, Fuzzer, Options, Summary
from wirekit.fuzz.corpus import Corpus, load
from wirekit.fuzz.findings import KINDS, difference
from wirekit.fuzz.numbered_cases import NumberedCases
from wirekit.fuzz.process import Child
from wirekit.fuzz.report import write
from wirekit.fuzz.running import replayed
from wirekit.fuzz.targets import Bounds, CommandTarget, PythonTarget, parse_target

KEY = "kafka.sasl_token"
HERE = Path(__file__).parent
MIB = 1 << 20


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers import the parsers from the working directory, as a user's."""
    monkeypatch.chdir(HERE)


def run(name: str, count: int = 200, corpus: Corpus | None = None, jobs: int = 1, **bounds: Any) -> Summary:
    compare = bounds.pop("compare", False)
    options = Options(count, jobs=jobs, compare=compare, minimise=bounds.pop("minimise", True))
    limits = Bounds(**{"seconds": 20.0, "want_values": compare, **bounds})
    cases = NumberedCases(KEY, 1)
    return Fuzzer(cases, lambda: PythonTarget("parsers", name, limits), options, corpus=corpus).run()


def only(summary: Summary) -> Finding:
    assert [finding.signature for finding in summary.findings] == [summary.findings[0].signature]
    return summary.findings[0]


def test_a_correct_parser_has_no_findings() -> None:
    summary = run("sound", 600, compare=True)
    assert (summary.cases, summary.findings) == (600, [])
    assert set(summary.outcomes) == {"accepted", "refused"}


def test_an_exception_that_is_not_allowed() -> None:
    finding = only(run("unchecked", compare=True))
    assert finding.kind == "exception"
    assert finding.signature.startswith("exception: error parsers.py:")
    assert "unpack_from requires" in finding.says
    assert len(finding.case.data) == 0  # the smallest input that shows it
    assert finding.count > 1
    assert run("unchecked", allowed=frozenset({"struct.error", "ValueError"})).findings == []


def test_a_crash() -> None:
    finding = only(run("aborting"))
    assert finding.kind == "crash"
    assert finding.says == "ended by SIGABRT"
    assert "parsers.py" in finding.signature
    assert finding.case.data == b"\xff"
    assert finding.reproduced


def test_crashes_by_different_assertions_are_different(tmp_path: Path) -> None:
    script = tmp_path / "aborts.sh"
    script.write_text('echo "parser: token.c:$1: read: Assertion \\`size\' failed." >&2; kill -ABRT $$\n')
    places = [CommandTarget(f"sh {script} {line}", Bounds()).run(Case(KEY, b"", "sound")).place for line in (3, 4)]
    assert places == ["SIGABRT token.c:3 size", "SIGABRT token.c:4 size"]


def test_a_hang_ends_with_the_time_of_a_case() -> None:
    summary = run("hanging", 60, seconds=0.3, minimise=False)
    assert {finding.kind for finding in summary.findings} == {"hang"}
    assert all(finding.case.data[0] >= 0x40 for finding in summary.findings)


def test_memory_of_one_case_and_of_many() -> None:
    once = run("greedy", 60, memory=100 * MIB, minimise=False)
    assert {(finding.kind, finding.reproduced) for finding in once.findings} == {("memory", True)}
    slowly = run("leaking", 60, memory=50 * MIB)
    assert {(finding.kind, finding.reproduced) for finding in slowly.findings} == {("memory", False)}


def test_a_worker_that_leaves_and_one_that_prints_without_an_end() -> None:
    assert "exit status 7" in only(run("exiting")).says
    chatting = run("chatting", 60, seconds=0.3, minimise=False)
    assert {finding.kind for finding in chatting.findings} == {"hang"}
    assert all(len(finding.log) <= 4096 for finding in chatting.findings)


def test_values_are_compared_only_when_asked() -> None:
    assert run("misreading").findings == []
    finding = only(run("misreading", compare=True))
    assert (finding.kind, finding.signature) == ("value", "value: token")
    assert not any(finding.case.data[4:])  # what does not matter is zero


def test_accepting_bytes_that_wirekit_refuses_is_a_finding() -> None:
    assert {finding.kind for finding in run("lenient", compare=True).findings} == {"accepts"}


def test_a_smaller_input_keeps_the_reason_why_wirekit_refuses_it() -> None:
    """The text of a finding is about the stored input, and wirekit refuses it as it did the first one."""
    findings = run("lenient", compare=True).findings
    assert len({finding.case.expectation.fault for finding in findings}) > 1
    for finding in findings:
        assert finding.case.expectation.fault == finding.original.expectation.fault
        assert finding.says.endswith(finding.case.expectation.says)
        assert finding.case.offset in (None, finding.original.offset)
        assert finding.case.offset is None or len(finding.case.data) == len(finding.original.data)


def test_a_smaller_input_has_a_kind_of_its_own() -> None:
    cases = NumberedCases(KEY, 1, originals=[b"\0\0"])
    fuzzer = Fuzzer(cases, lambda: PythonTarget("parsers", "unchecked", Bounds()), Options(1))
    finding = only(fuzzer.run())
    assert (finding.original.kind, finding.original.data) == ("original", b"\0\0")
    assert (finding.case.kind, finding.case.data) == ("edited", b"")


@pytest.mark.parametrize(
    ("data", "kind", "expected"),
    [
        (b"", "sound", ("edited", "")),
        (b"\0\0\0\0", "original", ("sound", "")),
        (b"\0\0\0\0", "truncated", ("sound", "")),
        (b"\0\0\0", "truncated", ("truncated", "token")),
    ],
)
def test_the_kind_of_a_smaller_input_agrees_with_the_verdict(data: bytes, kind: str, expected: tuple[str, str]) -> None:
    smaller = Case(KEY, data, kind, "token", 0).shrunk()
    assert (smaller.kind, smaller.path) == expected
    assert smaller.offset == (None if smaller.kind == "sound" else 0)  # a sound input has no damaged byte


def test_an_output_without_json_is_one_finding() -> None:
    cases, bounds = NumberedCases(KEY, 1), Bounds(want_values=True)
    options = Options(40, compare=True, minimise=False)
    summary = Fuzzer(cases, lambda: CommandTarget("true", bounds), options).run()
    assert len(summary.kinds) > 2
    assert only(summary).signature == "no-json: the output"


def test_the_memory_of_a_finding_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Child, "resident", lambda child: 700 * MIB)
    outcome = CommandTarget("sleep 10", Bounds(memory=512 * MIB)).run(Case(KEY, b"", "sound"))
    assert (outcome.kind, outcome.says) == ("memory", "the target uses more than 512 MiB (700 MiB when measured)")


@pytest.mark.parametrize("place", ["{file}", ""])
def test_a_command(place: str) -> None:
    """The same bugs behind a command, by file and by standard input."""

    def findings(name: str, *kinds: str, count: int = 12) -> set[str]:
        words = f"{sys.executable} -SE parsers.py {name} {place}"
        bounds = Bounds(seconds=30.0, want_values=True)
        options = Options(count, compare=True, minimise=False)
        summary = Fuzzer(NumberedCases(KEY, 1, kinds=kinds), lambda: CommandTarget(words, bounds), options).run()
        return {finding.kind for finding in summary.findings}

    assert findings("sound", "truncated", "length huge") == set()
    assert "crash" in findings("aborting", "length negative")
    assert "exit-status" in findings("exiting", "truncated")
    assert findings("misreading", "length huge", count=40) == {"value"}


def test_a_report_of_a_sanitizer(tmp_path: Path) -> None:
    script = tmp_path / "asan.sh"
    script.write_text(
        "echo '==12==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x1' >&2\n"
        "echo 'SUMMARY: AddressSanitizer: heap-buffer-overflow parser.c:7:3 in parse' >&2\nexit 1\n"
    )
    target = CommandTarget(f"sh {script}", Bounds())
    outcome = target.run(Case(KEY, b"", "sound"))
    assert outcome.kind == "sanitizer"
    assert outcome.place == "AddressSanitizer: heap-buffer-overflow parser.c:7:3 in parse"


@pytest.mark.parametrize(
    "text",
    [
        b"x" * (1 << 16),
        b"a.c:1: " * (1 << 13),
        b"a.c:1: Assertion '" * (1 << 12),
        b'File "a", line ' + b"9" * 5000 + b" in f",
    ],
)
def test_any_text_on_standard_error_takes_little_time(text: bytes, tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(text)
    script = tmp_path / "aborts.sh"
    script.write_text(f"cat {tmp_path}/text >&2; kill -ABRT $$\n")
    began = time.process_time()
    assert CommandTarget(f"sh {script}", Bounds()).run(Case(KEY, b"", "sound")).place == "SIGABRT"
    assert time.process_time() - began < 1


def test_a_target_that_is_not_there() -> None:
    for target in (PythonTarget("parsers", "nothing", Bounds()), CommandTarget("./nothing {file}", Bounds())):
        with pytest.raises(Misuse, match="nothing"):
            target.run(Case(KEY, b"", "sound"))
    for text in ("parser", "python:parsers", "tcp:localhost:0", "command:"):
        with pytest.raises(Misuse, match="is not a target"):
            parse_target(text)


def test_findings_are_kept_and_replayed(tmp_path: Path) -> None:
    corpus = Corpus(tmp_path)
    finding = only(run("aborting", corpus=corpus))
    for name in (finding.file, str(Path(finding.file).with_suffix(".json"))):
        case = load(name, None, {})
        assert case == finding.case
        outcome, again = replayed(case, PythonTarget("parsers", "aborting", Bounds()), compare=False)
        assert again is not None
        assert (outcome, again.signature) == ("crash", finding.signature)
    line = json.loads(Path(finding.file).with_suffix(".json").read_text())
    assert {"verdict", "says", "source", "path", "offset"} <= set(line["case"])
    assert load(finding.file, None, {}).expectation.verdict == "damaged"


def test_a_run_goes_on_where_the_last_one_ended(tmp_path: Path) -> None:
    corpus, cases = Corpus(tmp_path), NumberedCases(KEY, 5)
    firsts: list[int] = []
    for _ in range(2):
        fuzzer = Fuzzer(
            cases, lambda: PythonTarget("parsers", "aborting", Bounds()), Options(150), corpus=corpus, resume=True
        )
        summary = fuzzer.run()
        firsts.append(summary.first)
    assert firsts == [0, 150]
    assert summary.findings == []  # the crash is known by now
    assert summary.known.total() > 0
    assert list((tmp_path / "queue").iterdir())
    assert corpus.originals() == []
    (tmp_path / "queue" / "id_000001").write_bytes(b"\0\0\0\1x")
    assert corpus.originals() == [b"\0\0\0\1x"]


def test_cases_are_the_same_for_the_same_seed_whatever_the_jobs() -> None:
    one, other = NumberedCases(KEY, 3), NumberedCases(KEY, 3)
    assert [one[at] for at in range(300)] == [other[at] for at in reversed(range(300))][::-1]
    assert one[5] != NumberedCases(KEY, 4)[5]
    assert run("aborting", 100, jobs=2).kinds == run("aborting", 100).kinds


def test_reports(tmp_path: Path) -> None:
    summary = run("aborting")
    for name in ("report.json", "report.xml"):
        write(str(tmp_path / name), summary, KEY, "python:parsers:aborting", 1)
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["cases"] == sum(report["kinds"].values()) == 200
    assert [each["finding"] for each in report["findings"]] == ["crash"]
    suite = ElementTree.parse(tmp_path / "report.xml").getroot()
    assert suite.get("failures") == "1"
    assert len(suite.findall("testcase")) == len(summary.kinds)


def test_every_kind_of_finding_has_a_description() -> None:
    sources = "".join(path.read_text() for path in (HERE.parents[1] / "src" / "wirekit" / "fuzz").glob("*.py"))
    assert all(f'"{kind}"' in sources.replace(f'    "{kind}": ', "", 1) or kind == "memory" for kind in KINDS)


@pytest.mark.parametrize(
    ("expected", "actual", "path"),
    [
        ({"a": 1}, {}, None),
        ({"a": "ff00"}, {"a": "FF00"}, None),
        ({"a": "6162"}, {"a": "ab"}, None),
        ({"a": 2**40}, {"a": str(2**40)}, None),
        ({"a": {"value": 1, "symbol": "GZIP"}}, {"a": "GZIP"}, None),
        ({"a": {"value": 1, "symbol": "GZIP"}}, {"a": 2}, "a"),
        ({"a": [{"b": 1}]}, {"a": [{"b": 2}]}, "a[0].b"),
        ({"a": [1]}, {"a": [1, 1]}, "a"),
        ({"a": 1}, {"c": 1}, "c"),
        ({"a": 1}, [], ""),
    ],
)
def test_differences(expected: Any, actual: Any, path: str | None) -> None:
    first = difference(expected, actual)
    assert (first if first is None else first[0]) == path
