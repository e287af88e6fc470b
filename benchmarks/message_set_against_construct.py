"""What do bounds, verdicts and exact errors cost over the same layout in plain construct, without a checksum?"""

from __future__ import annotations

import construct

import wirekit
from benchmarks.samples import message_set
from benchmarks.timing import best

COUNT = 2_000

PLAIN = construct.GreedyRange(
    construct.Struct(
        "offset" / construct.Int64sb,
        "message"
        / construct.Prefixed(
            construct.Int32sb,
            construct.Struct(
                "crc" / construct.Int32ub,
                "magic" / construct.Int8sb,
                "attributes"
                / construct.BitStruct("rest" / construct.BitsInteger(5), "codec" / construct.BitsInteger(3)),
                "timestamp" / construct.If(construct.this.magic >= 1, construct.Int64sb),
                "key" / construct.Prefixed(construct.Int32sb, construct.GreedyBytes),
                "value" / construct.Prefixed(construct.Int32sb, construct.GreedyBytes),
            ),
        ),
    )
)


def run() -> tuple[str, list[tuple[str, str]]]:
    """The question, and (label, figure) per contender."""
    data = message_set(COUNT)
    rows = best(lambda: wirekit.decode(data, "kafka.message_set", engine="rows"))
    reference = best(lambda: wirekit.decode(data, "kafka.message_set", engine="reference"))
    peer = best(lambda: PLAIN.parse(data))
    return (
        str(__doc__),
        [
            ("wirekit rows engine, CRC included", f"{rows / COUNT * 1e6:.2f} µs a message"),
            ("wirekit reference engine, CRC included", f"{reference / COUNT * 1e6:.1f} µs a message"),
            ("construct 2.10.70, interpreted, no CRC", f"{peer / COUNT * 1e6:.1f} µs a message"),
            ("rows engine is faster than construct", f"{peer / rows:.1f} ×"),
            ("reference engine takes, of construct's time", f"{reference / peer:.2f} ×"),
        ],
    )
