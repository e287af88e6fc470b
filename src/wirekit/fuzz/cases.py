"""A case: bytes for a target, the name of their damage, and wirekit's own verdict on them."""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from wirekit import decoding
from wirekit.errors import Misuse, plural
from wirekit.registry import registry
from wirekit.strategies import EDITED
from wirekit.values import to_json

SOUND = "sound"
ORIGINAL = "original"
REPLAYED = "replayed"
LONGEST_NAME = 60


@dataclass(frozen=True)
class Expectation:
    """wirekit's verdict on a case, which determines the behaviour of a correct peer.

    Attributes:
        verdict: ``sound`` for a value without a complaint; ``damaged`` for an error; ``doubtful`` for a value with a
            failed check, unexplained bytes, or bytes after it, which peers treat in different ways.
        says: the error or failed check, with path and offset.
        source: the specification of the layout, or of the refusal by peers.
        value: the value in the JSON form, if the case is not damaged.
        fault: the kind of the error and its path without indexes, or "".
    """

    verdict: str
    says: str = ""
    source: str = ""
    value: Any = None
    fault: str = ""


@dataclass(frozen=True)
class Case:
    """Bytes for a target.

    Attributes:
        key: the schema key of the layout.
        data: the bytes.
        kind: ``sound``, ``original``, ``edited``, or a kind of damage (``wirekit.strategies.KINDS``).
        path: the damaged field.
        offset: of the first byte that differs from the sound frame; None if unknown.
        context: as for ``wirekit.decode``.
    """

    key: str
    data: bytes
    kind: str
    path: str = ""
    offset: int | None = None
    context: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """A file name: kind, path, and the beginning of the hash of the bytes."""
        where = re.sub(r"[^A-Za-z0-9]+", "-", f"{self.kind} {self.path}").strip("-")[:LONGEST_NAME].rstrip("-")
        return f"{where}-{hashlib.sha256(self.data).hexdigest()[:10]}"

    @functools.cached_property
    def expectation(self) -> Expectation:
        """wirekit's verdict on the bytes."""
        schema = registry[self.key]
        decoded = decoding.decode(self.data, self.key, context=self.context)
        if decoded.error is not None:
            fault = f"{decoded.error.kind} {without_indexes(decoded.error.path)}"
            return Expectation("damaged", str(decoded.error), schema.source, fault=fault)
        value = to_json(decoded.value)
        for check in decoded.checks:
            if check.status == "bad":
                note, _, source = check.note.partition(" [")
                stored = f": stored {check.stored}, computed {check.computed}" if check.computed is not None else ""
                says = f"{check.path}: {check.kind} check fails{stored}{': ' if note else ''}{note}"
                return Expectation("doubtful", says, source.removesuffix("]") or schema.source, value)
        trailing = len(self.data) - decoded.consumed
        if decoded.gaps or trailing:
            says = (
                f"{plural(trailing, 'byte')} after the value"
                if trailing
                else f"{decoded.gaps[0].path}: bytes that no field explains"
            )
            return Expectation("doubtful", says, schema.source, value)
        return Expectation("sound", "", schema.source, value)

    def with_data(self, data: bytes) -> Case:
        """The case with other bytes; of another size, the offset of the damage is no longer known."""
        return replace(self, data=data, offset=self.offset if len(data) == len(self.data) else None)

    def shrunk(self) -> Case:
        """The case, shrunk from another one, with a kind that is true of its bytes."""
        if self.expectation.verdict == SOUND:
            return replace(self, kind=SOUND, path="", offset=None)
        return replace(self, kind=EDITED, path="") if self.kind in (SOUND, ORIGINAL) else self

    def to_json(self) -> dict[str, Any]:
        """The case as stored in its file, without the bytes."""
        expected = self.expectation
        return {
            "key": self.key,
            "kind": self.kind,
            "path": self.path,
            "offset": self.offset,
            "length": len(self.data),
            "context": dict(self.context),
            "verdict": expected.verdict,
            "says": expected.says,
            "source": expected.source,
        }

    @classmethod
    def from_json(cls, line: Any, data: bytes) -> Case:
        """The case of ``to_json`` and its bytes.

        Raises:
            Misuse: for JSON that is not a case.
        """
        names = ("key", "kind", "path")
        if not isinstance(line, dict) or not all(isinstance(line.get(name), str) for name in names):
            raise Misuse("a case must be an object with key, kind and path")
        offset, context = line.get("offset"), line.get("context", {})
        if not isinstance(context, dict) or not (offset is None or isinstance(offset, int)):
            raise Misuse("context of a case must be an object, and offset a number")
        registry[line["key"]]
        return cls(line["key"], data, line["kind"], line["path"], offset, context)


def first_difference(data: bytes, original: bytes) -> int:
    """The offset of the first byte in which two byte strings differ.

    >>> first_difference(b"abc", b"abd"), first_difference(b"ab", b"abd")
    (2, 2)
    """
    shorter = min(len(data), len(original))
    return next((at for at in range(shorter) if data[at] != original[at]), shorter)


def without_indexes(path: str) -> str:
    """A path without the indexes of elements.

    >>> without_indexes("body.topics[3].name")
    'body.topics[].name'
    """
    return re.sub(r"\[\d+\]", "[]", path)
