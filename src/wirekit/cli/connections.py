"""``wirekit inspect --connections``: prints the conversation of each connection of a capture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from wirekit.capture.files import NO_TIME_US
from wirekit.capture.links import Choice, Link
from wirekit.capture.rotation import Parts
from wirekit.cli.captures import FollowedCapture
from wirekit.cli.common import console, print_json, print_wrapped, say
from wirekit.cli.complaints import Complaints
from wirekit.conversation import Frame
from wirekit.conversation.dialogue import Dialogue
from wirekit.errors import Misuse
from wirekit.tables.facts import ConnectionFacts, Facts, Refusal
from wirekit.values import json_text, printable

if TYPE_CHECKING:
    from rich.console import Console

MOST_FAILURES = 1000
"""The maximum number of different failures that are counted for a connection."""


class Failures:
    """Counts the failures on one connection."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str | None, Refusal]] = Counter()

    def take(self, facts: Facts) -> None:
        """Counts the failures in the next frame."""
        for error in facts.errors:
            key = facts.api, error
            if key in self._counts or len(self._counts) < MOST_FAILURES:
                self._counts[key] += 1

    def to_json(self) -> list[dict[str, Any]]:
        """Plain data: each with its ``count``, in the order of their first occurrence."""
        return [{"api": api, **refusal._asdict(), "count": count} for (api, refusal), count in self._counts.items()]


def show_connections(captures: list[Parts], choice: Choice, form: str) -> int:
    """Prints each connection with the summary of its conversation, and undecoded bytes, which make the status 1."""
    screen = console() if form == "text" else None
    status = 0
    for parts in captures:
        followed = FollowedCapture(parts, choice)
        failures: dict[str, Failures] = {}
        facts: dict[str, ConnectionFacts] = {}
        complaints = Complaints(_under_heading(parts[0]), choice)
        with complaints:
            for link, item in followed:
                complaints.take(link, item)
                if item is None:
                    line = _line(parts[0], link, failures.pop(link.name, Failures()))
                    if screen is None:
                        print_json(line)
                    else:
                        _print(line, screen)
                elif isinstance(item, Frame):
                    frame_facts = facts.setdefault(link.name, ConnectionFacts()).of(item)
                    failures.setdefault(link.name, Failures()).take(frame_facts)
        status |= complaints.status
        status |= followed.status
    return status


def _under_heading(name: str) -> Callable[[str], None]:
    """Prints indented lines under a name to standard error."""
    names = [name]

    def tell(text: str) -> None:
        while names:
            say(names.pop())
        say(f"  {text}")

    return tell


def _line(path: str, link: Link, failures: Failures) -> dict[str, Any]:
    return {
        "file": path,
        "connection": link.name,
        "protocol": link.protocol or None,
        "opened": _seconds(link.opened_us),
        "closed": _seconds(link.closed_us) if link.closed_us else None,
        "from_start": link.known_start,
        "failures": failures.to_json(),
        "summary": plain_summary(link.dialogue) if link.dialogue is not None else {},
    }


def plain_summary(dialogue: Dialogue) -> Mapping[str, Any]:
    """The summary of a dialogue.

    Raises:
        Misuse: the summary is not an object of plain JSON data.
    """
    summary: Any = dialogue.summary()
    try:
        json_text(summary)
    except (TypeError, ValueError, RecursionError):
        summary = None
    if not isinstance(summary, Mapping):
        raise Misuse(f"{type(dialogue).__qualname__}.summary must return an object of plain JSON data")
    return summary


def _seconds(time_us: int) -> float | None:
    return None if time_us == NO_TIME_US else time_us / 1_000_000


def _print(line: Mapping[str, Any], screen: Console) -> None:
    """Prints a connection: its name, its failures, the single facts on one line, one line per object of each list."""
    joined = "" if line["from_start"] else ", joined in the middle"
    lines = [(f"{line['file']}  {line['connection']}  {line['protocol'] or 'unknown'}{joined}", "bold")]
    lines += [(f"  failed: {_failure(each)}", "red") for each in line["failures"]]
    single = {name: value for name, value in line["summary"].items() if not _of_objects(value)}
    lines += [(f"  {_pairs(single)}", "")] if _pairs(single) else []
    for name, value in line["summary"].items():
        if _of_objects(value):
            lines += [(f"  {name.removesuffix('s')}: {_pairs(each)}", "") for each in value]
    for text, style in lines:
        print_wrapped(screen, printable(text), style, indent=4)


def _failure(each: Mapping[str, Any]) -> str:
    """``SUBSCRIBE persistent://a/b/c ConsumerBusy ×3: text``."""
    words = " ".join(filter(None, (each["api"], each["topic"], each["error"])))
    return f"{words} ×{each['count']:,}" + (f": {each['text']}" if each["text"] else "")


def _of_objects(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(each, Mapping) for each in value)


def _pairs(facts: Mapping[str, Any]) -> str:
    shown = {name: ", ".join(map(str, each)) if isinstance(each, list) else each for name, each in facts.items()}
    return "  ".join(f"{name} {each}" for name, each in shown.items() if each not in (None, ""))
