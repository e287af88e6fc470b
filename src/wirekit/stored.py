"""The results of a protocol's readers of stored broker files: pieces with messages, and reports on directories."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from wirekit.errors import Damaged, WireError, plural
from wirekit.values import Gap

if TYPE_CHECKING:
    import pyarrow as pa

    from wirekit.conversation import Message

STRETCH = 64 << 20
"""The bytes of a stretch, in which a reader's windows do not depend on earlier stretches; see ``Start``."""


_NUMBER = re.compile(r"\[\d+\]")


class Start(NamedTuple):
    """The start of a stretch, where a part of a stored file can begin.

    A stretch begins with the last record that begins at a multiple of ``STRETCH`` or before it. From there on, a reader
    that begins in this place returns the same as a reader of the whole file.

    Attributes:
        stretch: the number of the stretch, from 0.
        position: the byte offset of its first record.
        state: the reader's knowledge of earlier records as a number; None if there is none.
    """

    stretch: int
    position: int
    state: int | None = None


class Walked(NamedTuple):
    """The result of a walk over the records of a stretch: its start, and that of the next stretch."""

    start: Start
    end: Start


class Part(NamedTuple):
    """A part of a stored file: where it begins, and where the next one does; None for the end of the file."""

    start: Start
    end: Start | None

    def size(self, of_file: int) -> int:
        """The size of the part in bytes, given the size of the file."""
        return (of_file if self.end is None else self.end.position) - self.start.position


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a file, and the application messages in it.

    The paths of its errors and gaps lose the number of the record (``messages[].message.crc``): it counts from the
    start of the piece, so it depends on how the file is divided.

    Attributes:
        offset, length: its place in the file, in bytes.
        messages: an iterator of the messages; empty if ``batch`` has them.
        batch: the messages as a ``pyarrow.RecordBatch``, or None. Columns are named after the attributes of ``Message``
            and of its facts; other attributes are in ``fixed``.
        fixed: attributes that all messages of the piece share.
        errors: the errors that end the file early.
        undecoded: the number of bytes at the end of the piece that these errors leave undecoded.
        damaged: the parts that were skipped.
        gaps: bytes of the file that no field explains.
        fits: whether the bytes show that the file has the format that the reader expects.
    """

    offset: int
    length: int
    messages: Iterable[Message] = ()
    batch: pa.RecordBatch | None = None
    fixed: Mapping[str, Any] = field(default_factory=dict)
    errors: tuple[WireError, ...] = ()
    undecoded: int = 0
    damaged: tuple[Damaged, ...] = ()
    gaps: tuple[Gap, ...] = ()
    fits: bool = False

    def __post_init__(self) -> None:
        for error in (*self.errors, *(part.error for part in self.damaged)):
            error.path = _unnumbered(error.path)
        object.__setattr__(self, "gaps", tuple(replace(gap, path=_unnumbered(gap.path)) for gap in self.gaps))

    @property
    def problems(self) -> list[str]:
        """The problems of the piece, as text, in the order of the file."""
        end = self.offset + self.length - self.undecoded
        problems = [(each.offset, str(each)) for each in self.damaged]
        problems += [(end, str(Damaged(end, self.undecoded if each.source else 0, each))) for each in self.errors]
        for gap in self.gaps:
            text = f"{plural(gap.length, 'unexplained byte')} at byte {gap.offset}"
            problems.append((gap.offset, ": ".join(filter(None, [text, gap.reason]))))
        return [text for _, text in sorted(problems)]

    def all_messages(self) -> Iterator[Message]:
        """All messages one by one, from either attribute."""
        from wirekit.conversation.events import SHOWN, Message

        yield from self.messages
        if self.batch is not None:
            place = self.batch.schema.get_field_index("timestamp")
            batch = self.batch.set_column(place, "timestamp", self.batch["timestamp"].view("int64"))
            for row in batch.to_pylist():
                facts = {name: row.pop(name) for name in tuple(row) if name not in SHOWN}
                present_facts = {name: value for name, value in facts.items() if value is not None}
                yield Message(**row, **self.fixed, facts=present_facts)


def _unnumbered(path: str) -> str:
    """The path of a field without the number of the record."""
    return _NUMBER.sub("[]", path, count=1)


@dataclass(frozen=True, slots=True)
class Problem:
    """A contradiction between the files of a directory.

    Attributes:
        file: its path.
        text: a description.
        offset: the byte offset in the file; None without a single place.
        entry: the number of the entry or line, from 0; None for files without entries.
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
        problems: the contradictions.
        parts: the reports of its subdirectories.
    """

    directory: str
    facts: dict[str, Any] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    parts: list[Report] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        """Whether there is no problem, here or in the parts."""
        return not self.problems and all(part.clean for part in self.parts)

    def to_json(self) -> dict[str, Any]:
        """facts, problems and, if there are any, parts by directory."""
        data = {**self.facts, "problems": [problem.to_json() for problem in self.problems]}
        if self.parts:
            data["parts"] = {part.directory: part.to_json() for part in self.parts}
        return data
