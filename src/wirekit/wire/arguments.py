"""Checks the arguments of nodes where a layout is declared, against the annotations of their constructors."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from types import UnionType
from typing import Any, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

from construct.expr import ExprMixin

from wirekit.errors import Misuse
from wirekit.values import quoted

Expression: TypeAlias = ExprMixin
Init = TypeVar("Init", bound=Callable[..., None])

DESCRIBED = {
    "Node": "a node such as int8",
    "Integer": "an integer such as int32",
    "Bytes": "a byte string such as Bytes(int32)",
    "ExprMixin": "an expression such as this.size",
    "DerivedFrom": "SizeOf or CountOf",
    "Layout": "Layout(node)",
    "int": "a number",
    "str": "text",
    "bytes": "bytes",
    "bool": "True or False",
    "float": "a number",
    "Mapping": "a mapping",
    "NoneType": "None",
}
PLURALS = {"ExprMixin": "expressions", "int": "numbers", "str": "texts", "bytes": "bytes", "Mapping": "mappings"}
"""The descriptions of types in messages, by name."""
REMEDIES = {
    ("Array", "count"): "; Repeat takes a number or an expression",
    ("Repeat", "count"): "; Array takes the integer before the elements",
    ("Sized", "length"): "; a Length before a field bounds it, too",
}
"""Other nodes for an argument, by node and argument."""


def checked(init: Init) -> Init:
    """A constructor that refuses arguments whose types differ from its annotations.

    Raises:
        Misuse: when called with such an argument.

    >>> from wirekit.wire import Array, int8
    >>> Array(int8, "text")
    Traceback (most recent call last):
    wirekit.errors.Misuse: Array: element must be a node such as int8, not 'text'
    """
    code = init.__code__
    names = code.co_varnames[1 : code.co_argcount]
    hints = functools.cache(functools.partial(get_type_hints, init))
    fitting: set[tuple[str, type]] = set()  # of types whose values all fit

    @functools.wraps(init)
    def check(self: Any, *args: Any, **kwargs: Any) -> None:
        for name, value in (*zip(names, args, strict=False), *kwargs.items()):
            if (name, type(value)) not in fitting:
                refuse_unless_fit(type(self).__name__, name, value, hints().get(name, Any))
                if not isinstance(value, (tuple, Mapping)):
                    fitting.add((name, type(value)))
        init(self, *args, **kwargs)

    return check  # type: ignore[return-value]


def refuse_unless_fit(owner: str, name: str, value: Any, hint: Any) -> None:
    """Refuses a value whose type differs from an annotation.

    Raises:
        Misuse: naming the owner of the annotation, the argument, and what to pass.
    """
    if not _fits(value, hint):
        remedy = REMEDIES.get((owner, name), "")
        raise Misuse(f"{owner}: {name} must be {_described(hint)}, not {quoted(value)}{remedy}")


def expression_text(expression: Any) -> str:
    """A ``this`` expression as it is written in messages.

    >>> from construct import this
    >>> expression_text(this._.size - this._params.version)
    '(_.size - context.version)'
    """
    text = repr(expression)
    for before, after in (("this['_params']", "context"), ("this['", ""), ("']['", "."), ("']", ""), ("['", ".")):
        text = text.replace(before, after)
    return text


def at_least(node: str, name: str, value: Any, least: int) -> None:
    """Refuses a number below a bound; anything but a number passes.

    Raises:
        Misuse: naming the node and the argument.
    """
    if isinstance(value, (int, float)) and value < least:
        raise Misuse(f"{node}: {name} must be at least {least}, not {quoted(value)}")


def one_of(node: str, name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Refuses a value that is not among the choices.

    Raises:
        Misuse: naming the node, the argument and the choices.
    """
    if value not in choices:
        raise Misuse(f"{node}: {name} must be one of {', '.join(choices)}, not {quoted(value)}")


def check_cases(node: str, on: Any, cases: Iterable[Any]) -> None:
    """Refuses values that an expression, or a tuple of expressions, never has.

    Raises:
        Misuse: naming the node and the value.
    """
    for value in cases:
        if not isinstance(on, tuple):
            if isinstance(value, tuple):
                raise Misuse(f"{node}: write a case for each value, not one for {value!r}: one expression selects it")
        elif not isinstance(value, tuple) or len(value) != len(on):
            raise Misuse(
                f"{node}: each case must be a tuple of {len(on)} values, one for each expression, not {value!r}"
            )
        for part in value if isinstance(value, tuple) else (value,):
            if part is not None and not isinstance(part, int | float | str | bytes):
                raise Misuse(f"{node}: a case must be for a number, text, bytes or None, not {part!r}")


def _fits(value: Any, hint: Any) -> bool:
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, UnionType):
        return any(_fits(value, each) for each in arguments)
    if origin is tuple:
        hints = [arguments[0]] * len(value) if arguments[-1] is ... and isinstance(value, tuple) else arguments
        return isinstance(value, tuple) and len(value) == len(hints) and all(map(_fits, value, hints))
    if origin is Mapping:
        of_key, of_value = arguments
        items = value.items() if isinstance(value, Mapping) else ()
        return isinstance(value, Mapping) and all(_fits(key, of_key) and _fits(each, of_value) for key, each in items)
    if hint is int and isinstance(value, bool):
        return False
    return callable(value) if origin is Callable else isinstance(value, hint)


def _described(hint: Any) -> str:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        *texts, last = dict.fromkeys(map(_described, arguments))
        return f"{', '.join(texts)} or {last}" if texts else last
    if origin is tuple:
        number = "" if arguments[-1] is ... else f"{len(arguments)} "
        return f"a tuple of {number}{PLURALS.get(arguments[0].__name__, f'{arguments[0].__name__} objects')}"
    if origin is Mapping:
        return f"a mapping to {_described(arguments[1])}"
    if origin is not None:
        return "a function"
    return "any value" if hint is Any else DESCRIBED.get(hint.__name__, f"a {hint.__name__}")
