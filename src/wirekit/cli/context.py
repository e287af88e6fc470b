"""The option ``--context``: facts that a layout needs and the bytes lack."""

from __future__ import annotations

import re
from typing import Any

import click

from wirekit.errors import Misuse

_INTEGER = re.compile(r"-?[0-9]{1,40}")  # more digits than 128 bits have; Python refuses thousands

context_option = click.option(
    "--context",
    "context_pairs",
    multiple=True,
    metavar="NAME=VALUE",
    help="Context that the bytes lack, such as --context api=fetch --context version=2 for a Kafka response.",
)


def parse_context(pairs: tuple[str, ...], example: str = "--context api=fetch") -> dict[str, Any]:
    """``("api=fetch", "version=2")`` → ``{"api": "fetch", "version": 2}``; numbers become ints."""
    context: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise click.BadParameter(
                f"{pair!r} is not NAME=VALUE, as in {example}", param_hint=example.split(maxsplit=1)[0]
            )
        context[name] = int(value) if _INTEGER.fullmatch(value) else value
    return context


def check_context(schema: str, context: dict[str, Any]) -> None:
    """Refuses context that the schema, or the streams of the protocol, do not use or have no case for."""
    if not context:
        return
    from wirekit.compiler import contexts

    try:
        contexts.check_context(schema, context)
    except Misuse as error:
        raise click.UsageError(str(error)) from None
