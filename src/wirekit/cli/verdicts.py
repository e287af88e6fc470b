"""Reports failed checks, errors and undecoded bytes of decoded frames on standard error."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from wirekit.cli.common import say
from wirekit.decoding import clean_contexts, decode
from wirekit.engine import Decoded
from wirekit.errors import plural
from wirekit.registry import registry, variants
from wirekit.values import Check

MOST_OTHERS = 3
"""The maximum number of other fitting contexts that are named."""

Show = Callable[[Decoded], None]
"""Prints a frame."""


class WithBytes:
    """Prints frames with the bytes of their fields.

    A frame whose value and bytes together exceed the memory limit is printed up to there; ``status`` is 1 then.
    """

    def __init__(self, show: Show) -> None:
        self._show = show
        self.status = 0

    def __call__(self, decoded: Decoded) -> None:
        traced = decoded.traced()
        self._show(traced)
        if traced is not decoded:
            say(f"{traced.error}")
            self.status = 1


def show_all(values: Iterator[Decoded], show: Show, strict: bool) -> int:
    status = 0
    for decoded in values:
        registry.protocol(decoded.schema).examine(decoded)
        show(decoded)
        status |= complain(decoded, strict)
    return status


def complain(decoded: Decoded, strict: bool) -> int:
    """Reports errors, gaps and failed checks on standard error; returns 1 if any bytes were not decoded, else 0."""
    status = 0
    if decoded.error is not None:
        say(f"{decoded.error}")
        status = 1
    if decoded.error is not None or decoded.gaps:
        from wirekit.conversation import reading

        alternative = reading(decoded)
        if alternative:
            say(f"{decoded.schema} decodes cleanly with {pairs(alternative)}")
        for key in variants(decoded.schema):
            if decode(decoded.data, key, context=decoded.context).clean:
                say(f"the bytes decode cleanly as {key}")
    if decoded.gaps and not registry.protocol(decoded.schema).readings:
        from wirekit.compiler.contexts import names_of

        missing = [name for name in names_of(decoded.schema) if name not in decoded.context]
        fitting = clean_contexts(decoded.data[: decoded.consumed], decoded.schema, decoded.context) if missing else []
        if fitting:
            say(f"{decoded.schema} decodes cleanly with {' or '.join(map(pairs, fitting[-1 : -MOST_OTHERS - 2 : -1]))}")
        elif missing:
            say(f"pass {' '.join(f'--context {name}=…' for name in missing)} to decode more of {decoded.schema}")
    for gap in decoded.gaps:
        where = f"byte {gap.offset}" if not gap.source else f"byte {gap.offset} of decompressed data #{gap.source}"
        say(f"{decoded.schema}: {gap.path}: {plural(gap.length, 'unexplained byte')} at {where}")
        status = 1
    for check in decoded.checks:
        if check.status == "bad":
            numbers = check.note if check.computed is None else _numbers(decoded.schema, check)
            where = f"byte {check.offset}" if not check.source else f"byte {check.offset} of data #{check.source}"
            say(f"{decoded.schema}: {check.path}: {check.kind} check failed at {where}: {numbers}")
            status |= strict
    return status


def pairs(context: Mapping[str, Any]) -> str:
    return " ".join(f"--context {name}={value}" for name, value in context.items())


def _numbers(schema: str, check: Check) -> str:
    """The stored and the computed number, in hexadecimal if the field is displayed so."""
    from wirekit.display.fields import number_text
    from wirekit.wire.display_hints import DisplayHints

    digits = DisplayHints(registry[schema].node).at(check.path).digits
    return f"stored {number_text(check.stored, digits)}, computed {number_text(check.computed, digits)}"
