"""The state of open conversations between windows: a row of columns for each connection.

A connection has a row here if only whole frames of it are pending, such as requests without a response.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from wirekit.tables.columns import FATES, SIDES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from wirekit.conversation import Names

Called = tuple[str, int, tuple[str | None, ...]]
"""API and version of a call, and what the client calls itself; nothing where that was not read."""
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
        ("follower", object),
    ]
)
"""A conversation: its connection, which is a flow of a window or a row of ``States``; the protocol's name; calls in the
tables so far, and those with an error; payload bytes by side and fate, without those of skipped frames; by side, bytes
of frames that no object has followed; the bytes that the last of them states, and those that a frame may have, as both
sides have agreed, or 0; the calls that no object has followed, as ``Called``; columns of ``connections``; what
declared names stand for; whether objects have to tell its end, as they know of calls that wait or of the end of a side;
the ``Follower`` of what objects have followed, its state as bytes, or None if that is nothing."""
CARRIED = np.dtype(
    [
        ("connection", np.int64),
        ("side", np.int64),
        ("position", np.int64),
        ("time", np.int64),
        ("data", object),
    ]
)
"""A frame that nobody has told of: its connection, as above; 0 for the client's; where in its direction it begins; when
its last byte was captured, microseconds since the epoch; its bytes."""


@dataclass(frozen=True, slots=True)
class Begun:
    """Connections of a window that have been followed to a point at which nothing is pending, by flow.

    Attributes:
        conversations: of each what was known there.
        ordinals: their numbers among those of their endpoints.
        places: (connection, side) where the next frame begins in ``Streams.stream``.
        final: whether they end in this window, so that no answer comes later.
        ends: whether nothing is left to tell of them then, if all of it is whole frames.
        unheard: (connection, side) whether nothing came before. Where the handshake is missing, too, the first frame
            has to be clean, and its layout to say all of it: objects would search for one.
        carried: frames of earlier windows, which come first: requests that wait, and what may depend on them.
    """

    conversations: NDArray[Any]
    ordinals: NDArray[Any]
    places: NDArray[Any]
    final: NDArray[Any]
    ends: NDArray[Any]
    unheard: NDArray[Any]
    carried: NDArray[Any]

    @property
    def flows(self) -> NDArray[Any]:
        """Their numbers, in order."""
        return self.conversations["connection"]

    def only(self, which: NDArray[Any]) -> Begun:
        """Some of them, without what they carry."""
        kept = {each.name: getattr(self, each.name)[which] for each in fields(self) if each.name != "carried"}
        return Begun(**kept, carried=self.carried[:0])


@dataclass(frozen=True, slots=True)
class Followed:
    """Frames of begun connections that are in the tables.

    Attributes:
        flows: the connections.
        places, sizes: (connection, side) where they end in ``Streams.stream``, and their bytes.
        waiting: those that are not in the tables, in the order of arrival.
        calls, errors: how many calls they are, and how many of these have an error.
        called: of each the set of its calls, as ``Called``.
        facts: columns of the table ``connections``.
        names, most: by flow, what ``Skipped`` has of them.
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


def conversations(connections: Sequence[int] | NDArray[Any], protocols: Any = "") -> NDArray[Any]:
    """Those of connections of which nothing has come so far."""
    found = np.zeros(len(connections), CONVERSATION)
    found["connection"], found["protocol"] = connections, protocols
    found["called"], found["facts"], found["names"], found["follower"] = frozenset(), None, None, None
    return found


def nothing_begun() -> Begun:
    """No connections."""
    sides = np.zeros((0, len(SIDES)), np.int64)
    none = sides[:, 0] > 0
    return Begun(conversations([]), sides[:, 0], sides, none, none, sides > 0, np.zeros(0, CARRIED))
