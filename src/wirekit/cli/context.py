"""The option ``--context``: facts that a layout needs and the bytes lack."""

from __future__ import annotations

import re
from typing import Any

import click

from wirekit.registry import registry

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
            raise click.BadParameter(f"{pair!r} is not NAME=VALUE, as in {example}")
        context[name] = int(value) if re.fullmatch(r"-?\d+", value) else value
    return context


def check_context(schema: str, context: dict[str, Any]) -> None:
    """Refuses context that the schema does not use, and lists the context that it uses."""
    if not context:
        return
    from wirekit.compiler.contexts import choices_of, contexts_of

    names = {schema} if "." in schema else {registry.protocol(schema).stream(side) for side in ("client", "server")}
    asked = sorted({name for key in names for name in contexts_of(registry[key].layout)})
    unknown = sorted(set(context) - set(asked))
    if unknown:
        accepted = f"it takes {', '.join(asked)}" if asked else "it takes none"
        raise click.UsageError(f"{schema} takes no context {', '.join(unknown)}; {accepted}")
    for key in names:
        for decided, cases in choices_of(registry[key].layout):
            _check_choice(key, decided, cases, context)


def _check_choice(schema: str, names: tuple[str, ...], cases: list[tuple[Any, ...]], context: dict[str, Any]) -> None:
    """Refuses values without a case of a choice, and lists the cases: ``fetch has version 0 to 3``."""
    preceding: list[str] = []
    for at, name in enumerate(names):
        if name not in context:
            continue
        values = sorted({case[at] for case in cases}, key=lambda value: (isinstance(value, str), value))
        if context[name] not in values:
            of = f"{schema} with {', '.join(preceding)}" if preceding else schema
            raise click.UsageError(f"{of} has no {name} {context[name]!r}; there {_listed(values)}")
        cases = [case for case in cases if case[at] == context[name]]
        preceding.append(f"{name} {context[name]}")


def _listed(values: list[Any]) -> str:
    """Values in words; whole numbers without a hole as their range."""
    if len(values) == 1:
        return f"is {values[0]}"
    if values == list(range(len(values))):
        return f"are {values[0]} to {values[-1]}"
    return f"are {', '.join(map(str, values))}"
