"""Many damaged inputs fast: ``make agreement-bulk``.

``python -m tests.agreement.bulk COUNT [SEED [PROCESSES [KEY...]]]`` has the arguments of ``tests.agreement``, which
puts an input to the whole law and takes tens of milliseconds for it. Here an input takes about one: generated code
decodes it; what it does not leave to the reference engine, that engine decodes too; what decodes is encoded; columns
scan many inputs at once; the trace engine decodes one of sixteen.
"""

from __future__ import annotations

import functools
import itertools
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

import wirekit
from tests.agreement.law import forgetful
from tests.agreement.run import SECONDS, Tally, Task, main, noting
from tests.engines import error_facts, judged
from tests.strategies.laws import examples
from wirekit.compiler.columns.each import holds_messages, scan_each
from wirekit.errors import Limit, Misuse, WireError
from wirekit.strategies import bulk_mutations, contexts
from wirekit.values import to_json

PART = 128
"""Inputs that columns scan at once."""
CONTEXTS = 4
"""Contexts from which those of a task are drawn."""
TRACED = 16
"""One of so many inputs is decoded with spans as well."""
BY_COLUMNS = frozenset({"decompression", "layout"})
"""Checks that fail where columns give an error."""


def work(task: Task) -> Tally:
    """The inputs of one task; a fault ends none but its own, or the columns of its part."""
    tally = Tally()
    distinct: list[dict[str, Any]] = []
    examples(contexts(task.key), distinct.append, count=CONTEXTS, start=task.seed)
    distinct = [context for index, context in enumerate(distinct) if context not in distinct[:index]]
    shares = [task.count * (at + 1) // len(distinct) - task.count * at // len(distinct) for at in range(len(distinct))]
    for context, share in zip(distinct, shares, strict=True):
        drawn = (each.data for each in bulk_mutations(task.key, seed=task.seed, context=context))
        for part in batched(itertools.islice(drawn, share)):
            _judge(tally, task.key, context, part)
    return tally


def batched(inputs: Iterator[bytes]) -> Iterator[list[bytes]]:
    """Parts of ``PART`` inputs."""
    while part := list(itertools.islice(inputs, PART)):
        yield part


def _judge(tally: Tally, key: str, context: dict[str, Any], part: list[bytes]) -> None:
    outcomes: list[wirekit.Decoded | None] = []
    for number, data in enumerate(part):
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        outcomes.append(None)
        with noting(tally, key, context, data):
            outcomes[-1] = decoded = agree_quickly(key, data, context, traced=number % TRACED == 0)
            how = decoded.error.kind if decoded.error is not None else "clean" if decoded.clean else "with verdicts"
            engines = [decoded.engine, "trace"] if number % TRACED == 0 else [decoded.engine]
            tally.counts.update(["inputs", how, *(f"by {engine}" for engine in engines)])
    if gives_columns(key, tuple(sorted(context.items()))):
        signal.setitimer(signal.ITIMER_REAL, 10 * SECONDS)
        with noting(tally, key, context, b""):
            tally.counts["by columns"] += len(part)
            for number, text in columns_differ(key, part, context, outcomes):
                with noting(tally, key, context, part[number]):
                    raise AssertionError(text)
    signal.setitimer(signal.ITIMER_REAL, 0)


@functools.cache
def gives_columns(key: str, context: tuple[tuple[str, Any], ...]) -> bool:
    """Whether byte strings of a schema are scanned to columns in a context."""
    try:
        list(scan_each(key, pa.array([], pa.binary()), context=dict(context)))
    except Misuse:
        return False
    return True


def agree_quickly(key: str, data: bytes, context: Mapping[str, Any], *, traced: bool) -> wirekit.Decoded:
    """Decodes bytes on the engines for values, and encodes what they give.

    Raises:
        AssertionError: when engines differ, or bytes are lost.
    """
    decoded = wirekit.decode(data, key, context=context, engine="rows")
    assert decoded.error is None or isinstance(decoded.error, WireError)
    if decoded.engine != "reference":
        _same(decoded, wirekit.decode(data, key, context=context, engine="reference"))
    if traced:
        _same(decoded, wirekit.decode(data, key, context=context, engine="trace"))
    if decoded.error is None and not forgetful(key):
        assert wirekit.encode(key, decoded.value, context=context) == data[: decoded.consumed]
    return decoded


def _same(one: wirekit.Decoded, other: wirekit.Decoded) -> None:
    assert error_facts(one.error) == error_facts(other.error)
    assert (one.consumed, one.gaps, one.clean) == (other.consumed, other.gaps, other.clean)
    assert judged(one) == judged(other)
    assert one.value == other.value or to_json(one.value) == to_json(other.value)  # not a number equals nothing


def columns_differ(
    key: str, part: Sequence[bytes], context: Mapping[str, Any], outcomes: Sequence[wirekit.Decoded | None]
) -> Iterator[tuple[int, str]]:
    """The inputs that columns refuse and other engines do not, or the other way round, and what columns say.

    Bytes left over, and data that does not decompress, are errors in some layouts and none in others.
    """
    first, unpack = 0, holds_messages(key, context)
    for values in scan_each(key, pa.array(part, pa.binary()), context=context, unpack=unpack):
        for number in range(values.firsts.size - 1):
            decoded = outcomes[first + number]
            if decoded is None:
                continue
            errors = values.errors.get(number, [])
            left_over = decoded.gaps or decoded.consumed < len(part[first + number])
            doubtful = any(check.status == "bad" and check.kind in BY_COLUMNS for check in decoded.checks)
            closed = not unpack and isinstance(decoded.error, Limit)  # what a list holds compressed is left closed
            if bool(errors) != (decoded.error is not None) and not (left_over or doubtful or closed):
                yield first + number, f"columns: {errors[:1]}; other engines: {decoded.error}"
        first += values.firsts.size - 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], work))
