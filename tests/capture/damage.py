"""Damaged copies of captures, as networks and capturing make them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

from tests.capture.second_parser import Packet, tcp

_PORTS = 34  # offset of the two ports in a packet; the TCP header is 20 bytes or more from there on
_SEQUENCE = range(_PORTS + 4, _PORTS + 12)
_NUMBERS = (_PORTS + 4, _PORTS + 8)  # sequence and acknowledgment
_FLAGS = _PORTS + 13
_HEADERS = 66  # bytes; up to the payload with the options that Linux sends
_LONGEST_HEADERS = 94  # bytes; with as many options as there can be

Damage = Callable[[list[Packet], Random], list[Packet]]


def dropped(packets: list[Packet], random: Random) -> list[Packet]:
    """One packet in eight is missing."""
    return [each for each in packets if random.random() > 1 / 8]


def a_run_dropped(packets: list[Packet], random: Random) -> list[Packet]:
    """Some packets in a row are missing."""
    at = random.randrange(len(packets))
    return packets[:at] + packets[at + random.randrange(1, 20) :]


def doubled(packets: list[Packet], random: Random) -> list[Packet]:
    """One packet in five comes twice."""
    return [each for each in packets for _ in range(1 + (random.random() < 1 / 5))]


def reordered(packets: list[Packet], random: Random) -> list[Packet]:
    """Packets change places with near ones; the times stay in order."""
    places = sorted(range(len(packets)), key=lambda place: place + random.uniform(0, 4))
    return [packets[place]._replace(time_us=at.time_us) for place, at in zip(places, packets, strict=True)]


def late(packets: list[Packet], random: Random) -> list[Packet]:
    """Packets change places with near ones, and keep their times."""
    return sorted(packets, key=lambda each: each.time_us + random.uniform(0, 20_000))


def delayed(packets: list[Packet], random: Random) -> list[Packet]:
    """One packet in ten is captured up to 8 ms later than it was sent."""
    later = [
        each._replace(time_us=each.time_us + random.randrange(8_000)) if random.random() < 1 / 10 else each
        for each in packets
    ]
    return sorted(later, key=lambda each: each.time_us)


def joined_late(packets: list[Packet], random: Random) -> list[Packet]:
    """The capture begins in the middle."""
    return packets[random.randrange(1, len(packets)) :]


def ended_early(packets: list[Packet], random: Random) -> list[Packet]:
    """The capture ends in the middle."""
    return packets[: random.randrange(1, len(packets))]


def one_direction(packets: list[Packet], random: Random) -> list[Packet]:
    """Only what one side sends is captured."""
    sender = tcp(random.choice(packets)).source
    return [each for each in packets if tcp(each).source == sender]


def one_direction_late(packets: list[Packet], random: Random) -> list[Packet]:
    """Only what one side sends is captured, and that from the middle on."""
    lost = one_direction(packets, random)
    return joined_late(lost, random) if len(lost) > 1 else lost


def snapped(packets: list[Packet], random: Random) -> list[Packet]:
    """The snap length cuts the packets."""
    length = random.randrange(_LONGEST_HEADERS, 200)
    return [each._replace(data=each.data[:length]) for each in packets]


def flipped(packets: list[Packet], random: Random) -> list[Packet]:
    """One byte of the payload in one packet in six is another."""
    return [
        _changed(each, random.randrange(_HEADERS, len(each.data)), random)
        if len(each.data) > _HEADERS and random.random() < 1 / 6
        else each
        for each in packets
    ]


def misnumbered(packets: list[Packet], random: Random) -> list[Packet]:
    """One byte of a sequence or acknowledgment number, or the flags, of one packet in ten is another."""
    return [
        _changed(each, random.choice([*_SEQUENCE, _FLAGS]), random) if random.random() < 1 / 10 else each
        for each in packets
    ]


def ports_exchanged(packets: list[Packet], random: Random) -> list[Packet]:
    """Without handshakes, and each side with the other's port, so that the ports name the wrong side as the server."""
    swapped = [_with_ports(each, each.data[_PORTS : _PORTS + 4]) for each in packets if not tcp(each).syn]
    return joined_late(swapped, random) if len(swapped) > 1 and random.random() < 1 / 2 else swapped


def one_address_pair(packets: list[Packet], random: Random) -> list[Packet]:
    """All connections have the same ports, one after the other or mixed."""
    servers = {tcp(each).target for each in packets if tcp(each).syn}
    ports = random.choice(packets).data[_PORTS : _PORTS + 4]
    return [_with_ports(each, ports if tcp(each).target in servers else ports[2:] + ports[:2]) for each in packets]


def wrapped(packets: list[Packet], random: Random) -> list[Packet]:
    """The sequence numbers of each side go through 2³² and on from 0, early in its stream."""
    firsts: dict[tuple[str, str], int] = {}
    for each in packets:
        firsts.setdefault((tcp(each).source, tcp(each).target), tcp(each).sequence)
    shifts = {pair: -first - random.randrange(3_000) for pair, first in firsts.items()}
    shifted = []
    for each in packets:
        pair = tcp(each).source, tcp(each).target
        data = bytearray(each.data)
        for at, key in zip(_NUMBERS, (pair, pair[::-1]), strict=True):
            number = int.from_bytes(data[at : at + 4], "big") + shifts.get(key, 0)
            data[at : at + 4] = (number % (1 << 32)).to_bytes(4, "big")
        shifted.append(each._replace(data=bytes(data)))
    return shifted


def several(packets: list[Packet], random: Random) -> list[Packet]:
    """More than one damage."""
    for damage in random.sample(sorted(SINGLE), 3):
        packets = SINGLE[damage](packets, random) if len(packets) > 1 else packets
    return packets


def _changed(packet: Packet, at: int, random: Random) -> Packet:
    data = bytearray(packet.data)
    data[at] ^= random.randrange(1, 256)
    return packet._replace(data=bytes(data))


def _with_ports(packet: Packet, ports: bytes) -> Packet:
    return packet._replace(data=packet.data[:_PORTS] + ports[2:] + ports[:2] + packet.data[_PORTS + 4 :])


SINGLE: Mapping[str, Damage] = {
    each.__name__: each
    for each in (
        dropped,
        a_run_dropped,
        doubled,
        reordered,
        late,
        delayed,
        joined_late,
        ended_early,
        one_direction,
        one_direction_late,
        snapped,
        flipped,
        misnumbered,
        ports_exchanged,
        one_address_pair,
        wrapped,
    )
}
DAMAGES: Mapping[str, Damage] = {**SINGLE, several.__name__: several}
