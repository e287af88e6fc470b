"""Commands that print the same lines by both roads."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from click.testing import Result


class Run(Protocol):
    """Runs a command on a capture by a road."""

    def __call__(self, path: Path, which: str, *options: str) -> Result: ...


def same_lines(run: Run, path: Path, *options: str, objects: Result | None = None) -> list[str]:
    """The lines by columns, after checking that objects print the same ones, perhaps in another order.

    ``objects``: what they printed, if it is known.
    """
    objects = objects or run(path, "objects", *options)
    columns = run(path, "columns", *options)
    lines: list[str] = columns.stdout.splitlines()
    assert sorted(lines) == sorted(objects.stdout.splitlines())
    assert sorted(columns.stderr.splitlines()) == sorted(objects.stderr.splitlines())
    assert columns.return_value == objects.return_value
    assert columns.exception is None
    return lines
