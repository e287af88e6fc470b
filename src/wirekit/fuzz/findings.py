"""Judges an outcome, and decides which findings are equal."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from wirekit.fuzz.cases import Case, without_indexes
from wirekit.fuzz.targets import ACCEPTED, NO_VALUE, REFUSED, Outcome
from wirekit.values import shown

KINDS = {
    "crash": "the process was ended by a signal",
    "sanitizer": "a sanitizer reported an error",
    "hang": "no result in time",
    "memory": "the target exceeded the memory limit",
    "exception": "an exception that --allow does not list",
    "exit-status": "an exit status that --exit-status does not list",
    "no-json": "the target accepted the bytes and printed no JSON (--compare)",
    "value": "the value differs from wirekit's (--compare)",
    "refuses": "the target refused bytes that wirekit decodes without a bad check (--compare)",
    "accepts": "the target accepted bytes that wirekit refuses (--compare)",
    "gone": "the server no longer accepts connections",
    "dropped": "the connection was closed before a valid request was answered",
    "unanswered": "a valid request was not answered in time",
    "kept": "the connection stayed open after a frame with an invalid length",
    "answer": "wirekit cannot decode the response",
    "rule": "the response breaks a rule of the protocol",
    "request": "a client's request does not decode or breaks a rule, although the server's responses were valid",
}


@dataclass
class Finding:
    """A wrong behaviour of a target.

    Attributes:
        kind: one of ``KINDS``.
        says: the behaviour, as text.
        signature: findings with the same signature are equal.
        case: the smallest case that shows the finding.
        original: the first case that showed it.
        reproduced: whether a fresh target shows it, too.
        log: the end of standard error.
        count: the number of cases that showed it.
        file: the file of the case, or "".
    """

    kind: str
    says: str
    signature: str
    case: Case
    original: Case
    reproduced: bool = True
    log: str = ""
    count: int = 1
    file: str = ""

    @property
    def name(self) -> str:
        """A file name."""
        return f"{self.kind}-{self.case.name}"

    def same(self, other: Finding | None) -> bool:
        """Whether a smaller case shows this finding: accepted bytes must be refused by wirekit for the same reason."""
        if other is None or other.signature != self.signature:
            return False
        return self.kind != "accepts" or other.case.expectation.fault == self.case.expectation.fault

    def to_json(self) -> dict[str, Any]:
        """The finding as stored in reports and in the file of its case."""
        return {
            "finding": self.kind,
            "says": self.says,
            "signature": self.signature,
            "reproduced": self.reproduced,
            "count": self.count,
            "file": self.file,
            "case": self.case.to_json(),
            "log": self.log,
        }


def judge(case: Case, outcome: Outcome, *, compare: bool) -> Finding | None:
    """The finding in an outcome, or None.

    Args:
        compare: whether the target's value is compared with wirekit's.
    """
    kind, says, place = outcome.kind, outcome.says, outcome.place
    if outcome.sent is not None:
        case = replace(case, data=outcome.sent)
    if kind in (ACCEPTED, REFUSED):
        compared = _compared(case, outcome) if compare else None
        if compared is None:
            return None
        kind, says, place = compared
    if not place:  # the place in the target is unknown: the damaged field replaces it
        place = f"{case.kind} {without_indexes(case.path)}"
    return Finding(kind, says, f"{kind}: {place}", case, case, log=outcome.log)


def _compared(case: Case, outcome: Outcome) -> tuple[str, str, str] | None:
    """(kind, difference, place) if a target and wirekit disagree; both verdicts on doubtful cases are accepted."""
    expected = case.expectation
    if expected.verdict == "sound" and outcome.kind == REFUSED:
        return "refuses", f"the target refuses a valid value{': ' if outcome.says else ''}{outcome.says}", ""
    if expected.verdict == "damaged" and outcome.kind == ACCEPTED:
        return "accepts", f"the target accepts bytes that wirekit refuses: {expected.says}", ""
    if expected.verdict != "sound" or outcome.value is NO_VALUE:
        return None
    actual = outcome.value
    if isinstance(actual, dict) and "value" in actual and "schema" in actual:
        actual = actual["value"]  # a line of `wirekit decode --output json`
    mismatch = difference(expected.value, actual)
    if mismatch is None:
        return None
    path, says = mismatch
    return "value", f"{path or 'the value'}: {says}", without_indexes(path)


def difference(expected: Any, actual: Any, path: str = "") -> tuple[str, str] | None:
    """(path, difference) of the first place where a target's value differs from wirekit's, or None.

    Fields that the target leaves out are not compared. A symbol may be its number or its name, bytes are hex or their
    text, a number may be a text of digits or a truth value.

    >>> difference({"a": 1, "b": {"value": 3, "symbol": "LZ4"}}, {"b": "LZ4"})
    >>> difference({"a": [1, 2]}, {"a": [1, 3]})
    ('a[1]', 'wirekit decodes 2, the target 3')
    """
    if isinstance(actual, dict) and isinstance(expected, dict):
        for name, item in actual.items():
            inner = f"{path}.{name}" if path else str(name)
            if name not in expected:
                if item in (None, [], ""):
                    continue
                return inner, "wirekit decodes no such field"
            mismatch = difference(expected[name], item, inner)
            if mismatch is not None:
                return mismatch
        return None
    if isinstance(actual, list) and isinstance(expected, list) and len(actual) == len(expected):
        pairs = enumerate(zip(expected, actual, strict=True))
        return next(
            (mismatch for at, (one, other) in pairs if (mismatch := difference(one, other, f"{path}[{at}]"))), None
        )
    if _equal(expected, actual):
        return None
    return path, f"wirekit decodes {shown(expected)}, the target {shown(actual)}"


def _equal(expected: Any, actual: Any) -> bool:
    if isinstance(expected, dict) and set(expected) == {"value", "symbol"}:
        return actual in (expected["value"], expected["symbol"])
    if type(expected) is int and isinstance(actual, str):
        return actual == str(expected)
    if isinstance(expected, str) and isinstance(actual, str):
        return actual == expected or actual.lower() == expected or actual.encode(errors="replace").hex() == expected
    return bool(actual == expected)
