"""The vocabulary of declarations.

A value is one of the classes below, a ``this`` expression over the frame's fields, or a path. A path is a list of names
with dots, with ``[]`` after a list for each element, or ``[0]`` for the first one: ``body.responses[].topic``. In
``Rows`` and ``Messages`` with ``each``, the ``[]`` that a path shares with ``each`` stand for the element of
the row. A field that is absent, in this frame or in this version of the layout, is null.

The type of the column decides the conversion: a number with a name gives its name to a string column (or the number in
digits, if it has no name), and the number to other columns. A number outside the range of the column is null: an
``int`` holds 32 bits with sign, so a ``uint32`` of 2**31 or more is lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, TypeVar

from wirekit.tables.columns import MESSAGES, PROPERTIES

Value = Any
"""A path, a ``this`` expression, or one of the classes below."""


@dataclass(frozen=True, slots=True, eq=False)
class Fixed:
    """A constant value."""

    value: str | int | bool


@dataclass(frozen=True, slots=True, eq=False)
class First:
    """The first of several values that is not null."""

    values: tuple[Value, ...]

    def __init__(self, *values: Value) -> None:
        object.__setattr__(self, "values", values)


@dataclass(frozen=True, slots=True, eq=False)
class Except:
    """A value, or null if it equals this number or text."""

    value: Value
    other: int | str


@dataclass(frozen=True, slots=True, eq=False)
class Total:
    """The sum of a number over the elements of a list, plus ``add`` for each; null without a list."""

    path: str
    add: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Text:
    """Values joined to a string with a separator; null if one of them is null."""

    separator: str
    values: tuple[Value, ...]

    def __init__(self, separator: str, *values: Value) -> None:
        object.__setattr__(self, "separator", separator)
        object.__setattr__(self, "values", values)


@dataclass(frozen=True, slots=True, eq=False)
class Extract:
    """The first group of a regular expression, searched in a string; null without a match."""

    value: Value
    pattern: str


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """A value of the request that this frame answers; null without one."""

    value: Value


@dataclass(frozen=True, slots=True, eq=False)
class Named:
    """A column of ``Names``: the latest meaning of a number or string on the connection."""

    names: str
    key: Value
    column: str


@dataclass(frozen=True, slots=True, eq=False)
class Inside:
    """A value inside bytes that a schema of the protocol decodes; null if they do not decode.

    Attributes:
        path: the path of the bytes.
        layout: the schema's key without the protocol.
        value: a value inside the decoded bytes.
    """

    path: str
    layout: str
    value: Value


@dataclass(frozen=True, slots=True, eq=False)
class Elements:
    """A list: one value per element, or with ``columns`` a structure of several.

    Attributes:
        each: path of the list, or of lists inside lists.
        columns: {field: value}; with none, the element itself.
    """

    each: str
    columns: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """The rows of a frame in a table.

    A row of a request and a row of its response in one table are merged if the table's ``keys`` that both declare
    agree (the first of equal rows with the first, and so on); if both have a column, the response's value counts.

    Attributes:
        table: ``calls`` and ``connections`` (one row per call or connection, with the first value that is not null),
            ``call_topics``, ``group_events`` or ``offsets``.
        layouts: keys of the layouts without the protocol; ``*`` matches any text.
        columns: {column: value}. Each path must exist in at least one of the layouts. A call with ``error`` failed:
            declare it beside ``error_code``, usually with the same value.
        each: the list with one row per element, ``body.responses[].partition_responses[]``; "" for one row per frame.
        kinds: for layouts in ``Tables.kinds``: names of the kinds of frames with rows; empty for all.
        when: an expression that must be true of the frame; None for always.
    """

    table: str
    layouts: str | tuple[str, ...]
    columns: Mapping[str, Value]
    each: str = ""
    kinds: tuple[str, ...] = ()
    when: Value = None


@dataclass(frozen=True, slots=True, eq=False)
class Names:
    """Meanings of a number or string on a connection; they hold until a later frame declares new ones.

    Attributes:
        name: the name by which ``Named`` refers to the meanings.
        layouts, kinds, when: the frames that declare the meanings, as in ``Rows``.
        key: the number or text.
        columns: {name: value} of its meanings.
    """

    name: str
    layouts: str | tuple[str, ...]
    key: Value
    columns: Mapping[str, Value]
    kinds: tuple[str, ...] = ()
    when: Value = None


@dataclass(frozen=True, slots=True, eq=False)
class Messages:
    """The application messages in frames.

    If the dialogue returns messages itself (compressed sets, batches, chunks), ``columns`` declares only the columns
    that these messages lack. Otherwise ``each`` and ``columns`` declare the messages.

    A message in a response is ``fetched``, or ``replicated`` if the call's ``is_replica`` is true; in another frame it
    is ``produced`` by a client or ``pushed`` by a server.

    Attributes:
        layouts, kinds, when: the frames that have messages, as in ``Rows``.
        each: the list of the messages; "" if the frame has one message.
        columns: {column of the table ``messages``: value}.
        payloads: paths that the values in the table ``frames`` leave out, because the table ``messages`` has them.
        fields: paths that ``batches`` reads.
        batches: ``module:name`` of a function that returns the messages of many frames at once, where the dialogue
            returns them frame by frame. It takes ``wirekit.tables.scopes.Frames`` and returns a batch with columns of
            the table ``messages``, and the row of the frame as ``@row``. "" leaves such frames to the dialogue.
    """

    layouts: str | tuple[str, ...]
    each: str = ""
    columns: Mapping[str, Value] = field(default_factory=dict)
    kinds: tuple[str, ...] = ()
    when: Value = None
    payloads: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    batches: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Present:
    """A column of the table ``messages`` in ``Tables.details``, omitted if it is null."""

    column: str


@dataclass(frozen=True, slots=True, eq=False)
class Embedded:
    """Rows of other tables in the keys and values of the messages of a topic.

    Attributes:
        table: ``group_events`` or ``offsets``.
        topic: its name.
        key, value: the layouts of both without the protocol; a ``value`` of "" declares rows of messages without a
            value, which delete their key.
        columns: {column: value}; paths begin with ``key`` or ``value``; ``value`` is null if the message's value is.
        each: as in ``Rows``; a message without such elements has one row.
        when: an expression over both that must be true.
    """

    table: str
    topic: str
    key: str
    value: str
    columns: Mapping[str, Value]
    each: str = ""
    when: Value = None


_Declared = TypeVar("_Declared", Rows, Names, Messages)


def _applies(declared: Rows | Names | Messages, layout: str, kind: str | None) -> bool:
    patterns = (declared.layouts,) if isinstance(declared.layouts, str) else declared.layouts
    is_kind = not declared.kinds or kind in declared.kinds
    return is_kind and any(fnmatchcase(layout, pattern) for pattern in patterns)


@dataclass(frozen=True, eq=False)
class Tables:
    """Declares how frames of a protocol fill the tables.

    Attributes:
        rows: rows of tables of frames; each applies to some layouts and kinds.
        names: meanings of numbers and strings, which later frames of a connection refer to.
        messages: the application messages in frames.
        embedded: rows in the keys and values of messages of some topics.
        kinds: {layout: path of the field with symbols that names the kind of a frame}, for layouts of many kinds of
            frames; ``Asked(path)`` for responses, whose kind is that of their request.
        details: {key: column of the table ``messages``}: keys that ``wirekit messages`` prints for this protocol
            besides the common keys. Properties become an object; a column in ``Present`` is omitted if it is null.
    """

    rows: tuple[Rows, ...] = ()
    names: tuple[Names, ...] = ()
    messages: tuple[Messages, ...] = ()
    embedded: tuple[Embedded, ...] = ()
    kinds: Mapping[str, str | Asked] = field(default_factory=dict)
    details: Mapping[str, str | Present] = field(default_factory=dict)

    def kind_of(self, layout: str) -> str | Asked | None:
        """The path of the kind of a layout's frames; None for a layout of one kind."""
        return next((path for pattern, path in self.kinds.items() if fnmatchcase(layout, pattern)), None)

    def of(self, layout: str, kind: str | None) -> Tables:
        """The rows, names and messages that are declared for frames of a layout and kind."""

        def chosen(declared: tuple[_Declared, ...]) -> tuple[_Declared, ...]:
            return tuple(each for each in declared if _applies(each, layout, kind))

        return Tables(chosen(self.rows), chosen(self.names), chosen(self.messages))

    @property
    def detail_columns(self) -> set[str]:
        """The columns that the details are read from."""
        return {detail.column if isinstance(detail, Present) else detail for detail in self.details.values()}

    def detailed(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The details of a message, from its columns.

        >>> Tables(details={"set": "properties"}).detailed({"properties": [{"name": "a", "value": "b"}]})
        {'set': {'a': 'b'}}
        """
        details: dict[str, Any] = {}
        for name, detail in self.details.items():
            column = detail.column if isinstance(detail, Present) else detail
            value = row.get(column)
            if value is None and isinstance(detail, Present):
                continue
            if value is not None and MESSAGES.types[column] == PROPERTIES:
                value = {each["name"]: each["value"] for each in value}
            details[name] = value
        return details
