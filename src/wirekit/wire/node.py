"""The base class of all nodes, and shared functions: expressions, paths of errors in JSON data.

Every node is a construct ``Construct`` whose parameters are plain attributes that a compiler can read. A node knows
three things: parse (``_parse``), build (``_build``), and the value of a JSON form (``load``).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping
from typing import Any

import construct

from wirekit.errors import Misfit, Misuse, Wrong
from wirekit.values import shown
from wirekit.wire.arguments import checked, expression_text
from wirekit.wire.fields import this
from wirekit.wire.stream import Reader, Scope, Writer

NOTHING = object()


class Node(construct.Construct):
    """A node of a layout: the base class of the vocabulary."""

    __iter__ = None  # construct's subscripts would make a node an endless sequence
    null: int | None = None  # the length or count that means null, if the node has one

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "__init__" in vars(cls):
            cls.__init__ = checked(cls.__init__)  # type: ignore[method-assign]

    def _parse(self, stream: Reader, context: Scope, path: str) -> Any:
        raise NotImplementedError

    def _build(self, obj: Any, stream: Writer, context: Scope, path: str) -> Any:
        raise NotImplementedError

    def load(self, obj: Any, context: Scope) -> Any:
        """The value for a piece of JSON data; a value that is not JSON data is returned unchanged."""
        return obj

    def default(self, context: Scope) -> Any:
        """The value of a field that a record leaves out when it is built; NOTHING if the field is required."""
        return None if self.null is not None else NOTHING

    def parts(self) -> list[tuple[str, Node]]:
        """(role, node) of the nodes inside, for walks over a schema."""
        return []

    @property
    def opaque(self) -> bool:
        """Whether the bytes are transformed (compressed, encrypted), so their number is not the size of the content."""
        return False

    @property
    def takes_all(self) -> bool:
        """Whether every value takes all bytes up to the limit."""
        return False

    def settled(self, context: Scope) -> Node:
        """The node with the layout of the value, without the nodes around it that only select it."""
        return self

    def plain_size(self, obj: Any, stream: Writer, context: Scope) -> int | None:
        """The size of a value in bytes, decompressed; None if it is unknown."""
        inner = stream.inside()
        self._build(obj, inner, context, "")
        return len(inner.buffer)


class Wrapping(Node):
    """A node that extends another node, which it wraps."""

    def __init__(self, inner: Node) -> None:
        super().__init__()
        self.inner = inner

    def _parse(self, stream: Reader, context: Scope, path: str) -> Any:
        return self.inner._parse(stream, context, path)

    def _build(self, obj: Any, stream: Writer, context: Scope, path: str) -> Any:
        return self.inner._build(obj, stream, context, path)

    def load(self, obj: Any, context: Scope) -> Any:
        return None if obj is None else self.inner.load(obj, context)

    def parts(self) -> list[tuple[str, Node]]:
        return [("inner", self.inner)]


class Missing(Wrong):
    """An expression reads a field that does not exist.

    Attributes:
        name: the name of the field.
    """

    def __init__(self, name: str, expected: Any, actual: Any) -> None:
        super().__init__(expected, actual)
        self.name = name


def load_part(part: str | int, load: Callable[[Any, Any], Any], obj: Any, context: Any) -> Any:
    """The result of a function that loads a field or an element; an error gets its name or index as outer part."""
    try:
        return load(obj, context)
    except (Misuse, Wrong) as error:
        placed = error if isinstance(error, (Misfit, Wrong)) else Misfit(str(error))
        name = f"[{part}]" if isinstance(part, int) else part
        dot = "" if not placed.path or placed.path.startswith("[") else "."
        placed.path = f"{name}{dot}{placed.path}"
        raise placed from None


def evaluate(expression: Any, context: Scope) -> Any:
    """The value of a constant or of a ``this`` expression.

    Raises:
        Wrong: if the expression reads a value that does not exist; the enclosing struct adds the place.
    """
    if not callable(expression):
        return expression
    try:
        return expression(context)
    except KeyError as error:
        name = str(error.args[0])
        raise Missing(name, f"a value for {name}", "nothing") from None
    except (TypeError, AttributeError, ZeroDivisionError) as error:
        why = _lacks(expression, context) or f" ({error})"
        raise Wrong(f"a value for {expression_text(expression)}", f"none{why}") from None


def shown_value(value: Any, expression: Any, context: Scope) -> Any:
    """The value of an expression for an error; with None in it, also which facts of the context are missing."""
    lacks = _lacks(expression, context) if value is None or (isinstance(value, tuple) and None in value) else ""
    return f"{value}{lacks}" if lacks else value


def _lacks(source: Any, context: Scope) -> str:
    """The facts that an expression, or a tuple of them, reads and the caller did not pass; "" for none."""
    from wirekit.compiler.expressions import Context, expression, operands_of

    trees = [expression(part) for part in (source if isinstance(source, tuple) else (source,))]
    names = dict.fromkeys(each.name for tree in trees for each in operands_of(tree) if isinstance(each, Context))
    lacking = [name for name in names if context["_params"][name] is None]
    return f" (the context {', '.join(lacking)} was not given)" if lacking else ""


def evaluate_size(expression: Any, context: Scope) -> int:
    """The value of an expression for a size or count; Wrong if it is not a number, or negative."""
    number = evaluate(expression, context)
    if not isinstance(number, int) or number < 0:
        raise Wrong("a length or count of at least 0", shown_value(number, expression, context))
    return number


def expect_size(expression: Any, unit: str, actual: int, stream: Writer, context: Scope) -> None:
    """Compares the size or count of a value with an expression, when the whole value is written.

    Earlier, the expression may read a length that is not computed yet.
    """
    path = tuple(stream.path)

    def compare() -> None:
        stream.path[:] = path
        expected = evaluate_size(expression, context)
        if expected != actual:
            raise stream.wrong(f"{expected} {unit}", f"{actual} {unit}")

    stream.later.append(compare)


def is_null(number: int, null: int | None) -> bool:
    """Whether a length means null: any up to ``null``, -1 (Kafka) or 0 (JoyQueue: empty and null alike)."""
    return null is not None and number <= null


def null_length(null: int | None, stream: Writer, *, coded: bool = False) -> int | None:
    """The length or count that means null in a field: that of ``$raw``, or ``null``.

    Args:
        coded: whether ``$raw`` may also have the bytes of a value that is not null.

    Raises:
        Wrong: ``$raw`` has something else.
    """
    raw = None if null is None else stream.noted("raw")
    if raw is None or (coded and isinstance(raw, bytes)):
        return null
    if not isinstance(raw, int) or not is_null(raw, null):
        raise stream.wrong(f"an integer of at most {null} in $raw", shown(raw))
    return raw


class wrapping:
    """Marks an optional wrapper as present, so that values inside it get a path of their own."""

    __slots__ = ("_path", "_wrapped")

    def __init__(self, stream: Reader | Writer, path: list[str | int]) -> None:
        self._wrapped, self._path = stream.wrapped, path

    def __enter__(self) -> None:
        self._wrapped.append(len(self._path))

    def __exit__(self, *_: object) -> None:
        self._wrapped.pop()


def load_number(obj: Mapping[str, Any]) -> Any:
    """The number of a symbol that is given in the JSON form."""
    if "value" not in obj:
        raise Misfit(f'a symbol must be a number, a name or {{"value": number}}, not {shown(obj)}')
    return obj["value"]


def unnamed(field: construct.Renamed) -> Any:
    """The node of ``"name" / node * "note"``; each of the two operators wraps it once."""
    node = field
    while isinstance(node, construct.Renamed):
        node = node.subcon
    return node


def check_names(names: list[Any]) -> None:
    """Refuses names that a record cannot have.

    Raises:
        Misuse: for a name that is not a Python identifier, begins with ``_``, occurs twice, or is another one after
            Python has normalised it (NFKC), as it does with ``record.name`` and ``this.name``.
    """
    for index, name in enumerate(names):
        if not isinstance(name, str) or not name.isidentifier() or name.startswith("_"):
            raise Misuse(f"a field name must be a Python identifier without a leading _, not {name!r}")
        if name != (normal := unicodedata.normalize("NFKC", name)):
            raise Misuse(f"Python reads a field {name!a} as {normal!a}; declare it as {normal!r}")
        if name in names[:index]:
            raise Misuse(f"two fields are called {name!r}")


class _Context:
    """``context.api``: a fact that the caller passes, as a ``this`` expression; None if it is not given."""

    def __getattr__(self, name: str) -> Any:
        return this._params[name]


context = _Context()
