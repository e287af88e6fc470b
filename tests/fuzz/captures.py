"""Hostile captures: conversations that are made up, packed into TCP segments, and damaged at each level, by a seed."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.capture.damage import DAMAGES
from tests.capture.second_parser import Packet, write
from tests.net import building
from wirekit.strategies import Script, conversation, damaged_conversation, edited

PROTOCOLS = ("kafka", "pulsar", "joyqueue")
PORTS = {"client": 40_000, "server": 9_092}
FIRST = {"client": 1_000, "server": 2_000}
"""Sequence numbers of the SYNs."""
LARGEST_SEGMENT = 1_400
SYN, ACK, PUSH_ACK, FIN_ACK = 0x02, 0x10, 0x18, 0x11
START_US = building.SECONDS * 1_000_000


class Hostile(NamedTuple):
    """A capture.

    Attributes:
        script: what was said.
        packets: the names of what was done to the packets.
        edited: whether bytes of the file were changed.
    """

    script: Script
    packets: tuple[str, ...]
    edited: bool

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong at any level."""
        return not (self.script.damage or self.packets or self.edited)


def packets_of(script: Script, random: Random, number: int = 0) -> list[Packet]:
    """A connection from its SYN to its FINs; turns are cut into segments anywhere, a millisecond apart.

    Args:
        script: what is said.
        random: where turns are cut.
        number: the number of the connection among those of a capture; each has a port of its own.
    """
    packet = partial(_packet_of, PORTS | {"client": PORTS["client"] + number})
    numbers = {side: first + 1 for side, first in FIRST.items()}
    packets = [packet("client", FIRST["client"], 0, SYN, b"", 0)]
    packets.append(packet("server", FIRST["server"], numbers["client"], SYN | ACK, b"", 1))
    for turn in script.turns:
        other = "server" if turn.side == "client" else "client"
        data = turn.data
        while data:
            size = random.choice((1, 7, 50, LARGEST_SEGMENT, LARGEST_SEGMENT))
            payload, data = data[:size], data[size:]
            packets.append(packet(turn.side, numbers[turn.side], numbers[other], PUSH_ACK, payload, len(packets)))
            numbers[turn.side] += len(payload)
    for side, other in (("client", "server"), ("server", "client")):
        packets.append(packet(side, numbers[side], numbers[other], FIN_ACK, b"", len(packets)))
    return packets


def _packet_of(
    ports: dict[str, int], side: str, number: int, acknowledged: int, flags: int, payload: bytes, place: int
) -> Packet:
    other = "server" if side == "client" else "client"
    segment = building.tcp(
        payload,
        source_port=ports[side],
        destination_port=ports[other],
        sequence_number=number,
        acknowledgment_number=acknowledged,
        flags=flags,
    )
    addresses = {"client": "0a000001", "server": "0a000002"}
    ip = building.ipv4(segment, source=addresses[side], destination=addresses[other])
    data = building.packet("net.ethernet", building.ethernet(ip))
    return Packet(START_US + 1_000 * place, len(data), data)


def hostile(path: Path, seed: int) -> Hostile:
    """Writes a capture, pcap or pcapng; the same for the same seed."""
    random = Random(f"hostile capture {seed}")
    make = random.choice((conversation, conversation, damaged_conversation))
    script = make(random.choice(PROTOCOLS), seed=seed, length=random.randrange(1, 8))
    packets = packets_of(script, random)
    names = tuple(random.sample(sorted(DAMAGES), random.choice((0, 0, 1, 2))))
    for name in names:
        packets = DAMAGES[name](packets, random) if len(packets) > 1 else packets
    write(path, packets)
    if random.random() < 0.5:
        path.write_bytes(pcapng(packets, random))
    changed = random.random() < 0.4
    if changed:
        path.write_bytes(edited(path.read_bytes(), random, [packet.data for packet in packets]))
    return Hostile(script, names, changed)


def pcapng(packets: list[Packet], random: Random) -> bytes:
    """The packets as a pcapng file of either byte order."""
    order = random.choice(building.ORDERS)
    blocks = [building.enhanced(order, each.data, each.time_us, original_length=each.length) for each in packets]
    return building.section_header(order) + building.interface(order) + b"".join(blocks)
