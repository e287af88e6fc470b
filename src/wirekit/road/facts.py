"""Facts of the frames of an index that follow from their kinds and requests, without decoding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wirekit.registry import registry
from wirekit.road.index import Index, grouped

NOT_THERE = -1 << 63
"""A version that a frame does not have."""


@dataclass(slots=True)
class Facts:
    """Facts of the frames of an index, as arrays.

    Attributes:
        protocols, apis, schemas, roles: the names that occur.
        protocol, api, schema, role: places in these lists; no API is -1.
        version: ``NOT_THERE`` for none.
        numbered: whether the frame has a correlation id.
        answered: whether the frame is a request that gets a response.
    """

    protocols: list[str]
    apis: list[str]
    schemas: list[str]
    roles: list[str]
    protocol: NDArray[Any]
    api: NDArray[Any]
    schema: NDArray[Any]
    role: NDArray[Any]
    version: NDArray[Any]
    numbered: NDArray[Any]
    answered: NDArray[Any]


def context_of(index: Index, facts: Facts, frame: int) -> dict[str, Any]:
    """The context by which a frame is decoded."""
    kind, request = index.kinds[int(index.kind[frame])], int(index.request[frame])
    if kind.context and request >= 0 and facts.version[request] not in (0, NOT_THERE):
        return {kind.context: int(facts.version[request])}
    return {}


def facts_of(index: Index) -> Facts:
    """The facts of each frame."""
    kinds, kind, requests = index.kinds, index.kind, index.request
    has = requests >= 0
    kind_asked = kind[requests]
    protocols = sorted({*index.protocols} - {""})
    places = {name: place for place, name in enumerate(protocols)}
    protocol = np.array([places.get(name, -1) for name in index.protocols], np.int64)[index.connection]
    apis = sorted({each.api for each in kinds})
    place_of = {name: place for place, name in enumerate(apis)} | {"": -1}
    api_of = np.array([*(place_of[each.api] for each in kinds), -1], np.int64)
    api = np.where(has & (api_of[kind] < 0), api_of[kind_asked], api_of[kind])
    layouts = sorted({name for each in kinds for name in (each.layout, each.answer) if name})
    place_of = {name: place for place, name in enumerate(layouts)} | {"": -1}
    layout_of, answer_of = np.array([*((place_of[each.layout], place_of[each.answer]) for each in kinds), (-1, -1)]).T
    layout = np.where(has & (layout_of[kind] < 0), answer_of[kind_asked], layout_of[kind])
    schemas = [each.key(layout) for each in map(registry.protocol, protocols) for layout in layouts]
    fixed = np.array([each.version if isinstance(each.version, int) else NOT_THERE for each in kinds] + [0], np.int64)
    by_path = np.array([isinstance(each.version, str) for each in kinds] + [False])
    inherits = np.array([each.version is None and not each.api for each in kinds] + [False])
    version = np.where(by_path[kind], index.version, fixed[kind])
    version = np.where(has & inherits[kind], version[requests], version)
    of_answer = [NOT_THERE if each.answer_version is None else each.answer_version for each in kinds]
    answered_in = np.array([*of_answer, NOT_THERE], np.int64)[kind_asked]
    version = np.where(has & inherits[kind] & (answered_in != NOT_THERE), answered_in, version)
    roles = ["event", "request", "response"]
    role = np.array([roles.index(each.role) for each in kinds] + [0], np.int64)[kind]
    numbered = np.array([bool(each.number) for each in kinds] + [False])[kind]
    return Facts(
        protocols, apis, schemas, roles, protocol, api, protocol * len(layouts) + layout, role, version, numbered,
        role == roles.index("request"),
    )  # fmt: skip


def alike(facts: Facts, index: Index) -> list[NDArray[Any]]:
    """Groups of frames that are decoded together: of one layout and kind.

    If decoding depends on the request, the requests of a group are of one kind and version as well.
    """
    rows = np.flatnonzero(~index.odd[index.connection])
    if not rows.size:
        return []
    context = np.array([bool(each.context) for each in index.kinds], bool)[index.kind[rows]]
    version = np.where(context, facts.version[index.request[rows]], 0)
    particular = np.array([each.particular for each in index.kinds], bool)
    request_kinds = np.where(index.request[rows] >= 0, index.kind[index.request[rows]], -1)
    request_kinds = np.where(particular[request_kinds], request_kinds, -1)
    codes = np.stack([index.kind[rows], facts.schema[rows], version, request_kinds])
    return [rows[group] for group in grouped(codes)]
