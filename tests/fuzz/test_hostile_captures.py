"""Reading a capture ends, whatever it holds, with frames, reasons or an error of ours; ``make fuzz`` reads many."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.captures import Hostile, hostile
from tests.road.law import assert_same
from wirekit.capture.files import open_capture, segments
from wirekit.capture.follow import follow
from wirekit.capture.tcp import Segment
from wirekit.conversation import Frame, Quarantined
from wirekit.errors import WirekitError
from wirekit.rules import check
from wirekit.values import json_text, to_json


def read(path: Path) -> dict[str, list[Frame | Quarantined]]:
    """What is in a capture, by connection."""
    items_by_name: dict[str, list[Frame | Quarantined]] = {}
    with open_capture(path) as capture:
        for link, item in follow(each for each in segments(capture) if isinstance(each, Segment)):
            if isinstance(item, Frame | Quarantined):
                items_by_name.setdefault(link.name, []).append(item)
    return items_by_name


def survives(folder: Path, seed: int) -> Hostile:
    """Asserts the law for one capture; both roads to tables give the same rows of it."""
    path = folder / "hostile.pcap"
    made_up = hostile(path, seed)
    assert_same(path)
    try:
        connections = read(path)
    except WirekitError:
        assert made_up.edited, "only a file that is none is refused"
        return made_up
    items = [item for each in connections.values() for item in each]
    assert sum(len(item.data) for item in items) <= path.stat().st_size
    for frame in items:
        if isinstance(frame, Frame):
            assert json_text(to_json(frame.value)) is not None
            assert frame.reason is None or frame.reason
            check(frame.protocol, items)
        else:
            assert frame.reason
    if made_up.sound:
        (items_of_connection,) = connections.values()
        assert [item.data for item in items_of_connection] == [turn.data for turn in made_up.script.turns]
        assert check(made_up.script.protocol, items_of_connection) == []
    return made_up


@settings(max_examples=max(10, settings().max_examples // 8))
@given(st.integers(0, 2**32))
def test_any_capture(seed: int) -> None:
    with TemporaryDirectory() as folder:
        survives(Path(folder), seed)


def test_every_level_occurs(tmp_path: Path) -> None:
    made_up = [hostile(tmp_path / "hostile.pcap", seed) for seed in range(20)]
    assert {each.sound for each in made_up} == {each.edited for each in made_up} == {True, False}
    assert any(each.script.damage for each in made_up)
    assert any(each.packets for each in made_up)
