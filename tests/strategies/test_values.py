"""Values of every schema come out again as they went in, and reach every branch of the layout."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st

import wirekit
from tests.strategies.laws import examples, first, sound, together
from wirekit.strategies import agrees, branches, contexts, frames, unreachable, values

KEYS = wirekit.registry.keys()
FEW = settings(max_examples=max(4, settings().max_examples // 12))
ROUNDS = 80
A_ROUND = 7


@pytest.mark.parametrize("key", KEYS)
def test_values_come_out_again_and_reach_every_branch(key: str) -> None:
    """The first round goes anywhere, each further one for what was not reached yet."""
    every, reached = set(branches(key)), set[str]()

    def run(drawn: tuple[dict[str, Any], Any]) -> None:
        context, value = drawn
        sound(key, value, context)

    for start in range(ROUNDS):
        missing = every - reached if start else set()
        if start and not missing:
            break
        examples(together(key, values, aim=missing, reached=reached), run, count=A_ROUND, start=start)
    assert sorted(every - reached) == []
    assert sorted(reached - every) == []


@pytest.mark.parametrize("key", KEYS)
@FEW
@given(data=st.data())
def test_clean_values_decode_clean(key: str, data: st.DataObject) -> None:
    context = data.draw(contexts(key))
    value = data.draw(values(key, context=context, clean=True))
    decoded = sound(key, value, context)
    assert decoded.clean
    assert wirekit.encode(key, value, context=context, strict=True) == decoded.data


def test_branches_that_no_value_reaches_are_listed_with_the_reason() -> None:
    """Three rules, and no more: what is inside constants, what looks behind the value, what no bytes contradict."""
    listed = {(key, name): reason for key in KEYS for name, reason in unreachable(key).items()}
    assert set(listed.values()) == {
        "lies in a constant, which has one value",
        "depends on the bytes after the value",
        "the node reads no bytes, so it always decodes",
    }
    behind = [place for place, reason in listed.items() if reason.startswith("depends")]
    assert len(behind) == 1
    whole = [place for place, reason in listed.items() if reason.startswith("the node")]
    assert {name.rpartition("payload.")[2] for _, name in whole} == {f"{marker}=bytes" for marker in range(10, 14)}
    assert all(name == "api_key.node=unknown" for place, name in set(listed) - set(behind) - set(whole))
    assert not any(name in branches(key) for key, name in listed)


def test_no_health_check_complains() -> None:
    """Few values are drawn in vain: hypothesis fails a test that rejects too many."""
    strict = settings(max_examples=50, database=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
    for key in ("net.pcapng", "net.pcap", "net.ip", "pulsar.frame", "kafka.request", "kafka.log_segment"):
        strict(given(values(key))(lambda value: None))()


def test_text_up_to_a_delimiter_begins_with_the_bytes_that_announce_it() -> None:
    aim, reached = ["lines.element.comment=present"], set[str]()
    examples(values("kafka.meta_properties", aim=aim, reached=reached), lambda value: None, count=7)
    assert reached.issuperset(aim)


def test_values_shrink_to_the_fields_that_matter() -> None:
    value = find(values("kafka.message_set"), lambda value: len(value["messages"]) > 1)
    message = {"magic": 0, "attributes": {"codec": 0, "timestamp_type": 0, "reserved": 0}, "timestamp": None}
    assert len(value["messages"]) == 2
    assert {name: value["messages"][1]["message"][name] for name in message} == message
    assert value["partial"] == b""


@pytest.mark.parametrize("codec", ["1,1 gzip", "1,2 kafka-snappy", "0,3 kafka-lz4-v0", "1,3 kafka-lz4"])
def test_compressed_data_with_each_codec(codec: str) -> None:
    aim = [name for name in branches("kafka.message") if name == f"value={codec}"]
    assert aim
    compressed = first(
        values("kafka.message", aim=aim),
        lambda value: isinstance(value["value"], dict) and bool(value["value"]["content"]["messages"]),
    )
    data = wirekit.encode("kafka.message", compressed)
    assert agrees(compressed, wirekit.decode(data, "kafka.message").value)


def test_compressed_data_lies_in_compressed_data() -> None:
    def inside(value: Any) -> int:
        if isinstance(value, dict):
            return max([0, *map(inside, value.values())]) + ("content" in value)
        return max(map(inside, value), default=0) if isinstance(value, list) else 0

    depths = [0]
    aim = [name for name in branches("kafka.message_set") if name.endswith("gzip")]
    examples(values("kafka.message_set", aim=aim), lambda value: depths.append(inside(value)), count=60)
    assert max(depths) == 2, "depth says how often"
    depths = [0]
    examples(values("kafka.message_set", aim=aim, depth=0), lambda value: depths.append(inside(value)), count=60)
    assert max(depths) == 0


def test_a_partial_message_ends_a_message_set() -> None:
    value = first(values("kafka.message_set"), lambda value: value["messages"] and len(value["partial"]) > 12)
    data = wirekit.encode("kafka.message_set", value)
    assert wirekit.decode(data, "kafka.message_set").value.partial == value["partial"]


def test_protobuf_messages_have_presence_lists_nesting_and_unknown_fields() -> None:
    names: set[str] = set()

    def look(value: Any) -> None:
        command = value["command"]
        names.update(name for name in command if name != "type")
        for inner in command.values():
            if isinstance(inner, dict):
                names.update("nested" for item in inner.values() if isinstance(item, dict))
                names.update("repeated" for item in inner.values() if isinstance(item, list))

    examples(values("pulsar.frame"), look, count=300)
    assert {"$unknown", "nested", "repeated", "send", "connect"} <= names


def test_the_ends_of_integers_are_tried() -> None:
    positions: set[int] = set()
    examples(
        values("kafka.offset_index"), lambda value: positions.update(e["position"] for e in value["entries"]), count=200
    )
    assert {0, 1, -1, -(2**31), 2**31 - 1} <= positions


def test_contexts_tell_cases_apart() -> None:
    contexts_drawn: list[dict[str, Any]] = []
    examples(contexts("kafka.response"), contexts_drawn.append, count=400)
    assert {} in contexts_drawn
    assert {"api": "produce", "version": 2} in contexts_drawn
    assert find(contexts("kafka.message"), lambda context: True) == {}


def test_a_protocol_stands_for_its_frames() -> None:
    data = first(frames("pulsar"), lambda data: True)
    assert wirekit.decode(data, "pulsar.frame").error is None


def test_an_unknown_schema_or_branch_is_misuse() -> None:
    with pytest.raises(wirekit.Misuse, match="no schema"):
        values("kafka.nothing")
    with pytest.raises(wirekit.Misuse, match="has no branch nowhere=1"):
        values("kafka.message", aim=["nowhere=1"])
    with pytest.raises(wirekit.Misuse, match="aim must be a list of branches"):
        values("kafka.message", aim="key=null")


def test_wirekit_does_not_import_hypothesis() -> None:
    import subprocess
    import sys

    program = "import sys, wirekit, wirekit.cli; wirekit.registry.keys(); assert 'hypothesis' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_error_without_hypothesis_names_the_extra() -> None:
    import subprocess
    import sys

    program = "import sys; sys.modules['hypothesis'] = None; import wirekit.strategies"
    run = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert "ImportError: wirekit.strategies needs hypothesis" in run.stderr
    assert "wirekit[fuzz]" in run.stderr
