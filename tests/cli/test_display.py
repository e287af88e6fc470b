"""Values in Python: ``show``, the tree of notebooks, and arguments in either order."""

from __future__ import annotations

import pytest

import wirekit
from wirekit.cli.input import read_input

HEARTBEAT = bytes.fromhex("00000017cafebebe040200000001070000016c3d0e8b28")


def test_show_prints_the_tree(capsys: pytest.CaptureFixture[str]) -> None:
    wirekit.decode(HEARTBEAT, "joyqueue.frame").show()
    assert "ca fe be be" in capsys.readouterr().out
    wirekit.decode(HEARTBEAT, "joyqueue.frame").show(form="hexdump")
    assert capsys.readouterr().out.splitlines()[1].startswith("00000000  00 00 00 17 ca fe be be  04")


@pytest.mark.parametrize("size", [0, 1, 8, 9, 15, 16, 17])
def test_the_hexdump_is_read_back(size: int, capsys: pytest.CaptureFixture[str]) -> None:
    body = {"group_id": "g", "group_generation_id": 1, "member_id": "de ad be ef 0 " * 2 + "x" * size}
    value = {"correlation_id": 1, "client_id": None, "body": body}
    data = wirekit.encode("kafka.heartbeat.request.v0", value)
    wirekit.decode(data, "kafka.request").show(form="hexdump")
    assert read_input(capsys.readouterr().out.encode()).data == data


def test_show_prints_the_error(capsys: pytest.CaptureFixture[str]) -> None:
    decoded = wirekit.decode(HEARTBEAT[:-1], "joyqueue.frame")
    decoded.show()
    assert decoded.error is not None
    assert capsys.readouterr().out.splitlines()[-1] == str(decoded.error)


def test_a_notebook_gets_html_in_which_nothing_from_the_wire_is_markup() -> None:
    data = wirekit.encode("kafka.message", {"magic": 0, "value": b"<script>alert(1)</script>"})
    shown = wirekit.decode(data, "kafka.message")._repr_html_()
    assert shown.startswith("<pre")
    assert "&lt;script&gt;" in shown
    assert "<script" not in shown


def test_bytes_and_key_may_change_places() -> None:
    first = wirekit.decode(HEARTBEAT, "joyqueue")
    assert wirekit.decode("joyqueue", HEARTBEAT).value == first.value
    assert [frame.value for frame in wirekit.frames(HEARTBEAT, "joyqueue")] == [first.value]
    assert [frame.value for frame in wirekit.frames("joyqueue", HEARTBEAT)] == [first.value]


@pytest.mark.parametrize("arguments", [(HEARTBEAT, HEARTBEAT), ("joyqueue", "joyqueue"), (1, "joyqueue")])
def test_two_of_a_kind_are_misuse(arguments: tuple[object, object]) -> None:
    with pytest.raises(wirekit.Misuse):
        wirekit.decode(*arguments)  # type: ignore[arg-type]
    with pytest.raises(wirekit.Misuse):
        wirekit.frames(*arguments)  # type: ignore[arg-type]


def test_spans_of_time_are_shown_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    request = wirekit.example("kafka.fetch.request.v0") | {"correlation_id": 1}
    request["body"] |= {"max_wait_time": 90_000}
    wirekit.decode(wirekit.encode("kafka.fetch.request.v0", request), "kafka.fetch.request.v0").show()
    assert "max_wait_time = 1 min 30 s (90000)" in capsys.readouterr().out
