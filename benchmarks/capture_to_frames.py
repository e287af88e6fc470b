"""How long does a capture take from packets to paired frames, and where does the time go?"""

from __future__ import annotations

from pathlib import Path

from benchmarks.timing import best
from wirekit.capture.files import open_capture, segments
from wirekit.capture.follow import follow
from wirekit.capture.tcp import Connections

CAPTURE = Path(__file__).parent.parent / "fixtures" / "pcap" / "kafka-0.10.2.2-2-produce.pcapng"


def run() -> tuple[str, list[tuple[str, str]]]:
    """The question, and (label, figure) per stage."""
    with open_capture(str(CAPTURE)) as capture:
        read = list(segments(capture))
        count = len(read)

        def reassemble() -> None:
            connections = Connections()
            for _ in connections.read(read):
                pass

        packets = best(lambda: list(segments(capture)))
        streams = best(reassemble)
        frames = best(lambda: list(follow(read)))
    return (
        str(__doc__),
        [
            ("packets to segments (layouts of net)", f"{packets / count * 1e6:.1f} µs a packet"),
            ("segments to ordered streams", f"{streams / count * 1e6:.2f} µs a packet"),
            ("streams to frames (layouts of kafka)", f"{(frames - streams) / count * 1e6:.1f} µs a packet"),
            ("layouts take, of the whole", f"{(packets + frames - streams) / (packets + frames) * 100:.0f} %"),
        ],
    )
