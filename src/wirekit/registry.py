"""The registry of protocols and schemas; parsing, building and every tool look layouts up here by key.

A protocol is registered with one line, ``wirekit.register(PROTOCOL)``, or by a package that names it as an entry
point of the group ``wirekit.protocols``. A protocol of wirekit itself is imported when one of its keys is first
requested, so that the use of one protocol does not load the others.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.machinery import PathFinder
from itertools import chain
from typing import TYPE_CHECKING, Any, get_type_hints

import construct

from wirekit.compiler.generated import forget
from wirekit.errors import Misuse
from wirekit.values import shown
from wirekit.wire.arguments import refuse_unless_fit
from wirekit.wire.node import Node
from wirekit.wire.references import answer_by
from wirekit.wire.stream import Limits

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from wirekit.compiler import ir
    from wirekit.conversation import Dialogue
    from wirekit.conversation.pairing import Pairing
    from wirekit.engine import Decoded
    from wirekit.stored import Piece, Start, Walked
    from wirekit.tables import Tables

ENTRY_POINTS = "wirekit.protocols"
DIALOGUE = "wirekit.conversation:Dialogue"
PAIRING = "wirekit.conversation.pairing:Pairing"
BEGINNINGS = "wirekit.schemas.beginnings:BEGINNINGS"
BUILT_IN = {
    "net": "wirekit.schemas.net:PROTOCOL",
    "kafka": "wirekit.schemas.kafka:PROTOCOL",
    "pulsar": "wirekit.schemas.pulsar:PROTOCOL",
    "joyqueue": "wirekit.schemas.jmq4:JOYQUEUE",
    "jmq4": "wirekit.schemas.jmq4:JMQ4",
}
OF_YOUR_OWN = "a protocol of your own must be installed as a package, or registered"
MOST_SIMILAR = 8
"""The maximum number of keys that the error for a part of them lists; a Kafka API with four versions has as many."""
WITHOUT_STREAM = ("net",)  # those without a byte stream; recognising a stream does not import them


@dataclass(frozen=True, slots=True)
class Beginning:
    """The beginning of a stream of another format than expected, such as TLS or a PROXY header.

    Attributes:
        title: the name of the format.
        starts: byte strings; the stream begins with one of them.
        header: the key of the layout of a header that precedes the expected protocol; else "".
        longest: the maximal size of a header in bytes.
        advice: a suggestion for the reader.
    """

    title: str
    starts: tuple[bytes, ...]
    header: str = ""
    longest: int = 0
    advice: str = ""

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


@dataclass(frozen=True)
class Schema:
    """A layout under its key.

    Attributes:
        key: ``<protocol>.<name>…``, for example ``kafka.fetch.response.v2``.
        declared: the layout, or a function that returns it.
        protocol: the protocol's name.
        description: one line for ``wirekit schemas``.
        source: the specification of the layout.
        limits: the default limits.
        notes: notes for readers, each with its source.
    """

    key: str
    declared: Node | Callable[[], Node] = field(repr=False)
    protocol: str
    description: str
    source: str
    limits: Limits
    notes: tuple[Note, ...] = ()

    @cached_property
    def node(self) -> Node:
        """The layout as it is declared."""
        return self.declared if isinstance(self.declared, Node) else self.declared()

    @cached_property
    def layout(self) -> ir.Node:
        """The layout as IR, which all compiled engines are generated from.

        Raises:
            Misuse: the compiler does not support the layout.
        """
        from wirekit.compiler.lower import lower

        try:
            return lower(self.node)
        except Misuse as error:
            raise Misuse(f"{self.key}: {error}") from None

    @cached_property
    def cost(self) -> int:
        """Memory of a value in bytes, except for parts that depend on its bytes (see ``wirekit.compiler.costs``)."""
        from wirekit.compiler.costs import cost

        return cost(self.layout)

    @cached_property
    def fixed_size(self) -> int | None:
        """The size in bytes of all values; None if sizes differ."""
        from wirekit.compiler.ir import fixed_size

        return fixed_size(self.layout)

    @cached_property
    def is_framed(self) -> bool:
        """Whether the size of a value is known from its beginning.

        That is a ``Struct`` with a ``Length`` that covers all fields after it, except for those of a fixed size, or one
        of a fixed size.
        """
        from wirekit.wire.composite import Struct

        return isinstance(self.node, Struct) and bool(self.node.sized_by or self.fixed_size)

    def check_framed(self) -> None:
        """Refuses a layout whose values are no frames of a stream.

        Raises:
            Misuse: if ``is_framed`` is false.
        """
        if not self.is_framed:
            raise Misuse(
                f"{self.key}: a frame of a stream is a Struct with a Length that covers all fields after it, or with a "
                f"fixed size; for other layouts, leave out client and server and call wirekit.frames({self.key!r}, …)"
            )

    def check(self, beside: Mapping[str, Schema] | None = None) -> None:
        """Refuses an invalid layout.

        Args:
            beside: the schemas of the protocol by key, while they are not registered yet.

        Raises:
            Misuse: if the compiler does not know a node, a field or layout that it names does not exist, or no bytes
                fit the layout, or its nodes are nested deeper than Python's stack.
        """
        try:
            self._check(beside)
        except RecursionError:
            raise Misuse(f"{self.key}: the nodes are nested deeper than Python's stack") from None

    def _check(self, beside: Mapping[str, Schema] | None) -> None:
        from wirekit.compiler.references import check_references
        from wirekit.compiler.validity import check_validity

        layout = self.layout

        def resolve(key: str) -> ir.Node | None:
            if "." not in key:
                text = "a key has the name of the protocol in front"
                raise Misuse(f"the layout refers to {key}; {text}: {self.protocol}.{key}")
            if not key.startswith(f"{self.protocol}."):
                return None  # it may be registered later
            known = registry if beside is None else beside
            if key not in known:
                raise Misuse(f"the layout refers to {key}, which the protocol {self.protocol} does not declare")
            return known[key].layout

        try:
            check_references(layout)
            check_validity(layout, resolve)
        except Misuse as error:
            raise Misuse(f"{self.key}: {error}") from None


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
            need frames whose size is known from their beginning: a ``Struct`` with a ``Length`` that covers all fields
            after it, except for those of a fixed size, or a ``Struct`` of a fixed size.
        server: the layout of frames from the server, as ``client``.
        recognised_by: layouts whose clean decode proves that bytes are of this protocol.
        records: layouts of parts of frames that are often decoded alone and are recognised by their constants.
        readings: context to suggest for frames that do not decode without it.
        limits: default limits.
        ports: usual server ports, a hint only.
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
        examined: {layout: ``module:function``}; the function takes a decoded value and adds verdicts that need a search
            in its bytes. `wirekit decode` calls it.
        directory: ``module:function`` that checks the files of a broker's directory against each other. It takes the
            path and returns a ``wirekit.stored.Report``, or None for a directory of another kind. "" for none.
        built: {layout with columns: ``module:function``}; the function takes a key, a batch and the options of
            ``build_columns`` by name, and returns the bytes.
        dialogue: ``module:name`` of a subclass of ``wirekit.conversation.Dialogue``, or a function that returns the
            class. Each connection gets its own object.
        pairing: ``module:name`` of a ``wirekit.conversation.pairing.Pairing``: the kinds of frames and the numbers that
            pair them, as data. "" if only the dialogue pairs frames.
        rules: ``module:name`` of the ``wirekit.rules.RuleSet`` that conversations are checked against, "" for none.
        tables: the declaration that maps fields to columns of tables (see ``wirekit.tables``), or its ``module:name``;
            "" for the columns that every protocol has.
        beginnings: headers that may precede a stream of any protocol, such as those of the PROXY protocol.
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
        """The declaration of the tables."""
        from wirekit.tables import Tables

        if not isinstance(self.tables, str):
            return self.tables
        if not self.tables:
            return Tables()
        tables: Tables = named(self.tables)
        return tables

    @cached_property
    def paired(self) -> Pairing | None:
        """The declaration of the pairing; None without one.

        Raises:
            Misuse: it names a layout, field or kind that does not exist.
        """
        if not self.pairing:
            return None
        from wirekit.tables.checking import check_pairing

        pairing: Pairing = named(self.pairing)
        if not isinstance(pairing, named(PAIRING)):
            raise Misuse(f"{self.name}: {self.pairing} must be a wirekit.conversation.pairing.Pairing, not {pairing!r}")
        check_pairing(self.name, pairing, _layouts(self, registry))
        return pairing

    def examine(self, decoded: Decoded) -> None:
        """Adds the verdicts that need a search in the bytes of a value, if its layout is ``examined``."""
        place = self.examined.get(decoded.schema.removeprefix(f"{self.name}."))
        if place is not None:
            named(place)(decoded)

    def reader(self, layout: str, *, columns: bool = False) -> Callable[..., Iterator[Piece]]:
        """The function that reads files of a layout: of ``stored_columns`` if requested and declared, or ``stored``."""
        function: Callable[..., Iterator[Piece]] = named(
            (columns and self.stored_columns.get(layout)) or self.stored[layout]
        )
        return function

    def walk(self, layout: str) -> Callable[[str, int, Start | None], Walked | None] | None:
        """The function that walks over stretches of files of a layout; None if they cannot be read in parts."""
        place = self.stored_walks.get(layout)
        return None if place is None else named(place)

    def follow(self) -> Dialogue:
        """A new dialogue, which follows one connection."""
        return self._followed_by(self)

    @cached_property
    def _followed_by(self) -> type[Dialogue]:
        """The class of the dialogue."""
        dialogue = named(self.dialogue) if isinstance(self.dialogue, str) else self.dialogue()
        if not (isinstance(dialogue, type) and issubclass(dialogue, named(DIALOGUE))):
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
        """The key of the frames that a side (``client`` or ``server``) sends."""
        key = self._streams[side != "client"]
        if not key:
            raise Misuse(f"{self.name} has no byte stream; decode one of {', '.join(map(self.key, self.layouts))}")
        return key


class Registry:
    """Protocols by name and schemas by key."""

    def __init__(self) -> None:
        self._protocols: dict[str, Protocol] = {}
        self._schemas: dict[str, Schema] = {}
        self._lock = threading.RLock()
        self._searched = False
        self._beginnings: dict[bytes, list[Beginning]] | None = None  # by their first byte
        self._with_stream: tuple[Protocol, ...] | None = None
        self._broken: dict[str, str] = {}  # why an entry point gave no protocol, by its name

    def register(self, protocol: Protocol) -> Protocol:
        """Adds a protocol; all its keys can be used from then on.

        Raises:
            Misuse: another protocol has the name; the name, a layout or a reference to a layout is invalid; the
                compiler does not support a layout; or its tables refer to something that does not exist.
        """
        with self._lock:
            known = self._protocols.get(getattr(protocol, "name", ""))
            if known is not None and known == protocol:
                return protocol
            _check_names(protocol)
            if known is not None or (protocol.name in BUILT_IN and not self._loads_itself(protocol)):
                raise Misuse(f"a protocol {protocol.name!r} is registered already; give this one another name")
            schemas = _schemas(protocol)
            beside = {schema.key: schema for schema in schemas}
            for schema in schemas:
                schema.check(beside)
            if protocol.tables:
                check_declaration(protocol, beside)
            self._add(protocol, schemas)
        return protocol

    def unregister(self, name: str) -> None:
        """Removes a protocol and all code generated from its layouts; another protocol may then have its name.

        Raises:
            Misuse: there is no protocol of that name.
        """
        with self._lock:
            protocol = self.protocol(name)
            keys = [protocol.key(name) for name in protocol.layouts]
            del self._protocols[protocol.name]
            self._beginnings = self._with_stream = None
            for key in keys:
                del self._schemas[key]
            forget(keys)

    def _add(self, protocol: Protocol, schemas: list[Schema]) -> None:
        self._protocols[protocol.name] = protocol
        self._beginnings = self._with_stream = None
        self._schemas.update({schema.key: schema for schema in schemas})

    def _loads_itself(self, protocol: Protocol) -> bool:
        module, name = BUILT_IN[protocol.name].split(":")
        return getattr(importlib.import_module(module), name, None) is protocol

    def _load(self, name: str) -> None:
        with self._lock:
            if name in BUILT_IN and name not in self._protocols:
                protocol = named(BUILT_IN[name])
                self._add(protocol, _schemas(protocol))  # that they can be compiled is tested

    def _search(self) -> None:
        """Registers the protocols that other packages declare as entry points."""
        with self._lock:
            if self._searched:
                return
            self._searched = True
            if not _packages_may_add():
                return
            from importlib import metadata  # slow to import, and needed only here

            for entry in metadata.entry_points(group=ENTRY_POINTS):
                try:
                    declaration = entry.load()
                    self.register(declaration() if callable(declaration) else declaration)
                except Exception as error:  # noqa: BLE001  # the code of another package may raise anything
                    self._give_up(entry, error)

    def _give_up(self, entry: EntryPoint, error: Exception) -> None:
        """Continues without the protocol of an entry point."""
        package = f" of {entry.dist.name} {entry.dist.version}" if entry.dist is not None else ""
        entry_point = f"the entry point {entry.name} = {entry.value}{package}"
        self._broken[entry.name] = f"{entry_point} does not give a protocol: {type(error).__name__}: {error}"
        warnings.warn(self._broken[entry.name], RuntimeWarning, stacklevel=2)

    def _refuse(self, key: str) -> None:
        """Raises the error of the entry point that should have provided the protocol of a key."""
        why = self._broken.get(key.partition(".")[0])
        if why is not None:
            raise Misuse(f"{key}: {why}")

    def __getitem__(self, key: str) -> Schema:
        """The schema of a key.

        Raises:
            Misuse: there is no such key; the text lists similar keys.
        """
        schema = self._schemas.get(key) or self._find(key)
        if schema is None:
            self._refuse(key)
            raise Misuse(self._unknown(key))
        return schema

    def _find(self, key: str) -> Schema | None:
        """The schema of a key, whose protocol is loaded first; None if there is none."""
        self._load(key.partition(".")[0])
        if key not in self._schemas:
            self._search()
        return self._schemas.get(key)

    def _unknown(self, key: str) -> str:
        protocols = self.protocols()
        if key in protocols:
            return f"{key!r} is a protocol, not a schema; `wirekit schemas {key}` lists its schemas"
        near = self._similar(key)
        advice = f"did you mean {', '.join(near)}?" if near else "`wirekit schemas` lists them all"
        if not near and key.partition(".")[0] not in protocols:
            advice = f"{advice}; {OF_YOUR_OWN}"
        return f"no schema {shown(key)}; {advice}"

    def _similar(self, name: str) -> list[str]:
        """The keys with a part of this name, or else with the most similar part; a protocol, if its name is that."""
        import difflib

        keys, protocols, name = self.keys(), self.protocols(), name.lower()
        words = [key.split(".") for key in keys]
        parts = {".".join(each[i:j]) for each in words for i in range(len(each)) for j in range(i + 1, len(each) + 1)}
        close = next(iter(difflib.get_close_matches(name, [*protocols, *sorted(parts)], n=1, cutoff=0.7)), ".")
        if close in protocols:
            return [close]
        if close in keys:
            return difflib.get_close_matches(name, keys, n=5, cutoff=0.7)
        return sorted(key for key in keys if f".{close}." in f".{key}.")[:MOST_SIMILAR]

    def __contains__(self, key: object) -> bool:
        return str(key) in self._schemas or self._find(str(key)) is not None

    def keys(self) -> list[str]:
        """All keys of all protocols, in the order of their declaration."""
        self._load_all()
        return list(self._schemas)

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self.keys())

    def _load_all(self) -> None:
        for name in BUILT_IN:
            self._load(name)
        self._search()

    def beginning(self, data: bytes, *, cut: bool = False) -> Beginning | None:
        """The format of the first bytes of a stream, if a loaded protocol declares it as a ``Beginning``.

        Args:
            data: the first bytes.
            cut: whether a part of a start is enough, because more bytes may come.
        """
        if self._beginnings is None:
            self._beginnings = self._by_first_byte()
        for each in self._beginnings.get(data[:1], ()):
            if data.startswith(each.starts) or (cut and any(start.startswith(data) for start in each.starts)):
                return each
        return None

    def _by_first_byte(self) -> dict[bytes, list[Beginning]]:
        beginnings: dict[bytes, list[Beginning]] = {}
        tables = [protocol.beginnings for protocol in list(self._protocols.values())]
        for each in chain(named(BEGINNINGS), *tables):
            for first in dict.fromkeys(start[:1] for start in each.starts):
                beginnings.setdefault(first, []).append(each)
        return beginnings

    def protocols(self) -> list[str]:
        """The names of all protocols: the built-in protocols in the order of ``BUILT_IN``, then the others."""
        self._load_all()
        return list(dict.fromkeys([*BUILT_IN, *self._protocols]))

    def with_stream(self) -> tuple[Protocol, ...]:
        """The protocols that can be recognised: the built-in protocols in the order of ``BUILT_IN``, then the others.

        Protocols whose frames do not state their size are left out.
        """
        if self._with_stream is not None:
            return self._with_stream
        ours = [name for name in BUILT_IN if name not in WITHOUT_STREAM]
        for name in ours:
            self._load(name)
        self._search()
        names = dict.fromkeys([*ours, *self._protocols])
        protocols = (self._protocols[name] for name in names if self._protocols[name].recognised_by)
        self._with_stream = tuple(each for each in protocols if each.name in ours or self._is_framed(each))
        return self._with_stream

    def _is_framed(self, protocol: Protocol) -> bool:
        return all(self[key].is_framed for key in protocol._streams if key)

    def protocol(self, name: str) -> Protocol:
        """The protocol of a name, or of the first part of a key.

        Raises:
            Misuse: there is no such protocol; the text lists the names.
        """
        name = name.partition(".")[0]
        known = self._protocols.get(name)
        if known is not None:
            return known
        self._load(name)
        if name not in self._protocols:
            self._search()
        try:
            return self._protocols[name]
        except KeyError:
            self._refuse(name)
            near = self._similar(name)
            names = f"did you mean {', '.join(near)}?" if near else f"choose from {', '.join(self.protocols())}"
            raise Misuse(f"no protocol {shown(name)}; {names}{'' if near else f'; {OF_YOUR_OWN}'}") from None


def named(place: str) -> Any:
    """The object that ``module:name`` names.

    Raises:
        Misuse: there is no such module or object.
    """
    module, name = place.split(":")
    try:
        return getattr(importlib.import_module(module), name)
    except (AttributeError, ImportError) as error:
        raise Misuse(f"{place}: {error}") from error


def _packages_may_add() -> bool:
    """Whether ``importlib.metadata``, which is slow to import, can find our entry points; False is certain."""
    if any(hasattr(finder, "find_distributions") for finder in sys.meta_path if finder is not PathFinder):
        return True
    return any(_may_add(place or os.curdir) for place in sys.path)


def _may_add(place: str) -> bool:
    """Whether an entry of ``sys.path`` may contain such entry points."""
    try:
        names = os.listdir(place)
    except OSError:
        return os.path.isfile(place)  # an archive
    for name in names:
        if name.endswith(".egg"):
            return True
        if name.endswith((".dist-info", ".egg-info")):
            try:
                with open(os.path.join(place, name, "entry_points.txt"), "rb") as file:
                    if ENTRY_POINTS.encode() in file.read():
                        return True
            except OSError:
                continue  # the protocol has none
    return False


def check_declaration(protocol: Protocol, schemas: Mapping[str, Schema]) -> None:
    """Refuses a declaration of tables that names a table, column or path that does not exist.

    Args:
        protocol: the protocol with the declaration.
        schemas: the schemas of the protocol by key.

    Raises:
        Misuse: for a table, column or path that does not exist.
    """
    from wirekit.tables.checking import check_tables

    check_tables(protocol.name, protocol.declared, _layouts(protocol, schemas))


def _layouts(protocol: Protocol, schemas: Mapping[str, Schema] | Registry) -> dict[str, Callable[[], ir.Node]]:
    """{key without the protocol: gives its IR}."""

    def layout(key: str) -> Callable[[], ir.Node]:
        return lambda: schemas[key].layout

    return {name: layout(protocol.key(name)) for name in protocol.layouts}


def _check_names(protocol: Protocol) -> None:
    """Refuses a protocol whose name cannot begin a key, or with invalid names of layouts or objects."""
    _check_types(protocol)
    name = protocol.name
    if not re.fullmatch(r"[\w-]+", name):
        raise Misuse(f"{name!r} cannot be the name of a protocol; use letters, digits, _ and -")
    if not protocol.layouts:
        raise Misuse(f"{name}: declare at least one layout")
    for key, layout in protocol.layouts.items():
        if not re.fullmatch(r"\w+(\.\w+)*", key):
            raise Misuse(
                f"{name}: {key!r} cannot be the name of a layout; use words of letters, digits and _, joined by dots"
            )
        node: Any = layout.node  # callers may work without a type checker
        if not isinstance(node, Node) and not callable(node):
            kind = type(node)
            package = kind.__module__.partition(".")[0]
            type_name = kind.__name__ if package == "builtins" else f"{package}.{kind.__name__}"
            remedy = "write it with wirekit.wire" if kind is not construct.Renamed else "put the field in a Struct"
            raise Misuse(f"{name}.{key}: a layout of type {type_name} cannot be compiled; {remedy}")
    referred = [("client", protocol.client), ("server", protocol.server)]
    referred += [("recognised_by", key) for key in protocol.recognised_by]
    referred += [("records", key) for key in protocol.records]
    referred += [("variant_of", layout.variant_of) for layout in protocol.layouts.values()]
    places = {"dialogue": protocol.dialogue, "tables": protocol.tables}
    places |= {role: getattr(protocol, role) for role in ("pairing", "rules", "directory")}
    referred += [("stored_names", key) for key in protocol.stored_names]
    for role in ("stored", "stored_columns", "stored_walks", "examined", "built"):
        referred += [(role, key) for key in getattr(protocol, role)]
        places |= {f"{role}[{key!r}]": place for key, place in getattr(protocol, role).items()}
    for role, key in referred:
        if key and key not in protocol.layouts:
            raise Misuse(f"{name}: {role} names {key!r}, which is no layout; choose from {', '.join(protocol.layouts)}")
    for role, place in places.items():
        if place and isinstance(place, str) and place.count(":") != 1:
            raise Misuse(f"{name}: {role} must have the form module:name, not {place!r}")
    for port in protocol.ports:
        if not 0 < port < 1 << 16:
            raise Misuse(f"{name}: a port must be in 1..65535, not {port}")
    for key, pattern in protocol.stored_names.items():
        try:
            re.compile(pattern)
        except re.error as error:
            raise Misuse(f"{name}: stored_names[{key!r}] is not a regular expression: {error}") from None


def _check_types(protocol: Any) -> None:
    from wirekit.tables import Tables

    if not isinstance(protocol, Protocol):
        raise Misuse(f"register takes a wirekit.Protocol, not {protocol!r}")
    for name in ("pairing", "rules"):
        if not isinstance(place := getattr(protocol, name), str):
            kind = type(place).__name__
            raise Misuse(f"the protocol {protocol.name}: {name} must have the form module:name, not a {kind}")
    for name, hint in get_type_hints(Protocol, localns={"Dialogue": Any, "Tables": Tables}).items():
        refuse_unless_fit(f"the protocol {protocol.name}", name, getattr(protocol, name), hint)


def _schemas(protocol: Protocol) -> list[Schema]:
    return [
        Schema(
            protocol.key(name),
            layout.node,
            protocol.name,
            layout.description,
            layout.source,
            protocol.limits,
            layout.notes,
        )
        for name, layout in protocol.layouts.items()
    ]


def _cost(node: Node) -> int:
    from wirekit.compiler.costs import cost
    from wirekit.compiler.lower import lower

    return cost(lower(node))


def _fixed_size(node: Node) -> int | None:
    from wirekit.compiler.ir import fixed_size
    from wirekit.compiler.lower import lower

    return fixed_size(lower(node))


registry = Registry()
answer_by(registry.__getitem__, _cost, _fixed_size)


def variants(key: str) -> list[str]:
    """The keys of the declared variants of a layout, in the order of their declaration.

    >>> variants("kafka.offset_commit.request.v0")
    ['kafka.offset_commit.request.v0.beta']
    """
    return registry.protocol(key).variants.get(key, [])


def register(protocol: Protocol) -> Protocol:
    """Adds a protocol to the global registry.

    >>> from wirekit.registry import Layout, Protocol, register
    >>> from wirekit.wire import String, Struct, int16
    >>> greeting = Struct("name" / String(int16))
    >>> register(Protocol("greeting", "An example", {"hello": Layout(greeting)})).key("hello")
    'greeting.hello'
    """
    return registry.register(protocol)
