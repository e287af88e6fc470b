"""Assertions for testing your own codec: it round-trips, never crashes, and agrees with wirekit (docs/fuzzing.md).

They work with any test runner and run in the process of the test; use ``wirekit fuzz`` for targets that may crash it.
Inputs are the same in every run. The environment variable ``WIREKIT_PROFILE`` sets their number: ``quick`` (the
default) or ``exhaustive``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from wirekit.encoding import built_key
from wirekit.errors import Misuse, plural
from wirekit.fuzz.cases import Case, Expectation
from wirekit.fuzz.findings import Finding, judge
from wirekit.fuzz.minimising import minimised
from wirekit.fuzz.numbered_cases import NumberedCases
from wirekit.fuzz.targets import ACCEPTED, REFUSED, Outcome
from wirekit.fuzz.worker import plain
from wirekit.strategies.bulk import bulk_frames
from wirekit.values import json_text

PROFILES = {"quick": 300, "exhaustive": 100_000}
"""Number of inputs by profile."""
PROFILE = "WIREKIT_PROFILE"
VERDICTS = ("sound", "damaged", "doubtful")
REFUSALS = (ValueError, EOFError)
"""Exceptions by which a decoder refuses an input, by default."""

Decode = Callable[[bytes], Any]
Exceptions = tuple[type[BaseException], ...]


def roundtrip(
    key: str,
    decode: Decode,
    encode: Callable[[Any], bytes],
    *,
    count: int | None = None,
    seed: int = 0,
    context: Mapping[str, Any] | None = None,
) -> None:
    """Asserts that a codec decodes valid frames of a layout and encodes the values to the same bytes.

    Args:
        key: a schema key, or a protocol's name for a frame of its client stream.
        decode, encode: the codec.
        count: number of inputs; by default the profile's.
        seed: selects the inputs.
        context: as for ``wirekit.decode``.

    Raises:
        AssertionError: with the bytes that were not reproduced, or that the codec refused.

    >>> import wirekit
    >>> key = "kafka.heartbeat.request.v0"
    >>> roundtrip(key, lambda data: wirekit.decode(data, key).value, lambda value: wirekit.encode(key, value), count=20)
    """
    full = built_key(key)
    for data in islice(bulk_frames(full, seed=seed, context=context, clean=True), _count(count)):
        try:
            written: Any = encode(decode(data))
        except Exception as error:
            raise AssertionError(f"{full}: {data.hex()} is valid, but: {_name(error)}: {error}") from error
        if written != data:
            shown = bytes(written).hex() if isinstance(written, (bytes, bytearray, memoryview)) else repr(written)
            raise AssertionError(f"{full}: {data.hex()} was rebuilt as {shown}")


def never_crashes(
    key: str,
    decode: Decode,
    *,
    allowed: Exceptions = REFUSALS,
    count: int | None = None,
    seed: int = 0,
    context: Mapping[str, Any] | None = None,
    kinds: Sequence[str] | None = None,
) -> None:
    """Asserts that for valid and damaged bytes, a decoder returns a value or raises one of the allowed exceptions.

    Args:
        key, count, seed, context: as for ``roundtrip``.
        decode: the decoder.
        allowed: the exceptions that it raises to refuse bytes; they replace ``ValueError`` and ``EOFError``.
        kinds: kinds of damage (``wirekit.strategies.KINDS``); by default all.

    Raises:
        AssertionError: with the kind of damage, its field, and the smallest bytes that cause the failure.

    >>> never_crashes("kafka.sasl_token", lambda data: data[3])
    Traceback (most recent call last):
    ...
    AssertionError: kafka.sasl_token: exception: IndexError: index out of range
    damage: truncated, at byte 0; wirekit: kafka.sasl_token: size: needs 4 bytes, 0 available, at byte 0 (0x0)
    input, 0 bytes
    """
    _run(NumberedCases(key, seed, context=context, kinds=kinds), decode, allowed, _count(count), compare=False)


def agrees_with(
    key: str,
    decode: Decode,
    *,
    allowed: Exceptions = REFUSALS,
    count: int | None = None,
    seed: int = 0,
    context: Mapping[str, Any] | None = None,
    kinds: Sequence[str] | None = None,
) -> None:
    """Asserts that a decoder accepts and refuses the same bytes as wirekit, and reads the same values.

    Fields that the decoder omits are not compared. Bytes with a failed check may be accepted or refused.

    Args:
        key, decode, allowed, count, seed, context, kinds: as for ``never_crashes``. A value is a mapping with the
            names of the layout, or an object with such attributes; bytes may be hex, symbols may be names or numbers.

    Raises:
        AssertionError: as ``never_crashes``, and for values that differ.

    >>> import wirekit
    >>> def decode(data):
    ...     return {"token": wirekit.decode(data, "kafka.sasl_token", strict=True).value.token}
    >>> agrees_with("kafka.sasl_token", decode, count=20)
    """
    _run(NumberedCases(key, seed, context=context, kinds=kinds), decode, allowed, _count(count), compare=True)


def export_vectors(
    key: str,
    path: str | os.PathLike[str],
    *,
    count: int = 1000,
    seed: int = 0,
    context: Mapping[str, Any] | None = None,
    kinds: Sequence[str] | None = None,
) -> None:
    """Writes golden vectors for any language: lines of JSON with bytes, verdict and value (docs/fuzzing.md).

    Args:
        key, seed, context, kinds: as for ``never_crashes``.
        path: the file, which is replaced.
        count: number of vectors.
    """
    cases = NumberedCases(key, seed, context=context, kinds=kinds)
    with open(path, "w", encoding="utf-8") as file:
        for index in range(count):
            case = cases[index]
            line = {**case.to_json(), "hex": case.data.hex(), "value": case.expectation.value}
            del line["length"]
            file.write(json_text(line) + "\n")


def check_vectors(path: str | os.PathLike[str], decode: Decode, *, allowed: Exceptions = REFUSALS) -> int:
    """Asserts that a decoder agrees with golden vectors, and returns their number.

    The vectors decide, not the behaviour of this version of wirekit.

    Args:
        path: a file that ``export_vectors`` wrote.
        decode, allowed: as for ``agrees_with``.

    Raises:
        AssertionError: as ``agrees_with``, with the bytes of the vector.
        Misuse: a line that is not a vector.

    >>> import tempfile, wirekit
    >>> def decode(data):
    ...     return wirekit.decode(data, "kafka.sasl_token", strict=True).value
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     export_vectors("kafka.sasl_token", f"{folder}/tokens.jsonl", count=20)
    ...     check_vectors(f"{folder}/tokens.jsonl", decode)
    20
    """
    number = 0
    for number, case in enumerate(_vectors(Path(path)), 1):
        finding = judge(case, _outcome(case.data, decode, allowed, True)[0], compare=True)
        if finding is not None:
            raise AssertionError(f"line {number}: {_text(finding)}")
    return number


def _vectors(path: Path) -> Iterator[Case]:
    with path.open("rb") as file:
        for number, text in enumerate(file, 1):
            try:
                line = json.loads(text.decode())
                case = Case.from_json(line, bytes.fromhex(line["hex"]))
                expected = Expectation(line["verdict"], line.get("says", ""), line.get("source", ""), line.get("value"))
                if expected.verdict not in VERDICTS:
                    raise ValueError(f"its verdict is {expected.verdict!r}")
            except (ValueError, TypeError, KeyError, RecursionError) as error:
                raise Misuse(f"{path}: line {number} is not a vector: {error}") from None
            case.__dict__["expectation"] = expected  # replaces the property that computes it
            yield case


def _count(count: int | None) -> int:
    profile = os.environ.get(PROFILE, "quick")
    if profile not in PROFILES:
        raise Misuse(f"{PROFILE} must be {' or '.join(PROFILES)}, not {profile!r}")
    if count is not None and count < 1:
        raise Misuse(f"count must be at least 1, not {count}")
    return PROFILES[profile] if count is None else count


def _run(cases: NumberedCases, decode: Decode, allowed: Exceptions, count: int, *, compare: bool) -> None:
    for index in range(count):
        case = cases[index]
        outcome, error = _outcome(case.data, decode, allowed, compare)
        finding = judge(case, outcome, compare=compare)
        if finding is not None:
            smaller = _smaller(finding, decode, allowed, compare)
            raise AssertionError(_text(smaller, is_minimised=smaller.case.data != case.data)) from error


def _smaller(finding: Finding, decode: Decode, allowed: Exceptions, compare: bool) -> Finding:
    smallest = finding

    def shows(data: bytes) -> bool:
        nonlocal smallest
        again = judge(finding.case.with_data(data), _outcome(data, decode, allowed, compare)[0], compare=compare)
        if again is None or not finding.same(again):
            return False
        smallest = again
        return True

    minimised(finding.case.data, shows)
    return smallest


def _outcome(
    data: bytes, decode: Decode, allowed: Exceptions, want_value: bool
) -> tuple[Outcome, BaseException | None]:
    try:
        value = decode(data)
    except allowed as error:
        return Outcome(REFUSED, f"{type(error).__name__}: {error}"), None
    except Exception as error:  # noqa: BLE001  # whatever a decoder raises is the result
        return Outcome("exception", f"{_name(error)}: {error}", type(error).__name__), error
    if not want_value:
        return Outcome(ACCEPTED), None
    try:
        return Outcome(ACCEPTED, value=json.loads(json.dumps(value, default=plain))), None
    except (TypeError, ValueError, RecursionError) as error:
        return Outcome("no-json", f"its value has no JSON form: {error}"), None


def _name(error: BaseException) -> str:
    """The type of an exception, with its module unless it is built in."""
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _text(finding: Finding, *, is_minimised: bool = False) -> str:
    case = finding.case
    where = f"{case.kind}{f' in {case.path}' if case.path else ''}{', then minimised' if is_minimised else ''}"
    at = f", at byte {case.offset}" if case.offset is not None else ""
    return (
        f"{case.key}: {finding.kind}: {finding.says}\n"
        f"damage: {where}{at}; wirekit: {case.expectation.says or case.expectation.verdict}\n"
        f"input, {plural(len(case.data), 'byte')}{': ' * bool(case.data)}{case.data.hex()}"
    )
