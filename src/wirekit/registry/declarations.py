"""Declarations of protocols: their layouts, notes, streams and the modules with their behaviour."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from wirekit.errors import Misuse
from wirekit.wire.references import Entry, referred
from wirekit.wire.stream import Limits

if TYPE_CHECKING:
    from wirekit.compiler import ir
    from wirekit.conversation import Dialogue
    from wirekit.conversation.pairing import Pairing
    from wirekit.engine import Decoded
    from wirekit.stored import Piece, Start, Walked
    from wirekit.tables import Tables
    from wirekit.wire.node import Node

DIALOGUE = "wirekit.conversation:Dialogue"
PAIRING = "wirekit.conversation.pairing:Pairing"


@dataclass(frozen=True, slots=True)
class Beginning:
    """The first bytes of a stream in an unexpected format, such as TLS or a PROXY header.

    Attributes:
        title: the name of the format.
        starts: byte strings; the stream begins with one of them.
        header: the key of the layout of a header that precedes the expected protocol, with the name of the protocol
            that declares it (``amqp.protocol_header``); else "".
        longest: the maximal size of such a header in bytes.
        advice: a suggestion for the reader.
        offset: the offset of these byte strings; only for formats without a header.
    """

    title: str
    starts: tuple[bytes, ...]
    header: str = ""
    longest: int = 0
    advice: str = ""
    offset: int = 0

    @property
    def described(self) -> str:
        """The title and the advice."""
        return f"{self.title}{': ' if self.advice else ''}{self.advice}"

    def __str__(self) -> str:
        return f"these bytes are {self.described}"


@dataclass(frozen=True, slots=True)
class Note:
    """A note for readers of a layout, such as where a document and an implementation differ; with a source."""

    text: str
    source: str


@dataclass(frozen=True, slots=True)
class Layout:
    """The declaration of a layout in a protocol.

    Attributes:
        node: the node, or a function that returns it when the layout is first used, so that a protocol with many
            layouts loads fast.
        description: one line for `wirekit schemas`.
        source: the specification of the layout.
        notes: notes for readers, each with its source.
        variant_of: the layout (its key without the protocol) that is tried first; bytes that do not fit it but fit this
            layout are decoded by this layout.
    """

    node: Node | Callable[[], Node]
    description: str = ""
    source: str = ""
    notes: tuple[Note, ...] = ()
    variant_of: str = ""


@dataclass(frozen=True)
class Protocol:
    """A protocol: its layouts, and the frames of its byte streams.

    Attributes:
        name: the first part of every key.
        title: the full name.
        layouts: {key without the protocol: Layout}; the key ``kafka.request`` is declared as ``request``.
        client: the layout of frames from the client, "" if the protocol has no byte stream. Conversations and captures
            need frames whose size is known from their beginning: a ``Struct`` with a ``Length`` that bounds all fields
            after it, except for those of a fixed size, or a ``Struct`` of a fixed size.
        server: the layout of frames from the server, as ``client``.
        recognised_by: layouts whose clean decode proves that bytes are of this protocol. Leave out short layouts that
            arbitrary bytes may fit. If the first frames of a connection fit several protocols, the protocol with the
            most frames wins, then the one whose frames have the most bytes, then the one registered first.
        records: layouts of parts of frames that are often decoded alone and are recognised by their constants.
        readings: context to suggest for frames that do not decode without it.
        limits: default limits.
        ports: usual server ports, for the protocol's page and the Wireshark dissector. Captures are recognised by
            their bytes alone.
        stored: {layout of a file of messages: ``module:function``}; the function takes the file's path and
            yields ``wirekit.stored.Piece`` objects with single messages.
        stored_columns: as ``stored``, for functions whose pieces have the messages in columns where possible. They may
            need the extra ``columns``, and take a second argument: the set of requested columns, or None for all. For a
            layout in ``stored_walks``, they take a third one: the ``wirekit.stored.Part`` to read, or None.
        stored_walks: {layout of ``stored_columns``: ``module:function``}; the function walks over the records of a
            stretch, so that several tasks can read parts of a large file. It takes the path, the number of the stretch,
            and its ``wirekit.stored.Start``, or None to search for it. It returns ``wirekit.stored.Walked``, or None if
            it finds no start, or a record that a reader might not step over by its size.
        stored_names: {layout of a stored file: regular expression for the names of such files}. Files of a layout
            that ``stored`` lacks have no messages; `wirekit decode` knows their layout.
        stored_topics: {layout of ``stored`` whose files do not contain the topic: ``module:function``}; the function
            takes the path of a file and returns the topic in it, or None if the path has none.
        examined: {layout: ``module:function``}; the function takes a decoded value and adds verdicts that need a search
            in its bytes. `wirekit decode` calls it.
        directory: ``module:function`` that checks the files of a broker's directory against each other. It takes the
            path and returns a ``wirekit.stored.Report``, or None for a directory of another kind. "" for none.
        built: {layout with columns: ``module:function``}; the function takes a key, a batch and the options of
            ``build_columns`` by name, and returns the bytes.
        dialogue: ``module:name`` of a subclass of ``wirekit.conversation.Dialogue``, or a function that returns the
            class. Each connection gets its own object.
        pairing: ``module:name`` of a ``wirekit.conversation.pairing.Pairing``: the kinds of frames and the numbers that
            pair them, as data, besides the dialogue. "" if only the dialogue pairs frames.
        rules: ``module:name`` of the ``wirekit.rules.RuleSet`` that conversations are checked against, "" for none.
        tables: the declaration that maps fields to columns of tables (see ``wirekit.tables``), or its ``module:name``;
            "" for the columns that every protocol has.
        beginnings: headers that may precede the frames of a stream, such as AMQP's protocol header, and the first bytes
            of other formats, which the reports name.
    """

    name: str
    title: str
    layouts: Mapping[str, Layout]
    client: str = ""
    server: str = ""
    recognised_by: tuple[str, ...] = ()
    records: tuple[str, ...] = ()
    readings: tuple[Mapping[str, Any], ...] = ()
    limits: Limits = field(default_factory=Limits)
    ports: tuple[int, ...] = ()
    stored: Mapping[str, str] = field(default_factory=dict)
    stored_columns: Mapping[str, str] = field(default_factory=dict)
    stored_walks: Mapping[str, str] = field(default_factory=dict)
    stored_names: Mapping[str, str] = field(default_factory=dict)
    stored_topics: Mapping[str, str] = field(default_factory=dict)
    examined: Mapping[str, str] = field(default_factory=dict)
    directory: str = ""
    built: Mapping[str, str] = field(default_factory=dict)
    dialogue: str | Callable[[], type[Dialogue]] = DIALOGUE
    pairing: str = ""
    rules: str = ""
    tables: str | Tables = ""
    beginnings: tuple[Beginning, ...] = ()

    @property
    def declared(self) -> Tables:
        """The declaration of the tables.

        Raises:
            Misuse: ``tables`` names an object that does not exist or is not a ``Tables``.
        """
        from wirekit.tables import Tables

        if not isinstance(self.tables, str):
            return self.tables
        tables = load_object(self.tables) if self.tables else Tables()
        if not isinstance(tables, Tables):
            raise Misuse(f"{self.name}: {self.tables} must be a wirekit.tables.Tables, not {tables!r}")
        return tables

    @cached_property
    def paired(self) -> Pairing | None:
        """The declaration of the pairing; None without one.

        Raises:
            Misuse: the pairing names a layout, field or kind that does not exist, or a field that is not an integer.
        """
        if not self.pairing:
            return None
        from wirekit.tables.checking import check_pairing

        pairing: Pairing = load_object(self.pairing)
        if not isinstance(pairing, load_object(PAIRING)):
            raise Misuse(f"{self.name}: {self.pairing} must be a wirekit.conversation.pairing.Pairing, not {pairing!r}")
        check_pairing(self.name, pairing, layouts(self))
        return pairing

    def examine(self, decoded: Decoded) -> None:
        """Adds the verdicts that need a search in the bytes of a value, if its layout is ``examined``."""
        place = self.examined.get(decoded.schema.removeprefix(f"{self.name}."))
        if place is not None:
            load_object(place)(decoded)

    def reader(self, layout: str, *, columns: bool = False) -> Callable[..., Iterator[Piece]]:
        """The function that reads files of a layout: of ``stored_columns`` if requested and declared, or ``stored``."""
        function: Callable[..., Iterator[Piece]] = load_object(
            (columns and self.stored_columns.get(layout)) or self.stored[layout]
        )
        return function

    def walk(self, layout: str) -> Callable[[str, int, Start | None], Walked | None] | None:
        """The function that walks over stretches of files of a layout; None if they cannot be read in parts."""
        place = self.stored_walks.get(layout)
        return None if place is None else load_object(place)

    def follow(self) -> Dialogue:
        """A new dialogue, which follows one connection."""
        return self._followed_by(self)

    @cached_property
    def _followed_by(self) -> type[Dialogue]:
        """The class of the dialogue."""
        dialogue = load_object(self.dialogue) if isinstance(self.dialogue, str) else self.dialogue()
        if not (isinstance(dialogue, type) and issubclass(dialogue, load_object(DIALOGUE))):
            raise Misuse(
                f"{self.name}: dialogue must give a subclass of wirekit.conversation.Dialogue, not {dialogue!r}"
            )
        return dialogue

    @cached_property
    def variants(self) -> dict[str, list[str]]:
        """{key of a layout: keys of its declared variants}."""
        variants: dict[str, list[str]] = {}
        for name, layout in self.layouts.items():
            if layout.variant_of:
                variants.setdefault(self.key(layout.variant_of), []).append(self.key(name))
        return variants

    @cached_property
    def _streams(self) -> tuple[str, str]:
        """The keys of the frames of client and server, "" for none."""
        return self.client and self.key(self.client), self.server and self.key(self.server)

    def key(self, name: str) -> str:
        """The full key of a layout."""
        return f"{self.name}.{name}"

    def stream(self, side: str) -> str:
        """The key of the frames that a side (``client`` or ``server``) sends.

        Raises:
            Misuse: the protocol has no byte stream.
        """
        key = self._streams[side != "client"]
        if not key:
            raise Misuse(f"{self.name} has no byte stream; decode one of {', '.join(map(self.key, self.layouts))}")
        return key


def layouts(protocol: Protocol, schema: Callable[[str], Entry] = referred) -> dict[str, Callable[[], ir.Node]]:
    """{key without the protocol: function that returns its IR}.

    Args:
        protocol: the protocol.
        schema: returns the schema of a key; the default is the registered one.
    """

    def layout(key: str) -> Callable[[], ir.Node]:
        return lambda: schema(key).layout

    return {name: layout(protocol.key(name)) for name in protocol.layouts}


def load_object(place: str) -> Any:
    """The object that ``module:name`` names.

    Raises:
        Misuse: there is no such module or object, or the module cannot be imported.
    """
    module, name = place.split(":")
    try:
        return getattr(importlib.import_module(module), name)
    except (AttributeError, ImportError) as error:
        raise Misuse(f"{place}: {error}") from error
