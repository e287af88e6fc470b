"""A declaration that names what is not there is refused when its protocol is registered."""

from __future__ import annotations

from typing import Any

import pytest

from wirekit.errors import Misuse
from wirekit.registry import Layout, Protocol, Registry, check_declaration, registry
from wirekit.tables import Asked, Elements, Embedded, Fixed, Inside, Messages, Named, Names, Rows, Tables, Total
from wirekit.values import SymbolTable
from wirekit.wire import Array, Bytes, String, Struct, Symbols, int16, int32, this

KINDS = SymbolTable("kind", {1: "PUT", 2: "GET"})
ITEM = Struct("name" / String(int16), "sizes" / Array(int16, int32))
FRAME = Struct("kind" / Symbols(int16, KINDS), "items" / Array(int16, ITEM), "blob" / Bytes(int16))


def declared(*rows: Rows, **more: Any) -> Protocol:
    tables = Tables(rows, **{"kinds": {"frame": "kind"}, **more})
    return Protocol("shop", "Shop", {"frame": Layout(FRAME), "item": Layout(ITEM)}, "frame", "frame", tables=tables)


@pytest.mark.parametrize("name", [name for name in registry.protocols() if registry.protocol(name).tables])
def test_the_declarations_that_come_with_wirekit_hold(name: str) -> None:
    protocol = registry.protocol(name)
    check_declaration(protocol, {key: registry[key] for key in map(protocol.key, protocol.layouts)})


def test_a_declaration_that_holds_is_registered() -> None:
    Registry().register(
        declared(
            Rows("calls", "frame", {"topic": "items[0].name", "is_replica": this.kind == 1}, kinds=("PUT",)),
            Rows("call_topics", "fra*", {"topic": "items[].name", "bytes": Total("items[].sizes[]")}, "items[]"),
            Rows("group_events", "frame", {"event": Fixed("x"), "topics": Elements("items[]", {}), "group_id": "kind"}),
            Rows("offsets", "frame", {"group_id": Named("shop", "kind", "title")}),
            Rows("calls", "frame", {"client": Inside("blob", "item", "name"), "error_text": Asked("blob")}),
            names=(Names("shop", "frame", "kind", {"title": "blob"}),),
            messages=(Messages("frame", "items[]", {"value": "items[].name"}),),
            embedded=(
                Embedded("offsets", "x", "item", "frame", {"topic": "key.name"}),
                Embedded("offsets", "x", "item", "", {"topic": "key.name"}),
            ),
        )
    )


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        (Rows("call", "frame", {}), "no table 'call' can be declared; choose from calls, "),
        (Rows("calls", "frame", {"latency_us": "kind"}), "no column 'latency_us' of calls can be declared"),
        (Rows("calls", "frames", {}), "no layout 'frames'; choose from frame, item"),
        (Rows("calls", "frame", {"topic": "items[0].title"}), "frame has no 'items[0].title'; it has name, sizes"),
        (Rows("calls", "frame", {"topic": "goods"}), "frame has no 'goods'; it has blob, items, kind"),
        (Rows("calls", "frame", {"topic": "items[].name"}), "'items[].name' is a list here"),
        (Rows("calls", "frame", {"topic": "items.[]"}), "is not a path"),
        (Rows("calls", "frame", {"acks": this.goods > 1}), "has no 'goods'"),
        (Rows("calls", "frame", {"topic": "kind"}, "items[]"), "calls has one row per frame"),
        (
            Rows("call_topics", "frame", {"topic": "kind"}, "items"),
            "is not a list; write items[] for a list, or each='' for one per frame",
        ),
        (Rows("calls", "frame", {"topic": "kind"}, kinds=("POST",)), "frame has no kind 'POST'; choose from PUT, GET"),
        (Rows("calls", "item", {"topic": "name"}, kinds=("PUT",)), "the layout item declares no kinds"),
        (Rows("calls", "frame", {"topic": Named("shop", "kind", "title")}), "no Names declare shop.title"),
        (Rows("calls", "frame", {"topic": Inside("blob", "item", "goods")}), "item has no 'goods'"),
    ],
)
def test_an_unknown_name_is_reported_with_the_names_that_exist(rows: Rows, text: str) -> None:
    with pytest.raises(Misuse) as caught:
        Registry().register(declared(rows))
    assert str(caught.value).startswith("the tables of shop: ")
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"kinds": {"frame": "blob"}}, "no number with symbols at 'blob'"),
        ({"messages": (Messages("frame", payloads=("blobs",)),)}, "has no 'blobs'"),
        ({"embedded": (Embedded("calls", "x", "item", "item", {}),)}, "not 'calls'"),
        ({"embedded": (Embedded("offsets", "x", "item", "item", {"topic": "name"}),)}, "has no 'name'; it has key"),
        (
            {"embedded": (Embedded("offsets", "x", "item", "", {"topic": "value.name"}),)},
            "has no 'value.name'; it has key",
        ),
    ],
)
def test_so_is_the_rest_of_a_declaration(more: dict[str, Any], text: str) -> None:
    with pytest.raises(Misuse) as caught:
        Registry().register(declared(**more))
    assert text in str(caught.value)


def test_kinds_of_a_response_are_those_of_its_request() -> None:
    kinds = {"frame": "kind", "item": Asked("kind")}
    Registry().register(declared(Rows("calls", "item", {"topic": "name"}, kinds=("GET",)), kinds=kinds))
    with pytest.raises(Misuse, match="item has no kind 'POST'; choose from PUT, GET"):
        Registry().register(declared(Rows("calls", "item", {"topic": "name"}, kinds=("POST",)), kinds=kinds))
    with pytest.raises(Misuse, match="no layout has a number with symbols at 'goods'"):
        Registry().register(declared(kinds={"item": Asked("goods")}))


def test_a_name_of_another_object_is_refused() -> None:
    protocol = Protocol("shop", "Shop", {"frame": Layout(FRAME)}, tables="os:path")
    with pytest.raises(Misuse, match=r"shop: os:path must be a wirekit\.tables\.Tables, not <module 'posixpath'"):
        Registry().register(protocol)
