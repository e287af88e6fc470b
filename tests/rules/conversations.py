"""Conversations for tests of rules: frames of both sides, their violations, and the same joined at every frame."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from wirekit.capture.files import open_capture, segments
from wirekit.capture.follow import follow
from wirekit.capture.links import Link
from wirekit.capture.tcp import Segment
from wirekit.conversation import Conversation, Frame
from wirekit.rules import Checker, Violation, check, rules_of

FIXTURES = Path(__file__).parents[2] / "fixtures" / "pcap"
CAPTURES = Path(__file__).parents[3] / "shared" / "captures"


class SentFrame(NamedTuple):
    """Bytes that a side sends: one frame."""

    side: str
    data: bytes
    time_us: int | None = None


def violations(protocol: str, frames: Iterable[SentFrame], *, started: bool = True) -> list[Violation]:
    """What the rules say of a conversation."""
    conversation = Conversation(protocol, started=started)
    items = [item for each in frames for item in conversation.receive(each.side, each.data, time_us=each.time_us)]
    return check(protocol, items, started=started)


def names(broken_rules: Iterable[Violation]) -> list[str]:
    """The names of the broken rules, in order."""
    return [violation.rule.name for violation in broken_rules]


def joined_late(protocol: str, frames: list[SentFrame]) -> None:
    """Asserts that a capture that begins at any frame of the conversation has no violation that the whole has not."""
    whole = {(each.rule.name, each.side, each.offset) for each in violations(protocol, frames)}
    before = {"client": 0, "server": 0, "": 0}
    for start, first in enumerate(frames[:-1], 1):
        before[first.side] += len(first.data)
        late = violations(protocol, frames[start:], started=False)
        broken_late = {(each.rule.name, each.side, each.offset + before[each.side]) for each in late}
        assert broken_late <= whole, f"joined at frame {start + 1}: {broken_late - whole}"


def excused(protocol: str, frames: list[SentFrame], name: str) -> None:
    """Asserts that the frame that breaks a rule does not when bytes are missing right before it."""
    first = next(each for each in violations(protocol, frames) if each.rule.name == name)
    rules = rules_of(protocol)
    assert rules is not None
    conversation, checker = Conversation(protocol), Checker(rules)
    for number, each in enumerate(frames, 1):
        if number == first.frame:
            checker.lose()
        for item in conversation.receive(each.side, each.data, time_us=each.time_us):
            if isinstance(item, Frame):
                checker.take(item)
    remaining = {(each.rule.name, each.frame) for each in checker.close(frames[-1].time_us)}
    assert (name, first.frame) not in remaining


@cache
def captured(path: Path) -> list[tuple[Link, list[SentFrame]]]:
    """The connections of a capture whose protocol is known, frame by frame."""
    by_link: dict[str, tuple[Link, list[SentFrame]]] = {}
    with open_capture(str(path)) as capture:
        for link, item in follow(each for each in segments(capture) if isinstance(each, Segment)):
            if isinstance(item, Frame):
                by_link.setdefault(link.name, (link, []))[1].append(SentFrame(item.side, item.data, item.time_us))
    return list(by_link.values())


@cache
def broken(path: Path) -> list[list[str]]:
    """The names of the rules that each of these connections breaks as a whole."""
    return [names(violations(link.protocol, frames, started=link.known_start)) for link, frames in captured(path)]
