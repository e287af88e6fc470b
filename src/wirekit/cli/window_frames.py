"""The frames of a window that columns have read, as objects: those that match, or that are requested."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wirekit.capture.links import Link, connection_name
from wirekit.cli.filters_columns import Selected
from wirekit.cli.windows import AT_ONCE
from wirekit.conversation import SIDES, Conversation, Description, Frame
from wirekit.engine import decode_bytes
from wirekit.registry import registry
from wirekit.road.assembly import Assembly
from wirekit.road.facts import NOT_THERE, context_of


class WindowFrames(Assembly):
    """The frames of plain connections, each decoded when it is requested.

    Attributes:
        matches: for each frame of the index, whether it matches.
        matching: those that match.

    Args:
        selected: selects the frames; None for all.
        arguments: as for ``Assembly``.
    """

    def __init__(self, selected: Selected | None, *arguments: Any) -> None:
        super().__init__(*arguments)
        index = self.index
        request_kind = np.where(index.request >= 0, index.kind[index.request], -1)
        headed = np.array([*(kind.headed for kind in index.kinds), False])
        contextual = np.array([*(bool(kind.context) for kind in index.kinds), False])
        self._alone = headed[index.kind] | headed[request_kind] | (self.facts.numbered & (index.number < 0))
        self._contextual = contextual[index.kind]
        self._links: dict[int, Link] = {}
        self.matches = np.ones(index.kind.size, bool) if selected is None else selected.among(self)
        # A plain connection has no frame that is wrong for another reason than its errors and checks.
        self.matching = self.frames[self.matches[self.frames]]

    def decoded(self, frames: NDArray[Any]) -> Iterator[tuple[int, Frame]]:
        """Some frames of the index, each with its place there, without their requests and messages."""
        for begin in range(0, frames.size, AT_ONCE):
            yield from self._decoded(frames[begin : begin + AT_ONCE])

    def _decoded(self, frames: NDArray[Any]) -> Iterator[tuple[int, Frame]]:
        index, facts = self.index, self.facts
        columns = (
            index.side, index.start, index.stop, index.position, index.time, index.number, index.request,
            facts.numbered, facts.protocol, facts.schema, facts.api, facts.version, facts.role, facts.answered,
            self._alone, self._contextual,
        )  # fmt: skip
        stream = self.streams.stream.data
        for number, *row in zip(frames.tolist(), *(column[frames].tolist() for column in columns), strict=True):
            (
                side, start, stop, offset, time_us, correlation_id, request, numbered, protocol, key, api, version,
                role, answered, alone, contextual,
            ) = row  # fmt: skip
            data, schema = bytes(stream[start:stop]), registry[facts.schemas[key]]
            context = context_of(index, facts, number) if contextual else {}
            description = Description(
                facts.apis[api] if api >= 0 else None,
                None if version == NOT_THERE else version,
                correlation_id if numbered else None,
                facts.roles[role],
                answered or facts.roles[role] != "request",
            )
            decoded = decode_bytes(schema, data, context, schema.limits, offset)
            frame = Frame(facts.protocols[protocol], SIDES[side], offset, data, time_us, decoded, description)
            if alone:
                self._describe(frame, request, stream)
            yield number, frame

    def _describe(self, frame: Frame, request: int, stream: memoryview) -> None:
        """Adds facts that only the protocol's dialogue knows, from a conversation of the frame and its request."""
        conversation = Conversation(frame.protocol)
        if request >= 0:
            start, stop = int(self.index.start[request]), int(self.index.stop[request])
            conversation.receive(SIDES[int(self.index.side[request])], bytes(stream[start:stop]))
        for event in conversation.receive(frame.side, frame.data):
            if isinstance(event, Frame):
                frame.description, frame.reason = event.description, event.reason

    def link(self, flow: int) -> Link:
        """The connection of a flow."""
        link = self._links.get(flow)
        if link is None:
            streams = self.streams
            client, server = (self._address(int(ends[flow])) for ends in (streams.client, streams.server))
            name, opened_us = connection_name(client, server, int(self._ordinals[flow])), int(streams.opened[flow])
            known_start, closed_us = bool(streams.known[flow]), int(streams.closed[flow])
            protocol = self.index.protocols[flow]
            link = self._links[flow] = Link(name, client, server, opened_us, known_start, closed_us, protocol)
        return link
