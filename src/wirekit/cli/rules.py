"""``wirekit inspect --rules``: reports violations of protocol rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from wirekit.capture.files import NO_TIME_US
from wirekit.capture.links import Choice, Item, Link, Missing
from wirekit.capture.rotation import Parts
from wirekit.cli.captures import FollowedCapture, inputs_by_columns
from wirekit.cli.common import console, print_json, print_wrapped, say, time_of_day
from wirekit.cli.filters import Selection
from wirekit.conversation import Frame
from wirekit.errors import plural
from wirekit.pipeline.summary import failure
from wirekit.registry import registry
from wirekit.rules import Checker, Facts, Rule, Violation, rules_of
from wirekit.values import printable

TEXTS, SAYINGS = 18, 46
"""Columns before the texts of violations and of rules."""
NOT_CHECKED = "rules that need earlier frames are not checked after them"
MISSING = f"missing from the capture; {NOT_CHECKED}"
UNDECODED = f"could not be decoded; {NOT_CHECKED}"
WITHOUT_RULES = "without a protocol that has rules"


def list_rules(protocol: str, form: str) -> int:
    """Prints the rules of one protocol, or of all."""
    screen = console()
    for name in [registry.protocol(protocol).name] if protocol else registry.protocols():
        rules = rules_of(name)
        if rules is None and protocol:
            say(f"{name} has no rules")
        for number, rule in enumerate(_by_name(rules.rules) if rules is not None else ()):
            if form == "json":
                print_json({"protocol": name, **_rule_line(rule)})
                continue
            if not number:
                screen.print(f"{name}: {registry.protocol(name).title}", style="bold", markup=False)
            print_wrapped(screen, f"  {rule.name:34} {rule.severity:8} {rule.says}", indent=SAYINGS)
            print_wrapped(screen, f"  {'':34} {'':8} {rule.source}", "dim", indent=SAYINGS)
    return 0


def check_captures(captures: list[Parts], choice: Choice, form: str, road: str) -> int:
    """Prints the violations in captures; returns 1 if there are any, or if a capture could not be read to its end."""
    show = _Table() if form == "text" else None
    severities: Counter[str] = Counter()
    checked = status = 0
    for parts in captures:
        checks = RuleChecks()

        def show_violation(link: Link, violation: Violation, path: str = parts[0]) -> None:
            severities[violation.rule.severity] += 1
            if show is None:
                print_json(_line(path, link, violation))
            else:
                show.violation(path, link, violation)

        status |= _check(parts, choice, road, checks, show_violation)
        checked += checks.checked
        for why, size in sorted((+checks.unchecked).items()):
            say(f"{parts[0]}: {plural(size, 'byte')} {why}")
    if show is not None:
        show.end(severities, checked=bool(checked))
    return 1 if severities else status


def _check(parts: Parts, choice: Choice, road: str, checks: RuleChecks, take: Callable[[Link, Violation], None]) -> int:
    """Checks a capture, and reports its violations; returns 1 if it could not be read to its end."""
    if (files := inputs_by_columns(parts, road)) is not None:
        from wirekit.cli.filters_columns import Selected
        from wirekit.cli.rules_columns import RuleWindows

        windows = RuleWindows(files, choice, Selected(Selection()), checks, take)
        if windows.read():
            return windows.status
    followed = FollowedCapture(parts, choice)
    for link, item in followed:
        for violation in checks.take(link, item):
            take(link, violation)
    return followed.status


class RuleChecks:
    """Checks the connections of a capture; the connections of one client host share some facts.

    Attributes:
        checked: number of checked frames.
        unchecked: number of bytes that could not be checked, by reason.
    """

    def __init__(self) -> None:
        self.checked = 0
        self.unchecked: Counter[str] = Counter()
        self._checkers: dict[str, Checker | None] = {}  # of connections with frames
        self._undecoded: dict[str, int] = {}  # of connections with undecoded or missing bytes: undecoded bytes
        self._clients: dict[str, Facts] = {}

    def take(self, link: Link, item: Item | None) -> Iterable[Violation]:
        """Handles the next item of the capture; returns the violations of a connection at its end.

        The protocol of a connection may not be known before its first frame.
        """
        key = link.name
        if item is None:
            size, checker = self._undecoded.pop(key, 0), self._checkers.pop(key, None)
            self.unchecked[UNDECODED if link.protocol and rules_of(link.protocol) else WITHOUT_RULES] += size
            closed_us = None if link.closed_us in (0, NO_TIME_US) else link.closed_us
            return checker.close(closed_us) if checker is not None else ()
        if isinstance(item, Frame) and key not in self._checkers:
            self._checkers[key] = _checker(link, self._clients, incomplete=key in self._undecoded)
        checker = self._checkers.get(key)
        if isinstance(item, Missing):
            self._undecoded.setdefault(key, 0)
            self.unchecked[MISSING] += item.length
            if checker is not None:
                checker.lose(item.side)
            return ()
        if not isinstance(item, Frame):
            self._undecoded[key] = self._undecoded.get(key, 0) + len(item.data)
        elif checker is None:
            self.unchecked[WITHOUT_RULES] += len(item.data)
        else:
            self.checked += 1
            self.unchecked[UNDECODED] += len(item.data) if failure(item) is not None else 0
        if checker is not None:
            checker.take(item)
        return ()


def _checker(link: Link, clients: dict[str, Facts], *, incomplete: bool) -> Checker | None:
    rules = rules_of(link.protocol) if link.protocol else None
    if rules is None:
        return None
    host = link.client.rpartition(":")[0]
    shared = clients.setdefault(f"{link.protocol} {host}", Facts(rules.initial, started=False))
    checker = Checker(rules, started=link.known_start, shared=shared, connection=link.name)
    if incomplete:
        checker.lose()
    return checker


def _by_name(rules: tuple[Rule, ...]) -> list[Rule]:
    """The rules by name: some are declared once for each side."""
    return list({rule.name: rule for rule in rules}.values())


def _rule_line(rule: Rule) -> dict[str, Any]:
    return {"rule": rule.name, "severity": rule.severity, "says": rule.says, "source": rule.source}


def _line(path: str, link: Link, violation: Violation) -> dict[str, Any]:
    sender, receiver = link.addresses(violation.side) if violation.side else (None, None)
    return {
        "file": path,
        "connection": link.name,
        "from": sender,
        "to": receiver,
        "time": None if violation.time_us is None else violation.time_us / 1_000_000,
        "protocol": link.protocol,
        "api": violation.api,
        "frame": violation.frame,
        "offset": violation.offset,
        **_rule_line(violation.rule),
        "found": violation.found,
    }


class _Table:
    """Prints a block per connection, and in it a line per violation; below the first of each rule, its text."""

    def __init__(self) -> None:
        self._console = console()
        self._at = ""
        self._explained: set[tuple[str, str]] = set()

    def violation(self, path: str, link: Link, violation: Violation) -> None:
        """Prints a violation."""
        at = f"{path}  {link.name}  {link.protocol}"
        if at != self._at:
            self._print(at, "bold")
            self._at = at
        moment = time_of_day(violation.time_us)
        place = f"frame {violation.frame}, {violation.side} byte {violation.offset}" if violation.side else "at the end"
        api = violation.api or "?" if violation.side else ""
        style = "red" if violation.rule.severity == "error" else "yellow"
        self._print(f"  {moment:15} {place:28} {api:26} {violation.rule.severity:7} {violation.rule.name}", style)
        if violation.found:
            self._print(f"  {'':15} {violation.found}", indent=TEXTS)
        if (link.protocol, violation.rule.name) not in self._explained:
            self._explained.add((link.protocol, violation.rule.name))
            self._print(f"  {'':15} {violation.rule.says} ({violation.rule.source})", "dim", indent=TEXTS)

    def end(self, severities: Counter[str], *, checked: bool) -> None:
        """Prints the number of violations; prints that there were none only if something could be checked."""
        counts = ", ".join(
            f"{count} {severity}{'s' if count != 1 else ''}" for severity, count in sorted(severities.items())
        )
        if counts or checked:
            self._print(counts or "no rule is violated", "bold")

    def _print(self, text: str, style: str = "", *, indent: int = 4) -> None:
        print_wrapped(self._console, printable(text), style, indent=indent)
