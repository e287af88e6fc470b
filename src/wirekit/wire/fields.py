"""``this`` and ``len_``: construct's expressions, which here refuse to be a truth value.

Python needs the truth value of an operand in ``and``, ``or``, ``not``, ``in`` and ``a < b < c``, and returns one of the
operands. So a layout would depend on only a part of such a condition, without an error.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, NoReturn

from construct.expr import BinExpr, ExprMixin, FuncPath, Path, UniExpr

from wirekit.errors import Misuse


class _Guarded(ExprMixin):
    __iter__ = None  # the subscripts of a path would make it an endless sequence

    def __len__(self) -> NoReturn:
        raise Misuse(f"{self!r} has no length yet: write len_ instead of len")

    def __bool__(self) -> NoReturn:
        raise Misuse(
            f"a condition on fields, {self!r}, has no truth value: combine conditions with &, | and ~, each in "
            "parentheses, instead of and, or, not, in and a < b < c"
        )


class _Binary(_Guarded, BinExpr):
    pass


class _Unary(_Guarded, UniExpr):
    pass


def _guard(operator: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(operator)
    def guarded(*operands: Any) -> Any:
        result = operator(*operands)
        if isinstance(result, BinExpr):
            return _Binary(result.op, result.lhs, result.rhs)
        return _Unary(result.op, result.operand)

    return guarded


for _name, _operator in vars(ExprMixin).items():
    if callable(_operator) and _name not in ("__getstate__", "__setstate__"):
        setattr(_Guarded, _name, _guard(_operator))


class _Field(_Guarded, Path):
    def __getattr__(self, name: str) -> _Field:
        if name.startswith("__"):
            raise AttributeError(name)  # such as __deepcopy__
        return self[name]

    def __getitem__(self, name: Any) -> _Field:
        return _Field(vars(self)["_Path__name"], name, self)


class _Function(_Guarded, FuncPath):
    def __call__(self, operand: Any, *args: Any) -> Any:
        result = super().__call__(operand, *args)
        return _Function(len, operand) if type(result) is FuncPath else result


this: Any = _Field("this")
len_: Any = _Function(len)
