"""The result of an export: its text, and the parts of the layouts that the format cannot express."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Missing:
    """Something that a layout declares and that the form cannot say.

    Attributes:
        path: of the node, from the key of its layout on.
        reason: what is left out, or what stands there instead.
    """

    path: str
    reason: str


@dataclass(slots=True)
class Export:
    """A text in the form of another tool, and what is missing in it."""

    text: str = ""
    missing: list[Missing] = field(default_factory=list)

    def summary(self) -> list[str]:
        """The missing parts, one line for each reason."""
        return summary(self.missing)


class Notes:
    """Collects what is missing, each once."""

    def __init__(self) -> None:
        self.missing: dict[Missing, None] = {}

    def add(self, path: str, reason: str) -> None:
        """Notes what a form leaves out of the node at a path."""
        self.missing[Missing(path, reason)] = None

    def lines(self, comment: str) -> list[str]:
        """The notes as comments, those of one reason together."""
        if not self.missing:
            return [f"{comment} Everything that the layouts declare is expressed."]
        return [f"{comment} Not expressed:", *(f"{comment} - {line}" for line in summary(self.missing))]


SHOWN = 4


def summary(missing: Iterable[Missing]) -> list[str]:
    """A line for each reason: it, and the first paths."""
    paths: dict[str, list[str]] = {}
    for each in missing:
        paths.setdefault(each.reason, []).append(each.path)
    lines = []
    for reason, places in paths.items():
        more = f" and {len(places) - SHOWN} more" if len(places) > SHOWN else ""
        lines.append(f"{reason}: {', '.join(places[:SHOWN])}{more}")
    return lines
