"""The result of an export: its text, and the parts that the format cannot express. Functions that formats share."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass, field

from wirekit.registry import registry


@dataclass(frozen=True, slots=True)
class Missing:
    """A part of a declaration that the format cannot express.

    Attributes:
        path: the path of the node, beginning with the key of its layout.
        reason: the omitted part, or its replacement.
    """

    path: str
    reason: str


@dataclass(slots=True)
class Export:
    """A text in the format of another tool, and the parts of the layouts that are missing in it.

    Attributes:
        text: the whole text, with a line break at its end.
        missing: the missing parts, which comments in most formats list as well.
    """

    text: str = ""
    missing: list[Missing] = field(default_factory=list)

    def summary(self) -> list[str]:
        """The missing parts, one line for each reason."""
        return summary(self.missing)


class Notes:
    """Collects missing parts, each once."""

    def __init__(self) -> None:
        self.missing: dict[Missing, None] = {}

    def add(self, path: str, reason: str) -> None:
        """Records a part of the node at a path that the format omits."""
        self.missing[Missing(path, reason)] = None

    def lines(self, comment: str) -> list[str]:
        """The missing parts as comments, grouped by reason."""
        if not self.missing:
            return [f"{comment} Everything that the layouts declare is expressed."]
        return [f"{comment} Not expressed:", *(f"{comment} - {line}" for line in summary(self.missing))]


def unused(name: str, used: Container[str], mark: str = "_") -> str:
    """A name that is not used: the given one, or with a mark and a number behind it.

    >>> unused("name", {"name", "name_2"})
    'name_3'
    """
    number, other = 1, name
    while other in used:
        number += 1
        other = f"{name}{mark}{number}"
    return other


def layouts(key: str) -> list[str]:
    """The key itself, or the keys of all layouts of a protocol."""
    protocol = registry.protocol(key)
    return [key] if "." in key else [protocol.key(name) for name in protocol.layouts]


SHOWN = 4


def summary(missing: Iterable[Missing]) -> list[str]:
    """One line per reason: the reason, and the first paths."""
    paths: dict[str, list[str]] = {}
    for each in missing:
        paths.setdefault(each.reason, []).append(each.path)
    lines = []
    for reason, places in paths.items():
        more = f" and {len(places) - SHOWN} more" if len(places) > SHOWN else ""
        lines.append(f"{reason}: {', '.join(places[:SHOWN])}{more}")
    return lines
