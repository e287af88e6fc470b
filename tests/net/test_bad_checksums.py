"""Header checksums that network cards fill in later are wrong in captures: every engine says the same of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wirekit
from tests.net.building import ipv4, packet, tcp
from wirekit.decoding import decode

PACKET = packet("net.ipv4", ipv4(tcp()))
CHECKSUM = slice(10, 12)


@given(st.binary(min_size=2, max_size=2), st.integers(20, len(PACKET)))
def test_engines_agree_on_a_wrong_header_checksum(stored: bytes, length: int) -> None:
    data = (PACKET[: CHECKSUM.start] + stored + PACKET[CHECKSUM.stop :])[:length]
    reference, rows = (decode(data, "net.ipv4", offset=100, engine=engine) for engine in ("reference", "rows"))
    assert rows.value == reference.value
    assert [check.to_json() for check in rows.checks] == [check.to_json() for check in reference.checks]
    assert (rows.clean, rows.consumed) == (reference.clean, reference.consumed)
    assert str(rows.error) == str(reference.error)
    if reference.error is None:
        assert wirekit.encode("net.ipv4", rows.value) == wirekit.encode("net.ipv4", reference.value)


def test_a_wrong_header_checksum_needs_no_second_decoding() -> None:
    data = PACKET[: CHECKSUM.start] + b"\0\0" + PACKET[CHECKSUM.stop :]
    decoded = decode(data, "net.ipv4", engine="rows")
    assert decoded.engine == "rows"
    assert not decoded.clean
    assert wirekit.encode("net.ipv4", decoded.value) == data
    with pytest.raises(wirekit.Wrong, match="header_checksum"):
        decode(data, "net.ipv4", engine="rows", strict=True)


def test_spans_of_a_wrong_header_checksum_are_those_of_the_reference() -> None:
    data = PACKET[: CHECKSUM.start] + b"\0\0" + PACKET[CHECKSUM.stop :]
    spans = [
        [span.to_json() for span in decode(data, "net.ipv4", engine=name).spans] for name in ("reference", "trace")
    ]
    assert spans[0] == spans[1]
