"""How fast is the next frame found in bytes that make no sense, next to asking the layout at every offset?"""

from __future__ import annotations

import random

import wirekit
from benchmarks.timing import best
from wirekit.decoding import frame_size
from wirekit.errors import WireError
from wirekit.registry import registry

SIZE = 200_000
ASKED = 5_000
PROTOCOLS = ("kafka", "pulsar", "jmq4")


def ask(key: str, data: bytes) -> None:
    """The layout's own answer at every offset."""
    for start in range(ASKED):
        try:
            frame_size(data[start : start + 64], key)
        except WireError:
            continue


def search(name: str, data: bytes) -> None:
    """A conversation that was joined in the middle."""
    conversation = wirekit.Conversation(name, started=False)
    for at in range(0, SIZE, 65536):
        conversation.receive("client", data[at : at + 65536])


def run() -> tuple[str, list[tuple[str, str]]]:
    """The question, and (label, figure) per kind of bytes."""
    kinds = {
        "random bytes": random.Random(1).randbytes(SIZE),
        "text": b"the quick brown fox jumps over the lazy dog. " * (SIZE // 45 + 1),
        "zeros": bytes(SIZE),
    }
    rows = []
    for name in PROTOCOLS:
        key = registry.protocol(name).stream("client")
        for kind, data in kinds.items():
            ours = best(lambda name=name, data=data: search(name, data[:SIZE])) / SIZE
            peer = best(lambda key=key, data=data: ask(key, data)) / ASKED
            figure = f"{ours * 1e9:.0f} ns a byte, asking {peer * 1e9:.0f} ns: {peer / ours:.0f} ×"
            rows.append((f"{name}: {kind}", figure))
    return str(__doc__), rows
