"""The engine of rules, with rules made up for it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import wirekit
from wirekit import rules
from wirekit.conversation import Conversation, Frame, Quarantined
from wirekit.errors import Misuse
from wirekit.rules import ABSENT, UNKNOWN, Checker, Event, Facts, Rule, RuleSet, Step, Violation
from wirekit.wire import this

PING = wirekit.encode("pulsar.frame", {"command": {"type": "PING", "ping": {}}})


def frame(side: str, time_us: int | None = None) -> Frame:
    (only_frame,) = Conversation("pulsar").receive(side, PING, time_us=time_us)
    assert isinstance(only_frame, Frame)
    return only_frame


class Story:
    """A checker that is told events by name, a frame each."""

    def __init__(self, rule_set: RuleSet, **options: Any) -> None:
        self._next: list[Event] = []
        self.checker = Checker(replace(rule_set, events=self._events), **options)

    def _events(self, frame: Frame) -> Iterator[Event]:
        yield from self._next

    def tell(self, name: str, side: str = "client", at: int | None = None, **fields: Any) -> Story:
        self._next = [Event(name, fields)]
        self.checker.take(frame(side, at))
        return self

    def end(self, at: int | None = None) -> list[str]:
        return [f"{violation.rule.name} {violation.frame}" for violation in self.checker.close(at)]


def nothing(frame: Frame) -> Iterator[Event]:
    return iter(())


def rule(name: str, on: str, never: Any, *fact: Any, **more: Any) -> Rule:
    return Rule(name, "says", "source", on, never, *fact, **more)


DOORS = RuleSet(
    nothing,
    steps=(
        Step("open", "door", this.number, "open"),
        Step("close", "door", this.number, "closed"),
        Step("somebody", "door", this.number, UNKNOWN),
        Step("enter", "inside", this.number, this.state + 1),
        Step("leave", "inside", this.number, this.state - 1),
    ),
    rules=(
        rule("closed", "enter", (ABSENT, "closed"), "door", this.number),
        rule("empty", "leave", this.state <= 0, "inside", this.number),
    ),
    initial={"inside": 0},
)


def test_states_and_counters() -> None:
    story = Story(DOORS).tell("open", number=1).tell("enter", number=1).tell("leave", number=1)
    assert story.tell("leave", number=1).tell("enter", number=2).end() == ["empty 4", "closed 5"]


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        (
            rule("r", "enter", ("open",), "dor", this.number),
            "rule r: no step sets the table 'dor'; choose from inside, door",
        ),
        (rule("r", "enter", this.other > 0, "door", "", other=("dor", "")), "rule r: no step sets the table 'dor'"),
        (
            rule("r", "enter", ("shut",), "door"),
            "rule r: table door has no state 'shut'; it has absent, 'open', 'closed'",
        ),
        (Step("lock", "door", "", "locked", when=("shut",)), "step at 'lock': table door has no state 'shut'"),
        (
            Step("lock", "door", "", "locked", requires=("dor", "", "open")),
            "step at 'lock': no step sets the table 'dor'",
        ),
        (
            Step("lock", "door", "", "locked", requires=("door", "", "shut")),
            "step at 'lock': table door has no state 'shut'",
        ),
    ],
)
def test_names_of_tables_and_states_that_no_step_sets_are_refused(changed: Rule | Step, problem: str) -> None:
    more = {"rules": (changed,)} if isinstance(changed, Rule) else {"steps": (*DOORS.steps, changed)}
    with pytest.raises(Misuse, match=re.escape(problem)):
        replace(DOORS, **more)  # type: ignore[arg-type]


def test_in_a_conversation_joined_late_state_is_unknown_until_it_is_seen() -> None:
    story = Story(DOORS, started=False).tell("enter", number=1).tell("leave", number=1).tell("leave", number=1)
    assert story.tell("close", number=1).tell("enter", number=1).end() == ["closed 5"]


def test_a_state_can_become_unknown() -> None:
    assert Story(DOORS).tell("somebody", number=1).tell("enter", number=1).end() == []


@pytest.mark.parametrize("how", ["lost", "quarantined", "missing"])
def test_a_loss_makes_everything_unknown(how: str) -> None:
    story = Story(DOORS).tell("close", number=1)
    if how == "lost":
        story.tell(rules.LOST)
    elif how == "missing":
        story.checker.lose()
    else:
        story.checker.take(Quarantined("server", 0, b"?", None, "what is this"))
    assert story.tell("enter", number=1).tell("leave", number=2).end() == []


def test_a_field_that_was_not_decoded_is_unknown() -> None:
    story = Story(DOORS).tell("close").tell("enter").tell("enter", number=None).tell("open", number=None)
    assert story.end() == []


def test_a_server_that_speaks_first_means_that_the_client_is_not_in_the_capture() -> None:
    assert Story(DOORS).tell("enter", side="server", number=1).end() == []


def test_a_late_frame_withdraws_violations_after_its_time() -> None:
    story = Story(DOORS).tell("enter", at=10, number=1).tell("enter", at=30, number=2)
    story.tell("close", at=20, number=2).tell("enter", at=40, number=2).tell("enter", at=50, number=3)
    assert story.end() == ["closed 1"]


def test_bytes_missed_later_withdraw_violations_that_they_may_excuse() -> None:
    story = Story(DOORS).tell("enter", number=1).tell("other", side="server").tell("enter", number=2)
    story.checker.lose("server")
    assert story.end() == ["closed 1"]
    story = Story(DOORS).tell("enter", number=1).tell("other", side="server").tell("enter", number=2)
    story.checker.lose("client")
    assert story.end() == ["closed 1", "closed 3"]


def test_an_answer_removes_the_older_keys_that_it_passes() -> None:
    queue = RuleSet(
        nothing,
        steps=(Step("ask", "waiting", this.number, "yes"), Step("answer", "waiting", this.number, ABSENT, passed=True)),
        rules=(rule("order", "answer", this.number > this.other, other=("waiting", rules.OLDEST)),),
    )
    story = Story(queue)
    for number in (1, 2, 3, 4):
        story.tell("ask", number=number)
    story.tell("answer", number=1).tell("answer", number=3).tell("answer", number=4)
    assert story.end() == ["order 6"]


def test_once_until_the_state_changes() -> None:
    once = replace(DOORS, rules=(rule("closed", "enter", ("closed",), "door", this.number, once=True),))
    story = Story(once).tell("close", number=1).tell("enter", number=1).tell("enter", number=1)
    assert story.tell("open", number=1).tell("close", number=1).tell("enter", number=1).end() == [
        "closed 2",
        "closed 6",
    ]


def test_time_passes_with_the_frames_and_at_the_end() -> None:
    late = RuleSet(
        nothing,
        steps=(Step("knock", "door", "", this.time),),
        rules=(rule("late", rules.TIME, this.time - this.state > 50, "door"),),
    )
    assert Story(late).tell("knock", at=0).tell("other", side="server", at=51).end(200) == ["late 2", "late 2"]
    assert Story(late).tell("knock", at=0).tell("other", side="server", at=50).end(50) == []
    assert Story(late).tell("knock", at=0).end(200) == [], "nothing of the other side was captured"


def test_a_table_forgets_its_oldest_and_then_knows_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "MOST_FACTS", 3)
    facts = Facts({}, started=True)
    assert facts.get("door", 0) is ABSENT
    for number in range(5):
        facts.set("door", number, "open")
    assert [facts.get("door", number) for number in (1, 2, 4)] == [UNKNOWN, "open", "open"]
    assert facts.get("window", 1) is ABSENT


def test_violations_that_are_held_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "MOST_VIOLATIONS", 3)
    story = Story(DOORS)
    for number in range(9):
        story.tell("enter", number=number)
    assert len(story.end()) == 3


def test_a_protocol_without_rules_has_no_violation() -> None:
    violations: list[Violation] = rules.check("net", [])
    assert violations == []


def test_a_frame_that_did_not_decode_makes_the_state_unknown() -> None:
    for reason, expected in ((None, ["closed 2"]), ("nobody knows it", [])):
        story = Story(DOORS)
        story.checker.take(replace(frame("client"), reason=reason))
        assert story.tell("enter", number=1).end() == expected


@pytest.mark.parametrize("returned", [None, 5, [1], "ab", [Event("open", 5)]])  # type: ignore[arg-type]
def test_what_is_no_event_is_refused(returned: Any) -> None:
    checker = Checker(replace(DOORS, events=lambda frame: returned))
    with pytest.raises(Misuse, match="events of a RuleSet must return Event objects with a mapping of fields, not "):
        checker.take(frame("client"))


def test_a_division_by_zero_and_a_list_as_a_key_are_unknown() -> None:
    """Bytes decide them, so they must not end a run."""
    share = rule("share", "open", 6 // this.number == 2)
    door = rule("door", "open", (ABSENT,), "door", this.number)
    story = Story(RuleSet(nothing, steps=DOORS.steps, rules=(share, door)))
    story.tell("open", number=0).tell("open", number=3).tell("open", number=[1])
    assert story.end() == ["door 1", "share 2", "door 2"]
