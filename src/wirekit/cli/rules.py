"""``wirekit inspect --rules``: reports violations of protocol rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from wirekit.capture.links import Choice, Link
from wirekit.capture.rotation import Parts
from wirekit.cli.captures import FollowedCapture, inputs_by_columns
from wirekit.cli.common import console, print_json, print_wrapped, say, time_of_day
from wirekit.cli.filters import Selection
from wirekit.cli.rule_checks import RuleChecks
from wirekit.errors import plural
from wirekit.registry import registry
from wirekit.rules import Rule, Violation, rules_of
from wirekit.values import printable

TEXTS, SAYINGS = 18, 46
"""Columns before the texts of violations and of rules."""


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
