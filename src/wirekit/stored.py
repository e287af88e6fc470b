"""The pieces that a protocol's readers of stored broker files yield."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from wirekit.errors import Damaged, WireError, plural
from wirekit.values import Gap

if TYPE_CHECKING:
    import pyarrow as pa

    from wirekit.conversation import Message


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a file, and the application messages in it.

    Attributes:
        offset, length: where it stands in the file, bytes.
        messages: the messages one by one; to be taken once. Empty where ``batch`` has them.
        batch: the messages as a ``pyarrow.RecordBatch`` whose columns are called as the attributes of ``Message``, and
            its facts, are, or None. What is not a column is in ``fixed``.
        fixed: attributes that all messages of the piece have in common.
        errors: what ends the file early.
        damaged: what was passed over.
        gaps: bytes that no field explains.
        fits: whether the bytes prove that the file is of the kind that the reader is for.
    """

    offset: int
    length: int
    messages: Iterable[Message] = ()
    batch: pa.RecordBatch | None = None
    fixed: Mapping[str, Any] = field(default_factory=dict)
    errors: tuple[WireError, ...] = ()
    damaged: tuple[Damaged, ...] = ()
    gaps: tuple[Gap, ...] = ()
    fits: bool = False

    @property
    def problems(self) -> list[str]:
        """In words, what keeps the piece from being all in order."""
        return [
            *map(str, self.damaged),
            *map(str, self.errors),
            *(f"{plural(gap.length, 'unexplained byte')} at byte {gap.offset}" for gap in self.gaps),
        ]

    def all_messages(self) -> Iterator[Message]:
        """The messages one by one, wherever they are."""
        from wirekit.conversation.events import SHOWN, Message

        yield from self.messages
        if self.batch is not None:
            place = self.batch.schema.get_field_index("timestamp")
            batch = self.batch.set_column(place, "timestamp", self.batch["timestamp"].view("int64"))
            for row in batch.to_pylist():
                facts = {name: row.pop(name) for name in tuple(row) if name not in SHOWN}
                known = {name: value for name, value in facts.items() if value is not None}
                yield Message(**row, **self.fixed, facts=known)


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in a directory that disagrees with the rest.

    Attributes:
        file: its path.
        text: what, in words.
        offset: where in the file, bytes; None where there is no one place.
        entry: the number of the entry or line, from 0; None in files that have none.
    """

    file: str
    text: str
    offset: int | None = None
    entry: int | None = None

    def to_json(self) -> dict[str, Any]:
        """file, entry, offset, problem."""
        return {"file": self.file, "entry": self.entry, "offset": self.offset, "problem": self.text}

    def __str__(self) -> str:
        entry = "" if self.entry is None else f", entry {self.entry}"
        place = "" if self.offset is None else f", at byte {self.offset}"
        return f"{self.file}{entry}{place}: {self.text}"


@dataclass(slots=True)
class Report:
    """The report on a directory.

    Attributes:
        directory: its path.
        facts: plain JSON data about it.
        problems: what disagrees.
        parts: the reports of directories in it.
    """

    directory: str
    facts: dict[str, Any] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    parts: list[Report] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        """Whether nothing disagrees, here and in the parts."""
        return not self.problems and all(part.clean for part in self.parts)

    def to_json(self) -> dict[str, Any]:
        """facts, problems and, where there are any, parts by directory."""
        told = {**self.facts, "problems": [problem.to_json() for problem in self.problems]}
        if self.parts:
            told["parts"] = {part.directory: part.to_json() for part in self.parts}
        return told
