"""The registry: protocols by name and schemas by key, loaded when one of their keys is first requested."""

from __future__ import annotations

import importlib
import threading
import warnings
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

from wirekit.compiler.generated import forget
from wirekit.errors import Misuse, raised
from wirekit.registry.checks import check_declaration, check_protocol
from wirekit.registry.declarations import Beginning, Protocol, load_object
from wirekit.registry.packages import entry_points, refusal
from wirekit.registry.schema import Schema, schemas_of
from wirekit.values import shown
from wirekit.wire.references import answer_by

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from wirekit.compiler import ir
    from wirekit.wire.node import Node

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
"""The maximum number of keys that an error suggests for a part of a key; a Kafka API with four versions has eight."""
WITHOUT_STREAM = ("net",)  # those without a byte stream; recognising a stream does not import them


class Registry:
    """Protocols by name and schemas by key."""

    def __init__(self) -> None:
        self._protocols: dict[str, Protocol] = {}
        self._schemas: dict[str, Schema] = {}
        self._lock = threading.RLock()
        self._searched = False
        self._beginnings: dict[bytes | None, list[Beginning]] | None = None  # by their first byte; None: at an offset
        self._with_stream: tuple[Protocol, ...] | None = None
        self._broken: dict[str, str] = {}  # why an entry point gave no protocol, by its name

    def register(self, protocol: Protocol) -> Protocol:
        """Adds a protocol; all its keys can be used from then on.

        Raises:
            Misuse: another protocol has the name; the name, a layout or a reference to a layout is invalid; the
                compiler does not support a layout; or its tables refer to something that does not exist.
        """
        with self._lock:
            registered = self._protocols.get(getattr(protocol, "name", ""))
            if registered is not None and registered == protocol:
                return protocol
            check_protocol(protocol)
            if registered is not None or (protocol.name in BUILT_IN and not self._loads_itself(protocol)):
                raise Misuse(f"a protocol {protocol.name!r} is already registered; give this one another name")
            schemas = schemas_of(protocol)
            for schema in schemas.values():
                schema.check(schemas)
            if protocol.tables:
                check_declaration(protocol, schemas)
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

    def _add(self, protocol: Protocol, schemas: dict[str, Schema]) -> None:
        self._protocols[protocol.name] = protocol
        self._beginnings = self._with_stream = None
        self._schemas.update(schemas)

    def _loads_itself(self, protocol: Protocol) -> bool:
        module, name = BUILT_IN[protocol.name].split(":")
        return getattr(importlib.import_module(module), name, None) is protocol

    def _load(self, name: str) -> None:
        with self._lock:
            if name in BUILT_IN and name not in self._protocols:
                protocol = load_object(BUILT_IN[name])
                self._add(protocol, schemas_of(protocol))  # that they can be compiled is tested

    def _search(self) -> None:
        """Registers the protocols that other packages declare as entry points."""
        with self._lock:
            if self._searched:
                return
            self._searched = True
            try:
                entries = list(entry_points())
            except Exception as error:  # noqa: BLE001  # metadata of any package may be damaged
                text = f"the packages that are installed cannot be searched for protocols: {raised(error)}"
                warnings.warn(text, RuntimeWarning, stacklevel=2)
                return
            for entry in entries:
                try:
                    declaration = entry.load()
                    self.register(declaration() if callable(declaration) else declaration)
                except KeyboardInterrupt:
                    raise
                except BaseException as error:  # noqa: BLE001  # the code of another package may raise anything
                    self._give_up(entry, error)

    def _give_up(self, entry: EntryPoint, error: BaseException) -> None:
        """Continues without the protocol of an entry point."""
        self._broken[entry.name] = refusal(entry, error)
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
        return next((each for each in self._beginnings[None] if data.startswith(each.starts, each.offset)), None)

    def _by_first_byte(self) -> dict[bytes | None, list[Beginning]]:
        beginnings: dict[bytes | None, list[Beginning]] = {None: []}
        tables = [protocol.beginnings for protocol in list(self._protocols.values())]
        for each in chain(load_object(BEGINNINGS), *tables):
            for first in dict.fromkeys(None if each.offset else start[:1] for start in each.starts):
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
        built_in = [name for name in BUILT_IN if name not in WITHOUT_STREAM]
        for name in built_in:
            self._load(name)
        self._search()
        names = dict.fromkeys([*built_in, *self._protocols])
        protocols = (self._protocols[name] for name in names if self._protocols[name].recognised_by)
        self._with_stream = tuple(each for each in protocols if each.name in built_in or self._is_framed(each))
        return self._with_stream

    def _is_framed(self, protocol: Protocol) -> bool:
        return all(self[key].is_framed for key in protocol._streams if key)

    def protocol(self, name: str) -> Protocol:
        """The protocol of a name, or of the first part of a key.

        Raises:
            Misuse: there is no such protocol; the text lists the names.
        """
        if not isinstance(name, str):
            raise Misuse(f"the name of a protocol must be text, not {shown(name)}")
        name = name.partition(".")[0]
        if name not in self._protocols:
            self._load(name)
        if name not in self._protocols:
            self._search()
        if name in self._protocols:
            return self._protocols[name]
        self._refuse(name)
        near = self._similar(name)
        names = (
            f"did you mean {', '.join(near)}?" if near else f"choose from {', '.join(self.protocols())}; {OF_YOUR_OWN}"
        )
        raise Misuse(f"no protocol {shown(name)}; {names}")


def _lowered(node: Node) -> ir.Node:
    from wirekit.compiler.lower import lower

    return lower(node)


registry = Registry()
answer_by(registry.__getitem__, _lowered)


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
