"""Does one call of isal's CRC-32 make the rest of the process slower? On some processors with AVX-512 it does.

Each figure is of a process of its own, in turns: construct parses a message set, and the rows engine reads it with
zlib's CRC-32, after one call of isal's or of zlib's.
"""

from __future__ import annotations

import subprocess
import sys

RUNS = 5
TIMED = """
import sys, zlib

sys.modules["isal"] = None  # not to be used by ours
import wirekit, wirekit.checksums
from benchmarks.message_set_against_construct import COUNT, PLAIN
from benchmarks.samples import message_set
from benchmarks.timing import best

data = message_set(COUNT)
wirekit.decode(data, "kafka.message_set", engine="rows")
assert wirekit.checksums.crc32 is zlib.crc32
del sys.modules["isal"]
from isal import isal_zlib
(isal_zlib if sys.argv[1] == "isal" else zlib).crc32(data[:134])
print(best(lambda: PLAIN.parse(data)) / COUNT)
print(best(lambda: wirekit.decode(data, "kafka.message_set", engine="rows")) / COUNT)
"""


def run() -> tuple[str, list[tuple[str, str]]]:
    """The question, and (label, figure) per reader and library that was called once."""
    least = {library: [float("inf")] * 2 for library in ("zlib", "isal")}
    for _ in range(RUNS):
        for library, seconds in least.items():
            completed = subprocess.run(
                [sys.executable, "-c", TIMED, library], check=True, stdout=subprocess.PIPE, text=True
            )
            seconds[:] = [min(pair) for pair in zip(seconds, map(float, completed.stdout.split()), strict=True)]
    rows = []
    for index, label in enumerate(("construct", "rows engine with zlib")):
        one, other = least["zlib"][index], least["isal"][index]
        figure = f"{one * 1e6:.2f} µs a message, after a call of isal {other * 1e6:.2f} µs: {other / one:.2f} ×"
        rows.append((label, figure))
    return str(__doc__).partition("\n")[0], rows
