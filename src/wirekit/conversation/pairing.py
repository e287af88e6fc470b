"""Declares how columns identify and pair the frames of a protocol.

For each side, a ``Pairing`` declares the layout at the start of every frame, the numbers in it that select the kind of
the frame, and the kinds. A protocol names its pairing at registration, ``Protocol(pairing="package.module:PAIRING")``;
without one, only its ``Dialogue`` follows connections. The two must agree. A Pairing covers usual connections: an
undeclared kind, a response without a request, or a number in use twice leaves the whole connection to the dialogue.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from wirekit.conversation.events import ROLES
from wirekit.errors import Misuse
from wirekit.registry import registry

Path = str
"""The path of a field in the layout that the frames of the side begin with."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of frame.

    Attributes:
        api: name of the API or command; "" for a response, which has the API of its request.
        layout: the frame's layout (key without the protocol); "" for a response, whose request names it as ``answer``.
        role: ``request``, ``response`` or ``event``, as in ``Description``.
        version: the version of the API, the path of the field that holds it, or None; a response without ``api`` has
            that of its request.
        number: path of the correlation id, "" for none.
        pair: paths of the numbers, at most two, that a request and its response share.
        link: distinguishes these numbers from equal numbers of other kinds of requests.
        answer: of a request, the layout of the response.
        answers: of a request, the APIs of the kinds of the other side that answer it, where these have names of their
            own; a request has either ``answer`` or ``answers``.
        answer_version: of a request, the version of the response if it differs from the version of the request.
        refusal: (path in ``answer``, value) that the response must have, or None; otherwise the connection is left to
            the dialogue.
        unusual_answer: (path in ``answer``, value) of responses that are left to the dialogue, or None.
        silent: (path in ``layout``, value) of requests that get no response, or None if all get one.
        unusual: (path, value) of frames that are left to the dialogue, or None.
        without: the kind of a frame that lacks ``number``; None if such a frame is left to the dialogue.
        most: path in ``layout`` of the largest number of bytes that a frame of the connection may have, if above 0; a
            connection with a larger frame is left to the dialogue.
        headed: whether ``layout`` and ``answer`` have no body: the bytes after their fields are a gap. A response
            with a ``refusal`` has its body.
        context: name of the context that passes the request's version to the layout, "" for none.
    """

    api: str
    layout: str
    role: str
    version: int | Path | None = None
    number: Path = ""
    pair: tuple[Path, ...] = ()
    link: str = ""
    answer: str = ""
    answers: tuple[str, ...] = ()
    answer_version: int | None = None
    refusal: tuple[Path, int] | None = None
    unusual_answer: tuple[Path, int] | None = None
    silent: tuple[Path, int] | None = None
    unusual: tuple[Path, int] | None = None
    without: Kind | None = None
    most: Path = ""
    headed: bool = False
    context: str = ""

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise Misuse(f"the kind {self.api!r} has no role {self.role!r}; choose from {', '.join(ROLES)}")
        if self.answer and self.answers:
            raise Misuse(
                f"the kind {self.api!r} has answer={self.answer!r} and answers={self.answers!r}; give answer= if the "
                "response has the API of its request, and answers= if it has one of its own"
            )

    @property
    def particular(self) -> bool:
        """Whether its responses must be examined, or have no body."""
        return self.headed or self.refusal is not None or self.unusual_answer is not None

    @property
    def paths(self) -> tuple[Path, ...]:
        """The paths of the fields that such a frame must have."""
        version = (self.version,) if isinstance(self.version, str) else ()
        return tuple(path for path in (*version, self.number, *self.pair) if path)


@dataclass(frozen=True, slots=True)
class Unasked:
    """Responses that answer requests from before the capture, as the first frame of a side.

    If nothing else was received yet, ``Dialogue.plausible`` accepts a frame that is clean in one of these layouts and
    has this string, and refuses a frame that none of them decodes. ``Dialogue.skipped`` needs no facts about it.

    Attributes:
        layouts: the layouts.
        text: path of a list of strings in these layouts; the first string must not be empty.
    """

    layouts: tuple[str, ...]
    text: Path


@dataclass(frozen=True)
class Heads:
    """The kinds of frames of one side.

    Attributes:
        layout: the layout at the start of each frame (the key without the protocol); the bytes after it are not read.
            Without columns, as for a recursive layout, all frames are left to the dialogue.
        fields: paths of the numbers that select the kind; empty if there is only one kind.
        kinds: {these numbers: kind}.
        undeclared: {first of these numbers: kind} for frames that are not in ``kinds``.
        most: the highest value, from 0, of the other numbers of such frames.
        unasked: responses without a request that the side may begin with if its connection was joined in the middle;
            None leaves all of them to the dialogue.
    """

    layout: str
    fields: tuple[Path, ...] = ()
    kinds: Mapping[tuple[int, ...], Kind] = field(default_factory=dict)
    undeclared: Mapping[int, Kind] = field(default_factory=dict)
    most: int = 0
    unasked: Unasked | None = None

    def kind(self, numbers: tuple[int, ...]) -> Kind | None:
        """The kind of a frame with these numbers, None for a frame that is left to the dialogue."""
        kind = self.kinds.get(numbers)
        if kind is None and self.undeclared and all(0 <= each <= self.most for each in numbers[1:]):
            kind = self.undeclared.get(numbers[0])
        return kind

    @cached_property
    def every(self) -> tuple[Kind, ...]:
        """All kinds."""
        return *self.kinds.values(), *self.undeclared.values()

    @cached_property
    def paths(self) -> tuple[Path, ...]:
        """The paths that select the kind of a frame, or that its kind has."""
        unusual = {kind.unusual[0] for kind in self.every if kind.unusual is not None}
        return tuple(sorted(unusual.union(self.fields, *(kind.paths for kind in self.every))))


@dataclass(frozen=True, slots=True)
class Pairing:
    """The kinds of frames of both sides, and whether responses come in the order of requests."""

    client: Heads
    server: Heads
    in_order: bool = False

    def heads(self, side: str) -> Heads:
        """The heads of a side, ``client`` or ``server``."""
        return self.client if side == "client" else self.server


def pairing_of(protocol: str) -> Pairing | None:
    """The Pairing that a protocol declares; None if it declares none.

    Raises:
        Misuse: the Pairing names a layout, field or kind that does not exist, or a field that is not an integer.
    """
    return registry.protocol(protocol).paired


def required_pairing(protocol: str) -> Pairing:
    """The Pairing that a protocol declares.

    Raises:
        Misuse: for a protocol that declares none.
    """
    pairing = pairing_of(protocol)
    if pairing is None:
        raise Misuse(f"{protocol} declares no Pairing, which links responses to requests")
    return pairing
