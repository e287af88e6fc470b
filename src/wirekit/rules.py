"""Rules of a conversation: the requirements of a specification on the order of frames, checked frame by frame.

A protocol declares its rules in ``protocols/<protocol>/rules.py`` as data, a ``RuleSet``: ``events`` names the events
of a frame, ``Step`` declares how an event changes the facts, and ``Rule`` declares when an event is a violation.
Nothing here knows a protocol.

A fact is the state of a key in a table (producer 3 is "open"). A key without a state is ABSENT if the connection was
followed from its first byte, and UNKNOWN otherwise. UNKNOWN is never a violation, and stays unknown in arithmetic.
Missing and undecodable bytes make all facts unknown again.

Missing bytes may be noticed late, because the bytes after a gap are held back for a while. So a violation counts only
when the connection has ended. It is revoked if a frame that was captured before it arrives later, or if bytes that may
have come before it turn out to be missing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import takewhile
from typing import Any

from wirekit.conversation import SIDES, Frame, Quarantined
from wirekit.errors import Misuse
from wirekit.registry import load_object, registry

MOST_FACTS = 100_000
"""The maximum number of states in a table; after the oldest are forgotten, a key without a state is UNKNOWN."""

MOST_VIOLATIONS = 10_000
"""The maximum number of violations that are held until the connection ends."""


class _Unknown:
    """The unknown state; arithmetic with it gives the unknown state."""

    def __add__(self, other: object) -> _Unknown:
        return self

    __radd__ = __sub__ = __rsub__ = __add__

    def __repr__(self) -> str:
        return "UNKNOWN"


class _Absent:
    """The state of a key that was never set."""

    def __repr__(self) -> str:
        return "absent"


UNKNOWN = _Unknown()
ABSENT = _Absent()
OLDEST = object()
"""As the key of ``Rule.other``: the key that has been in the table for longest, instead of a state."""

LOST = "lost"
"""Name of the event that makes everything unknown."""

TIME = "time"
"""Name of the event that precedes every frame and ends the connection; it has the field ``time``."""


@dataclass(frozen=True, slots=True)
class Event:
    """An event in a frame.

    Attributes:
        name: the name that rules and steps refer to.
        fields: fields for ``this`` expressions; the checker adds ``time`` (microseconds), ``frame`` (its number) and
            ``connection``.
    """

    name: str
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Step:
    """A change of a fact by an event.

    Attributes:
        on: names of the events.
        table, key: the fact; the key is a constant, a ``this`` expression over the event's fields, or a tuple of them.
            None means every key: the table is emptied.
        to: the new state: a constant or an expression, in which ``this.state`` is the old one.
        when: the old states in which the step applies; by default all.
        passed: whether the keys that were set before this one are removed.
        requires: table, key and state of another fact that must hold; by default none.
    """

    on: str | tuple[str, ...]
    table: str
    key: Any
    to: Any
    when: Collection[Any] | None = None
    passed: bool = False
    requires: tuple[str, Any, Any] | None = None


@dataclass(frozen=True)
class Rule:
    """A requirement of a specification as a check.

    Attributes:
        name: in snake_case.
        says: the requirement, in a few words.
        source: document and section.
        on: names of the events that it applies to.
        never: the states in which the event is a violation, or an expression over the fields and ``this.state``.
        table, key: the fact that decides, as in ``Step``; without a table the event's own fields decide.
        other: table and key of a second fact, ``this.other`` in the expression.
        severity: ``error`` if the document requires it; ``warning`` if it only expects it, or if facts outside this
            connection may explain the violation.
        once: whether one violation is reported until the state of the key changes.
    """

    name: str
    says: str
    source: str
    on: str | tuple[str, ...]
    never: Any
    table: str = ""
    key: Any = ""
    other: tuple[str, Any] | None = None
    severity: str = "error"
    once: bool = False


@dataclass(frozen=True)
class RuleSet:
    """The rules of a protocol.

    Attributes:
        events: returns the events of a frame, in order; ``Event(LOST)`` if they cannot be determined. The frame may
            lack its ``messages``, and its description the ``pair``.
        steps, rules: for each event, the rules are checked first, then the steps are applied.
        initial: {table: state of a key that was never set}; by default ABSENT.
        shared: tables that all connections of a client share.
    """

    events: Callable[[Frame], Iterable[Event]]
    steps: tuple[Step, ...]
    rules: tuple[Rule, ...]
    initial: Mapping[str, Any] = field(default_factory=dict)
    shared: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Refuses tables and states of rules and steps that no step sets.

        Raises:
            Misuse: with the names that exist.
        """
        states: dict[str, list[Any]] = {table: [state] for table, state in self.initial.items()}
        for step in self.steps:
            states.setdefault(step.table, [ABSENT]).append(step.to)
        for rule in self.rules:
            for table in filter(None, (rule.table, rule.other[0] if rule.other is not None else "")):
                if table not in states:
                    raise Misuse(f"rule {rule.name}: no step sets the table {table!r}; choose from {', '.join(states)}")
            if rule.table:
                self._check(rule.never, states[rule.table], f"rule {rule.name}: table {rule.table}")
        for step in self.steps:
            self._check(step.when, states[step.table], f"step at {step.on!r}: table {step.table}")
            if step.requires is not None:
                table, _, state = step.requires
                if table not in states:
                    raise Misuse(
                        f"step at {step.on!r}: no step sets the table {table!r}; choose from {', '.join(states)}"
                    )
                self._check((state,), states[table], f"step at {step.on!r}: table {table}")

    @cached_property
    def by_event(self) -> dict[str, tuple[list[Rule], list[Step]]]:
        """The rules and steps for each event."""
        by_event: dict[str, tuple[list[Rule], list[Step]]] = {}
        declared: tuple[Rule | Step, ...] = (*self.rules, *self.steps)
        for each in declared:
            for name in (each.on,) if isinstance(each.on, str) else each.on:
                rules, steps = by_event.setdefault(name, ([], []))
                rules.append(each) if isinstance(each, Rule) else steps.append(each)
        return by_event

    @staticmethod
    def _check(states_asked: Any, states: list[Any], where: str) -> None:
        """Refuses states that a table cannot have, unless an expression computes its states."""
        if states_asked is None or callable(states_asked) or any(map(callable, states)):
            return
        for state in states_asked:
            if not callable(state) and state not in states:
                raise Misuse(f"{where} has no state {state!r}; it has {', '.join(map(repr, states))}")


@dataclass(frozen=True, slots=True)
class Violation:
    """A violation of a rule by a frame, or by the time that passed until the end.

    Attributes:
        rule: the violated rule.
        side: the sender of the frame, ``client`` or ``server``; "" for a violation at the end.
        api: the API of the frame; None without one, and at the end.
        frame: number of the frame in its connection, both directions counted together, from 1; at the end, of the last
            one.
        offset: number of bytes before the frame in its direction; 0 at the end.
        time_us: time of the frame, or of the end, in microseconds since the epoch, None if unknown.
        found: the fact that violates the rule, as text.
    """

    rule: Rule
    side: str
    api: str | None
    frame: int
    offset: int
    time_us: int | None
    found: str


class Facts:
    """States by table and key.

    Args:
        initial: {table: state of a key that was never set}.
        started: whether the connection was followed from its first byte.
    """

    def __init__(self, initial: Mapping[str, Any], *, started: bool) -> None:
        self._initial = initial
        self._complete = started
        self._tables: dict[str, dict[Hashable, Any]] = {}
        self._forgetful: set[str] = set()

    def get(self, table: str, key: Hashable) -> Any:
        """The state of a key, ABSENT or UNKNOWN."""
        state_by_key = self._tables.get(table, {})
        if key in state_by_key:
            return state_by_key[key]
        return self._initial.get(table, ABSENT) if self._knows(table) else UNKNOWN

    def oldest(self, table: str) -> Any:
        """The key that was set first, or ABSENT."""
        return next(iter(self._tables.get(table, ())), ABSENT)

    def set(self, table: str, key: Hashable, state: Any) -> None:
        """Sets the state of a key."""
        state_by_key = self._tables.setdefault(table, {})
        state_by_key.pop(key, None)
        if state is ABSENT or (state is UNKNOWN and not self._knows(table)):
            return
        if self._knows(table) and state == self._initial.get(table, ABSENT):
            return
        state_by_key[key] = state
        if len(state_by_key) > MOST_FACTS:
            del state_by_key[next(iter(state_by_key))]
            self._forgetful.add(table)

    def forget_before(self, table: str, key: Hashable) -> None:
        """Removes the keys that were set before a key, if the key is present."""
        state_by_key = self._tables.get(table, {})
        if key in state_by_key:
            for older in list(takewhile(lambda each: each != key, state_by_key)):
                del state_by_key[older]

    def empty(self, table: str) -> None:
        """Removes every key of a table."""
        self._tables.pop(table, None)

    def lose(self) -> None:
        """Makes everything unknown."""
        self._tables.clear()
        self._complete = False

    def _knows(self, table: str) -> bool:
        return self._complete and table not in self._forgetful


class Checker:
    """Follows one connection and collects the violations.

    Args:
        rules: the rules of the protocol.
        started: whether the connection is followed from its first byte.
        shared: the facts that the connections of this client share; by default none are shared.
        connection: its name, for keys of shared tables.

    >>> import wirekit
    >>> from wirekit.rules import Checker, rules_of
    >>> conversation, checker = wirekit.Conversation("pulsar"), Checker(rules_of("pulsar"))
    >>> ping = wirekit.encode("pulsar.frame", {"command": {"type": "PING", "ping": {}}})
    >>> for frame in conversation.receive("client", ping):
    ...     checker.take(frame)
    >>> [(violation.rule.name, violation.frame, violation.offset) for violation in checker.close()]
    [('command_before_connect', 1, 0)]
    """

    def __init__(
        self, rules: RuleSet, *, started: bool = True, shared: Facts | None = None, connection: str = ""
    ) -> None:
        self._set = rules
        self._own = Facts(rules.initial, started=started)
        self._shared = shared if shared is not None else Facts(rules.initial, started=False)
        self._connection = connection
        self._reported: dict[Hashable, set[str]] = {}
        self._violations: list[Violation] = []
        self._frames = 0
        self._last: dict[str, int] = {}
        self._latest: int | None = None

    def take(self, item: Frame | Quarantined) -> None:
        """Checks the next frame; quarantined bytes, and a frame that did not decode whole, make the state unknown.

        A frame that is cut, or answers a request that is cut, is not checked: what it lacks may have been sent.
        A frame that is older than the one before is not checked and changes no facts: its response may be
        earlier.
        """
        late = self._late(item)
        if isinstance(item, Quarantined):
            self.lose(item.side)
            return
        self._frames += 1
        if late:
            self._last[item.side] = self._frames
            return
        if item.announced or (item.request is not None and item.request.announced):
            self._last[item.side] = self._frames
            self.lose(item.side)
            return
        if not self._last and item.side == "server":
            self.lose()  # clients speak first: what the client said is not in the capture
        self._last[item.side] = self._frames
        self._happens(Event(TIME), item)
        for event in self._events(item):
            self._happens(event, item)
        if item.decoded.error is not None or item.reason is not None:
            self._forget()

    def _events(self, frame: Frame) -> list[Event]:
        """The events in a frame.

        Raises:
            Misuse: the function of the rules returns something else.
        """
        returned: Any = self._set.events(frame)
        events: list[Any] = list(returned) if isinstance(returned, Iterable) else [None]
        for event in events:
            if not isinstance(event, Event) or not isinstance(event.fields, Mapping):
                raise Misuse(
                    f"events of a RuleSet must return Event objects with a mapping of fields, not {returned!r}"
                )
        return events

    def lose(self, side: str | None = None) -> None:
        """Reports that bytes are missing or undecodable after the last frame of a side, or of both sides."""
        before = [self._last.get(each, 0) for each in SIDES if side in (None, each)]
        self._violations = [violation for violation in self._violations if violation.frame <= min(before)]
        self._forget()

    def _forget(self) -> None:
        self._own.lose()
        self._shared.lose()
        self._reported.clear()

    def close(self, time_us: int | None = None) -> list[Violation]:
        """Reports the end of the connection or of the capture; returns the violations in the order of frames."""
        if time_us is not None and len(self._last) > 1:
            end = Frame("", "", 0, b"", time_us, None, None)  # type: ignore[arg-type]  # nothing but a time
            self._happens(Event(TIME), end)
        violations, self._violations = self._violations, []
        return violations

    def _late(self, item: Frame | Quarantined) -> bool:
        """Whether a newer frame came before; then the violations since the time of this frame are withdrawn."""
        time_us = item.time_us
        if time_us is None or self._latest is None or time_us >= self._latest:
            self._latest = self._latest if time_us is None else time_us
            return False
        self._violations = [each for each in self._violations if each.time_us is None or each.time_us < time_us]
        self._forget()
        return True

    def _facts(self, table: str) -> Facts:
        return self._shared if table in self._set.shared else self._own

    def _happens(self, event: Event, frame: Frame) -> None:
        if event.name == LOST:
            self._forget()
            return
        rules, steps = self._set.by_event.get(event.name, ((), ()))
        if not (rules or steps):
            return
        fields = {**event.fields, "time": frame.time_us, "frame": self._frames, "connection": self._connection}
        for rule in rules:
            self._check(rule, fields, frame)
        for step in steps:
            self._make(step, fields)

    def _check(self, rule: Rule, fields: Mapping[str, Any], frame: Frame) -> None:
        key = _evaluated(rule.key, fields)
        state = self._state(rule.table, key) if rule.table else None
        if rule.other is not None:
            fields = {**fields, "other": self._state(rule.other[0], _evaluated(rule.other[1], fields))}
        if state is UNKNOWN or not _breaks(rule.never, state, fields):
            return
        reported = self._reported.setdefault((rule.table, key), set()) if rule.once else None
        if (reported is not None and rule.name in reported) or len(self._violations) >= MOST_VIOLATIONS:
            return
        if reported is not None:
            reported.add(rule.name)
        self._violations.append(_violation(rule, key, state, frame, self._frames))

    def _state(self, table: str, key: Any) -> Any:
        if key is OLDEST:
            return self._facts(table).oldest(table)
        return UNKNOWN if _has_unknown(key) else self._facts(table).get(table, key)

    def _make(self, step: Step, fields: Mapping[str, Any]) -> None:
        facts = self._facts(step.table)
        if step.key is None:
            facts.empty(step.table)
            return
        key = _evaluated(step.key, fields)
        if _has_unknown(key):
            return
        old = facts.get(step.table, key)
        if step.when is not None and old not in step.when:
            return
        if step.requires is not None:
            table, other, required = step.requires
            if self._state(table, _evaluated(other, fields)) != required:
                return
        if step.passed:
            facts.forget_before(step.table, key)
        state = _evaluated(step.to, {**fields, "state": old})
        facts.set(step.table, key, state)
        if state != old:
            self._reported.pop((step.table, key), None)


def rules_of(protocol: str) -> RuleSet | None:
    """The rules of a protocol, or None if it declares none."""
    place = registry.protocol(protocol).rules
    rules: RuleSet | None = load_object(place) if place else None
    return rules


def check(protocol: str, items: Iterable[Frame | Quarantined | object], *, started: bool = True) -> list[Violation]:
    """The violations in the items that a Conversation returned for one connection.

    Args:
        protocol: its name.
        items: frames and quarantined bytes; NEED_DATA is ignored.
        started: whether the conversation was followed from its first byte.

    Returns:
        The violations in the order of frames; none for a protocol without rules.

    >>> import wirekit
    >>> ping = wirekit.encode("pulsar.frame", {"command": {"type": "PING", "ping": {}}})
    >>> [violation.rule.name for violation in check("pulsar", wirekit.Conversation("pulsar").receive("client", ping))]
    ['command_before_connect']
    """
    rules = rules_of(protocol)
    if rules is None:
        return []
    checker = Checker(rules, started=started)
    time_us = None
    for item in items:
        if isinstance(item, (Frame, Quarantined)):
            checker.take(item)
            time_us = item.time_us
    return checker.close(time_us)


def _evaluated(expression: Any, fields: Mapping[str, Any]) -> Any:
    """A constant, the value of an expression, or a tuple of these; UNKNOWN if a field was not decoded, or is 0 where an
    expression divides by it.
    """
    if isinstance(expression, tuple):
        return tuple(_evaluated(each, fields) for each in expression)
    if not callable(expression):
        return expression
    try:
        value = expression(fields)
    except (KeyError, TypeError, ZeroDivisionError):
        return UNKNOWN
    return UNKNOWN if value is None else value


def _has_unknown(key: Any) -> bool:
    """Whether a key, or a part of it, is unknown, or is a list, which is the key of no fact."""
    return key is UNKNOWN or isinstance(key, list) or (isinstance(key, tuple) and any(map(_has_unknown, key)))


def _breaks(never: Any, state: Any, fields: Mapping[str, Any]) -> bool:
    if not callable(never):
        return state in never
    return _evaluated(never, {**fields, "state": state}) is True


def _violation(rule: Rule, key: Any, state: Any, frame: Frame, number: int) -> Violation:
    shown = "/".join(map(str, _flat(key)))
    observation = f"{rule.table.replace('_', ' ')}{f' {shown}' if shown else ''}: {state}" if rule.table else ""
    api = frame.description.api if frame.side else None
    return Violation(rule, frame.side, api, number, frame.offset, frame.time_us, observation)


def _flat(key: Any) -> Iterator[Any]:
    if isinstance(key, tuple):
        for each in key:
            yield from _flat(each)
    elif key != "":
        yield key
