"""Lengths among the fields of a structure: absent, beside each other, around each other."""

from __future__ import annotations

import pytest

from tests.agreement.law import agree
from tests.own import own
from wirekit.wire import If, IfMore, Length, Struct, context, int8, rest, uint8

ABSENT = Struct("n" / IfMore(Length(uint8, "a", minimum=1)), "a" / rest())
SAID = Struct("n" / If(context.sized == 1, Length(uint8, "a")), "a" / rest(), "b" / If(context.sized == 1, int8))


@pytest.mark.parametrize("data", ["", "0141", "024142", "0341", "00"])
def test_a_length_that_is_absent_bounds_nothing(data: str) -> None:
    with own(ABSENT) as key:
        agree(key, bytes.fromhex(data), {}, columns=False)


@pytest.mark.parametrize(("data", "said"), [("014101", {"sized": 1}), ("4101", {}), ("", {}), ("0041", {"sized": 1})])
def test_a_length_under_a_condition(data: str, said: dict[str, int]) -> None:
    with own(SAID) as key:
        assert agree(key, bytes.fromhex(data), said, columns=False).clean
