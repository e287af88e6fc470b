"""``wirekit inspect --connections``: what each connection of a capture carries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wirekit.capture.follow import Choice, Link
from wirekit.capture.rotation import Parts
from wirekit.cli.captures import FollowedCapture
from wirekit.cli.common import console, print_json
from wirekit.cli.frames import report
from wirekit.values import printable


def show_connections(captures: list[Parts], choice: Choice, form: str) -> int:
    """Prints each connection with the summary of its conversation; what did not decode is said, and makes it 1."""
    screen = console() if form == "text" else None
    status = 0
    for parts in captures:
        path = parts[0]
        followed = FollowedCapture(parts, choice)
        for link, item in followed:
            if item is not None:
                status |= report(path, link, item)
                continue
            line = _line(path, link)
            if screen is None:
                print_json(line)
            else:
                for text in _text(line):
                    screen.print(printable(text), markup=False, soft_wrap=True)
        status |= followed.status
    return status


def _line(path: str, link: Link) -> dict[str, Any]:
    return {
        "file": path,
        "connection": link.name,
        "protocol": link.protocol or None,
        "opened": link.opened_us / 1_000_000,
        "closed": link.closed_us / 1_000_000 if link.closed_us else None,
        "from_start": link.known_start,
        "summary": link.dialogue.summary() if link.dialogue is not None else {},
    }


def _text(line: Mapping[str, Any]) -> list[str]:
    """The lines of a connection: its name, single facts on one line, a line an object of each list."""
    joined = "" if line["from_start"] else ", joined in the middle"
    lines = [f"{line['file']}  {line['connection']}  {line['protocol'] or 'unknown'}{joined}"]
    single = {name: what for name, what in line["summary"].items() if not _of_objects(what)}
    lines += [f"  {_pairs(single)}"] if _pairs(single) else []
    for name, what in line["summary"].items():
        if _of_objects(what):
            lines += [f"  {name.removesuffix('s')}: {_pairs(each)}" for each in what]
    return lines


def _of_objects(what: Any) -> bool:
    return isinstance(what, list) and any(isinstance(each, Mapping) for each in what)


def _pairs(what: Mapping[str, Any]) -> str:
    shown = {name: ", ".join(map(str, each)) if isinstance(each, list) else each for name, each in what.items()}
    return "  ".join(f"{name} {each}" for name, each in shown.items() if each not in (None, ""))
