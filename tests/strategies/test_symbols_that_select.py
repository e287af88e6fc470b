"""What a schema promises to damage can be damaged, also where a symbol selects the layout of what follows."""

from __future__ import annotations

import pytest

import wirekit
from tests.own import own
from tests.strategies.laws import first
from wirekit.strategies import kinds, mutations
from wirekit.values import SymbolTable
from wirekit.wire import Length, Struct, Switch, Symbols, int16, int32, this, uint8, uint16

KIND = SymbolTable("kind", {0: "SMALL", 1: "LARGE"})
BODY = Switch(this.kind, {0: int16, 1: int32})


@pytest.mark.parametrize(
    "node",
    [
        Struct("kind" / Symbols(uint8, KIND), "body" / BODY),
        Struct("size" / Length(uint8, ("kind", "body")), "kind" / Symbols(uint16, KIND), "body" / BODY),
    ],
    ids=["alone", "in a length"],
)
def test_an_unknown_symbol_that_selects(node: Struct) -> None:
    with own(node) as key:
        assert "unknown symbol" in kinds(key)
        wrong = first(mutations(key, kinds=["unknown symbol"]), lambda mutation: mutation.name == "unknown symbol")
        decoded = wirekit.decode(wrong.data, key)
        assert decoded.error is not None
        assert decoded.value.kind.symbol is None
        assert len(wrong.data) == len(wrong.original)
