"""The state of open conversations between windows: a row of columns for each connection.

A connection has a row here if only whole frames of it are pending, such as requests without a response.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wirekit.tables.columns import FATES, SIDES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wirekit.conversation import Names

Called = tuple[str, int, tuple[str | None, ...]]
"""API and version of a call, and the client's name for itself, empty where that was not read."""
CONVERSATION = np.dtype(
    [
        ("connection", np.int64),
        ("protocol", object),
        ("calls", np.int64),
        ("errors", np.int64),
        ("sizes", np.int64, (len(SIDES), len(FATES))),
        ("skipped", np.int64, len(SIDES)),
        ("stated", np.int64),
        ("most", np.int64),
        ("called", object),
        ("facts", object),
        ("names", object),
        ("waits", np.bool_),
        ("one_sided", np.bool_),
        ("follower", object),
    ]
)
"""A conversation that columns follow.

- ``connection``: a flow of a window, or a row of ``States``; ``protocol``: its name.
- ``calls``, ``errors``: calls in the tables so far, and those with an error.
- ``sizes``: payload bytes by side and fate, without those of skipped frames.
- ``skipped``: by side, bytes of frames that columns have read, so that objects skip them.
- ``stated``, ``most``: the frame size that the last of these frames states, and the largest size that both sides have
  agreed on; 0 for none.
- ``called``: the calls in these frames, as ``Called``; ``facts``: columns of ``connections``; ``names``: the meanings
  of declared names.
- ``waits``: whether objects must report its end, because they know of waiting calls or of the end of a side.
- ``one_sided``: see ``wirekit.conversation.requests``.
- ``follower``: the ``Follower`` of the frames that objects have read, its state as bytes, or None if there are none.
"""
CARRIED = np.dtype(
    [
        ("connection", np.int64),
        ("side", np.int64),
        ("position", np.int64),
        ("time", np.int64),
        ("data", object),
    ]
)
"""A frame that is not reported yet: its connection, as in ``CONVERSATION``; its side, 0 for the client; its offset in
its direction; the capture time of its last byte, microseconds since the epoch; its bytes."""


@dataclass(frozen=True, slots=True)
class Begun:
    """Connections of a window that have been followed to a point at which nothing is pending, by flow.

    Attributes:
        conversations: the state of each at that point.
        ordinals: the number of each among the connections between its endpoints.
        places: (connection, side) where the next frame begins in ``Streams.stream``.
        final: whether the connection ends in this window, so that no response comes later. False if a frame that an
            earlier window cut has not continued since: it may be a response, and objects read it at the end.
        ends: whether the end needs no further report if all bytes are whole frames.
        unheard: (connection, side) whether the side has sent nothing so far. If the handshake is missing as well, its
            first frame must be clean and without a header in front; otherwise objects search for a frame.
        alone: whether one side has sent nothing up to the end of this window.
        carried: frames of earlier windows, which come first: waiting requests, and frames that may depend on them.
        overdue: waiting requests that objects have reported, as ``CARRIED`` rows. If one is answered
            or its number is used again, objects must follow the connection.
    """

    conversations: NDArray[Any]
    ordinals: NDArray[Any]
    places: NDArray[Any]
    final: NDArray[Any]
    ends: NDArray[Any]
    unheard: NDArray[Any]
    alone: NDArray[Any]
    carried: NDArray[Any]
    overdue: NDArray[Any]

    @property
    def flows(self) -> NDArray[Any]:
        """The numbers of the flows, ascending."""
        return self.conversations["connection"]

    def only(self, which: NDArray[Any]) -> Begun:
        """Some of the connections, without carried frames and overdue requests."""
        frames = {"carried": self.carried[:0], "overdue": self.overdue[:0]}
        return Begun(
            **frames, **{each.name: getattr(self, each.name)[which] for each in fields(self) if each.name not in frames}
        )

    def up_to(self, flows: NDArray[Any]) -> Begun:
        """Some of the connections, with all of their frames, which do not end in this window."""
        which = np.isin(self.flows, flows)
        carried, overdue = (each[np.isin(each["connection"], flows)] for each in (self.carried, self.overdue))
        none = np.zeros(np.count_nonzero(which), bool)
        return replace(self.only(which), final=none, ends=none, carried=carried, overdue=overdue)


@dataclass(frozen=True, slots=True)
class Followed:
    """Frames of begun connections that are in the tables.

    Attributes:
        flows: the connections.
        places, sizes: (connection, side) where the frames end in ``Streams.stream``, and how many bytes they have.
        waiting: frames that are not in the tables yet, in the order of arrival.
        calls, errors: the number of calls, and of those with an error.
        called: for each connection the set of its calls, as ``Called``.
        facts: for each connection, columns of the table ``connections``.
        names, most: by flow, the attributes of ``Skipped``.
        one_sided: for each connection, the field of ``CONVERSATION``.
    """

    flows: NDArray[Any]
    places: NDArray[Any]
    sizes: NDArray[Any]
    waiting: NDArray[Any]
    calls: NDArray[Any]
    errors: NDArray[Any]
    called: NDArray[Any]
    facts: NDArray[Any]
    names: Mapping[int, Names]
    most: Mapping[int, int]
    one_sided: NDArray[Any]


def conversations(connections: Sequence[int] | NDArray[Any], protocols: Any = "") -> NDArray[Any]:
    """New conversations, without any frame."""
    rows = np.zeros(len(connections), CONVERSATION)
    rows["connection"], rows["protocol"] = connections, protocols
    rows["called"], rows["facts"], rows["names"], rows["follower"] = frozenset(), None, None, None
    return rows


def nothing_begun() -> Begun:
    """No connections."""
    sides = np.zeros((0, len(SIDES)), np.int64)
    none = sides[:, 0] > 0
    return Begun(conversations([]), sides[:, 0], sides, none, none, sides > 0, none, *np.zeros((2, 0), CARRIED))
