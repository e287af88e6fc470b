"""Generates a connection frame by frame from the declarations of its protocol: dialogue, pairing and rules.

Each turn selects a kind of frame and draws one. Identifiers (the keys of the rules' facts) repeat those of
earlier frames, and a response repeats the fields that its request has by the same names. A frame is used only if a
``Conversation`` decodes it cleanly as the intended kind, and it breaks no rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from construct.expr import Path

from wirekit import encoding
from wirekit.compiler import ir
from wirekit.compiler.expressions import expression, fields_of
from wirekit.compiler.generated import by_key
from wirekit.conversation import OTHER_SIDES, Conversation, Event, Frame, Quarantined
from wirekit.conversation.pairing import Heads, Kind, required_pairing
from wirekit.errors import WirekitError
from wirekit.registry import registry
from wirekit.rules import RuleSet, check, rules_of
from wirekit.strategies.choices import Rejected, SeededChoices
from wirekit.strategies.drawing import Wish
from wirekit.strategies.layout import layout_of
from wirekit.strategies.maker import Maker
from wirekit.values import Record, pairs

ATTEMPTS = 12
"""The number of frames that are drawn for a turn before it is given up."""
MOST_KNOWN = 3
"""The maximum number of different values of an identifier in a conversation."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One frame of a conversation.

    Attributes:
        side: the sender, ``client`` or ``server``.
        data: the frame.
        api: its name, as ``Description.api``.
        role: ``request``, ``response`` or ``event``.
        request: for a response, the index of the turn that it answers; else None.
    """

    side: str
    data: bytes
    api: str
    role: str
    request: int | None = None


class Exchange:
    """Generates the frames of one side of a connection, or of both sides.

    Attributes:
        turns, frames: the frames in order: as generated, and as a conversation decodes them.
        items: the frames, and bytes that do not decode.

    Args:
        protocol: its name; it must declare a pairing.
        random: the random number generator.
        fields: {name: value, or function of the generator} of fields that get this value wherever they are.

    Raises:
        Misuse: for a protocol without a pairing.

    >>> exchange = Exchange("kafka", Random(1))
    >>> asked = exchange.ask("client")
    >>> exchange.answer(exchange.frames[-1]).request
    0
    """

    def __init__(self, protocol: str, random: Random, *, fields: Mapping[str, Any] | None = None) -> None:
        self.pairing = required_pairing(protocol)
        self.protocol = registry.protocol(protocol)
        self.turns: list[Turn] = []
        self.frames: list[Frame] = []
        self._random = random
        self._choices = SeededChoices(random)
        self._fields = dict(fields or {})
        rules = rules_of(protocol)
        self._identifiers = _identifiers(rules) if rules is not None else frozenset()
        self._known: dict[str, list[Any]] = {}
        self._number = random.randrange(100)
        self.items: list[Frame | Quarantined] = []
        self.conversation = Conversation(protocol)

    # Both sides

    def open(self) -> None:
        """Adds the opening frames of a client, and their responses."""
        for name, value in self.conversation.dialogue.opening:
            self.hear("client", encoding.encode(self.protocol.key(name), value))
            self.answer(self.frames[-1])

    def step(self) -> Turn | None:
        """Adds a frame of either side; None if no drawn frame fits."""
        waiting = self.conversation.requests
        turn = None
        if waiting and self._random.random() < 0.5:
            turn = self.answer(waiting[0] if self.pairing.in_order else self._random.choice(waiting))
        if turn is None and self._random.random() < 0.3:
            side = self._random.choice(("client", "server", "server"))
            turn = self.tell(side) or self.ask(side)
        return turn or self.ask("client")

    def hear(self, side: str, data: bytes) -> list[Event]:
        """Adds bytes that a peer sent; returns the events of the conversation."""
        return self._noted(self.conversation.receive(side, data))

    def end(self, side: str) -> list[Event]:
        """Ends the bytes of a peer; returns the events of a frame that is incomplete."""
        return self._noted(self.conversation.close(side))

    def _noted(self, events: list[Event]) -> list[Event]:
        for event in events:
            if isinstance(event, Frame):
                self._note(event)
            elif isinstance(event, Quarantined):
                self.items.append(event)
        return events

    # One side

    def ask(self, side: str) -> Turn | None:
        """Adds a request that a side may send now, and whose response is declared; None if no drawn frame fits."""
        heads = self.pairing.heads(side)
        answered = [each for each in heads.kinds.items() if each[1].answers or each[1].answer]
        asks = [each for each in answered if each[1].role == "request"]
        return self._of_some(side, heads, asks)

    def tell(self, side: str) -> Turn | None:
        """Adds a frame of a side that is neither a request nor a response; None if no drawn frame fits."""
        heads = self.pairing.heads(side)
        plain = [(numbers, kind.without or kind) for numbers, kind in heads.kinds.items()]
        return self._of_some(side, heads, [each for each in plain if each[1].role == "event"])

    def answer(self, request: Frame) -> Turn | None:
        """Adds a response to a waiting request; None if no drawn frame fits."""
        drawn = self._draws(request)
        return None if drawn is None else self._drawn(OTHER_SIDES[request.side], *drawn, request=request)

    def draft(self, request: Frame, *, other: bool = False, number: int = 0) -> bytes | None:
        """A response that is not added, and may break a rule; None if no response can be drawn.

        Args:
            request: the request.
            other: whether the response is of a kind that answers other requests.
            number: added to the number that pairs the two.
        """
        drawn = self._draws(request, other=other)
        if drawn is None:
            return None
        kind, key, fixed, context, requested = drawn
        if number and kind.pair:
            fixed[kind.pair[-1]] = (fixed[kind.pair[-1]] or 0) + number
        frames = (self._frame(key, fixed, context, requested) for _ in range(ATTEMPTS))
        return next((data for data in frames if data is not None), None)

    def kind_of(self, frame: Frame) -> Kind | None:
        """The kind of a frame, according to the pairing; None if the pairing does not declare it."""
        description = frame.description
        for kind in self.pairing.heads(frame.side).kinds.values():
            version = kind.version if isinstance(kind.version, int) else description.version
            if (kind.api, kind.role, version) == (description.api, description.role, description.version):
                return kind
        return None

    def _draws(
        self, request: Frame, *, other: bool = False
    ) -> tuple[Kind, str, dict[str, Any], dict[str, Any], dict[str, list[Any]]] | None:
        """Kind, key, fixed fields, context and repeatable fields of a response; None if no response is declared."""
        request_kind, heads = self.kind_of(request), self.pairing.heads(OTHER_SIDES[request.side])
        refusal = None
        if request_kind is None:
            others = self.pairing.heads(request.side).undeclared.values()
            request_kind = next((each for each in others if each.api == request.description.api and each.refusal), None)
            refusal = request_kind.refusal if request_kind is not None else None
        if request_kind is None or request.value is None:
            return None
        layout = request_kind.answer
        if other and layout:
            asks = [kind for kind in self.pairing.heads(request.side).kinds.values() if kind.answer]
            layouts = [kind.answer for kind in asks if kind.api != request_kind.api]
            if not layouts:
                return None
            layout = self._random.choice(layouts)
        kinds = [
            (numbers, kind)
            for numbers, kind in heads.kinds.items()
            if kind.role == "response"
            and (
                not kind.api
                if layout
                else (kind.api in request_kind.answers) != other and len(kind.pair) == len(request_kind.pair)
            )
        ]
        if not kinds:
            return None
        usual = [each for each in kinds if each[1].api == (request_kind.answers[0] if request_kind.answers else "")]
        numbers, kind = self._random.choice(usual if usual and self._random.random() < 0.8 else kinds)
        fixed = dict(zip(heads.fields, numbers, strict=True)) if not layout else {}
        for path, source in zip(kind.pair, request_kind.pair, strict=False):
            fixed[path] = at_path(request.value, source)
        if refusal is not None:
            fixed[refusal[0]] = refusal[1]
        context = {kind.context: request.description.version} if kind.context else {}
        requested: dict[str, list[Any]] = {}
        for name, value in _scalars(request.value):
            requested.setdefault(name, []).append(value)
        return kind, self.protocol.key(layout or kind.layout), fixed, context, requested

    def _of_some(self, side: str, heads: Heads, kinds: list[tuple[tuple[int, ...], Kind]]) -> Turn | None:
        for numbers, kind in self._random.sample(kinds, min(len(kinds), ATTEMPTS)):
            fixed: dict[str, Any] = dict(zip(heads.fields, numbers, strict=True))
            if kind.pair:
                self._number += 1
                fixed[kind.pair[-1]] = self._number
            turn = self._drawn(side, kind, self.protocol.key(kind.layout), fixed, {}, {}, attempts=2)
            if turn is not None:
                return turn
        return None

    def _drawn(
        self,
        side: str,
        kind: Kind,
        key: str,
        fixed: dict[str, Any],
        context: dict[str, Any],
        requested: dict[str, list[Any]],
        *,
        request: Frame | None = None,
        attempts: int = ATTEMPTS,
    ) -> Turn | None:
        """Draws frames until one fits, and adds it; None if none of ``attempts`` frames fits."""
        place = (request.side, request.offset) if request is not None else None
        for _ in range(attempts):
            data = self._frame(key, fixed, context, requested)
            if data is None:
                continue
            if self._fits(self.conversation.preview(side, data), kind, place):
                self.hear(side, data)
                return self.turns[-1]
        return None

    def _frame(
        self, key: str, fixed: dict[str, Any], context: dict[str, Any], requested: dict[str, list[Any]]
    ) -> bytes | None:
        fields = {tuple(path.split(".")): value for path, value in fixed.items()}
        try:
            value = Maker(layout_of(key), self._choices, context, Wish(1, clean=True, fields=fields)).draw()
            if requested:
                requested = {**{name: [0] for name in _symbols_of_zero(key)}, **requested}
            bound = self._bound(value, {path[-1] for path in fields}, requested)
            return encoding.encode(key, bound, context=context)
        except (Rejected, WirekitError):
            return None

    def _fits(self, frame: Frame, kind: Kind, request: tuple[str, int] | None) -> bool:
        """Whether a frame has the intended kind, and breaks no rule."""
        description, asking = frame.description, frame.request
        if frame.reason is not None or not frame.decoded.clean or description.role != kind.role:
            return False
        if kind.api and description.api != kind.api:
            return False
        if (None if asking is None else (asking.side, asking.offset)) != request:
            return False
        if self.conversation.dialogue.sender(frame.decoded) not in ("", frame.side):
            return False
        violations = check(self.protocol.name, [*self.items, frame])
        return all(violation.frame <= len(self.frames) for violation in violations)

    def _note(self, frame: Frame) -> None:
        asking = frame.request
        request = None
        if asking is not None:
            place, ats = (asking.side, asking.offset), reversed(range(len(self.frames)))
            request = next(at for at in ats if (self.frames[at].side, self.frames[at].offset) == place)
        self.turns.append(Turn(frame.side, frame.data, frame.description.api or "", frame.description.role, request))
        self.frames.append(frame)
        self.items.append(frame)
        for name, value in _scalars(frame.value):
            for each in (name, name.removesuffix("s")):
                values = self._known.setdefault(each, []) if each in self._identifiers else None
                if values is not None and value not in values and len(values) < MOST_KNOWN:
                    values.append(value)

    def _bound(self, value: Any, fixed: set[str], requested: Mapping[str, list[Any]]) -> Any:
        """A value with fields from the caller, from its request, or with earlier names and ids."""
        if isinstance(value, list):
            return [self._bound(each, fixed, requested) for each in value]
        if not isinstance(value, dict):
            return value
        bound = {}
        for name, item in value.items():
            if name in fixed or name.startswith("$"):
                bound[name] = item
            elif isinstance(item, list) and item and not isinstance(item[0], dict | list):
                bound[name] = [self._scalar(name.removesuffix("s"), each, requested) for each in item]
            elif isinstance(item, dict | list):
                bound[name] = self._bound(item, fixed, requested)
            else:
                bound[name] = self._scalar(name, item, requested)
        return bound

    def _scalar(self, name: str, item: Any, requested: Mapping[str, list[Any]]) -> Any:
        if name in self._fields:
            override = self._fields[name]
            return override(self._random) if isinstance(override, Callable) else override  # type: ignore[arg-type]
        for source in (requested, self._known):
            fitting = [each for each in source.get(name, ()) if type(each) is type(item)]
            if fitting and self._random.random() < 0.9:
                return self._random.choice(fitting)
        return item


@by_key
def _symbols_of_zero(key: str) -> frozenset[str]:
    """Names of the fields with a symbol for 0: responses use 0 to report success."""
    structures = [node for node in layout_of(key).nodes if isinstance(node, ir.Structure)]
    cores = [(member.name, ir.core(member.node)) for node in structures for member in node.members]
    return frozenset(name for name, node in cores if isinstance(node, ir.Named) and 0 in map(int, node.table))


def _identifiers(rules: RuleSet) -> frozenset[str]:
    """Names of the fields that are keys of facts in the rules."""
    keys: list[Any] = [step.key for step in rules.steps] + [rule.key for rule in rules.rules]
    names: set[str] = set()
    while keys:
        key = keys.pop()
        if isinstance(key, tuple):
            keys += key
        elif isinstance(key, Path):
            names.update(field.names[-1] for field in fields_of(expression(key)))
    return frozenset(names)


def at_path(value: Any, path: str) -> Any:
    """A field of a record by its path, or None if it is absent."""
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Record | dict) else None
    return value


def _scalars(value: Any) -> Iterator[tuple[str, Any]]:
    """(name, value) of the numbers, texts and bytes in a record, including those in inner lists and records."""
    waiting: list[tuple[str, Any]] = [("", value)]
    while waiting:
        name, item = waiting.pop()
        if isinstance(item, Record | Mapping):
            inside: Iterable[tuple[str, Any]] = pairs(item)
            waiting += [(inner, each) for inner, each in inside if not inner.startswith("$")]
        elif isinstance(item, list):
            waiting += [(name, each) for each in item]
        elif isinstance(item, int | str | bytes) and not isinstance(item, bool):
            yield name, int(item) if isinstance(item, int) else item
