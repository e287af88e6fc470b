"""Arguments that several commands share: distinguishes a SCHEMA argument from a FILE argument."""

from __future__ import annotations

import math
import os
from typing import Any

import click
from click.shell_completion import CompletionItem

from wirekit.cli.common import STANDARD_INPUT
from wirekit.errors import Misuse
from wirekit.registry import registry
from wirekit.values import byte_size, shown


def schema_and_file(command: str, schema: str | None, file: str | None) -> tuple[str | None, str | None]:
    """The arguments SCHEMA and FILE of a command; SCHEMA is optional.

    Raises:
        Misuse: for a name that is neither a schema, a protocol with a byte stream, nor a file.
    """
    if schema is None or is_schema(schema):
        return schema, file
    if file is None and (schema == STANDARD_INPUT or os.path.exists(schema)):
        return None, schema
    if file is not None and is_schema(file):
        raise Misuse(f"{schema} is not a schema; the schema comes first: wirekit {command} {file} {schema}")
    try:
        registry[schema]  # refuses the name with advice
    except Misuse as error:
        raise Misuse(f"no file {shown(schema)}, and {error}" if file is None else str(error)) from None
    return schema, file


def is_schema(name: str) -> bool:
    """Whether a name is a schema key, or that of a protocol with a byte stream."""
    if "." in name:
        return name in registry
    try:
        return bool(registry.protocol(name).client)
    except Misuse:
        return False


class Seconds(click.FloatRange):
    """A finite number in a range; ``nan`` and ``inf`` are refused."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number.

        Raises:
            click.BadParameter: for text that is not a finite number in the range.
        """
        number = super().convert(value, param, ctx)
        return number if math.isfinite(number) else self.fail(f"{value} is not a number of seconds.", param, ctx)


class Bytes(click.ParamType):
    """A number of bytes with a unit, see ``byte_size``.

    Args:
        unit: that of a number without one.
        least: the smallest valid number.
    """

    name = "size"

    def __init__(self, unit: str = "", least: int = 0) -> None:
        self._unit = unit
        self._least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number of bytes.

        Raises:
            click.BadParameter: for text that is not a number of bytes, and a smaller number.
        """
        size = byte_size(str(value), self._unit)
        if size is None or size < self._least:
            least = f" from {self._least}" if self._least else ""
            self.fail(f"{shown(value)} is not a number of bytes{least}, such as 512m or 1GiB", param, ctx)
        return size


class KeyType(click.ParamType):
    """A schema key, or the name of a protocol; a shell completes it.

    Args:
        protocols: whether only protocols are meant.
        files: whether the argument may also be a file.
    """

    name = "key"

    def __init__(self, *, protocols: bool = False, files: bool = False) -> None:
        self._protocols = protocols
        self._files = files

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The protocols, and the keys of the protocol that the text begins with."""
        names = [*registry.protocols()]
        if not self._protocols and "." in incomplete:
            names = [*registry.keys()]
        fitting = [CompletionItem(name) for name in names if name.startswith(incomplete)]
        if not self._protocols and len(fitting) == 1 and "." not in incomplete:
            keys = registry.keys()
            fitting = [CompletionItem(key) for key in keys if key.startswith(f"{fitting[0].value}.")]
        return fitting + ([CompletionItem(incomplete, type="file")] if self._files else [])
