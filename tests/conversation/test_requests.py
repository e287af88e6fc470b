"""The requests of a connection that wait: their order, whichever way one takes the place of another."""

from __future__ import annotations

import pytest

import wirekit
from wirekit.conversation.events import Description, Frame
from wirekit.conversation.requests import Requests

DATA = wirekit.encode("kafka.list_groups.request.v0", {"correlation_id": 1, "client_id": None, "body": {}})


def request(offset: int, number: int | None) -> Frame:
    what = Description(correlation_id=number, role="request")
    return Frame("kafka", "client", offset, DATA, None, wirekit.decode(DATA, "kafka.request"), what)


@pytest.mark.parametrize("number", [7, 8, None])
def test_a_request_in_the_place_of_another_is_the_youngest(number: int | None) -> None:
    requests = Requests()
    for offset, pair in enumerate(("a", "b", "c")):
        requests[pair] = request(offset, 7)
    requests["a"] = request(3, number)
    assert [frame.offset for frame in requests.values()] == [1, 2, 3]
    same = requests.with_number(7, 9)
    assert [frame.offset for _, frame in same] == ([1, 2, 3] if number == 7 else [1, 2])
    assert requests.with_number(number, 9)[-1][1].offset == 3
    assert requests.pop("a").offset == 3
    assert [pair for pair, _ in requests.with_number(7, 9)] == ["b", "c"]
