"""How fast are the spans of a Fetch response v2 with 1,000 messages made by generated code, next to the reference?"""

from __future__ import annotations

import wirekit
from benchmarks.fetch_response_against_kafka_python import COUNT, KEY, response
from benchmarks.timing import best


def run() -> tuple[str, list[tuple[str, str]]]:
    """The question, and (label, figure) per contender."""
    data = response()

    def spans(engine: str) -> int:
        decoded = wirekit.decode(data, KEY, engine=engine)
        assert decoded.engine == engine
        return len(decoded.spans)

    assert spans("trace") == spans("reference")
    trace, reference = best(lambda: spans("trace")), best(lambda: spans("reference"))
    rows = best(lambda: wirekit.decode(data, KEY, engine="rows"))
    return (
        str(__doc__),
        [
            ("trace engine", f"{trace / COUNT * 1e6:.2f} µs a message"),
            ("reference engine with spans", f"{reference / COUNT * 1e6:.2f} µs a message"),
            ("rows engine, without spans", f"{rows / COUNT * 1e6:.2f} µs a message"),
            ("spans of a message", f"{spans('trace') / COUNT:.1f}"),
            ("trace engine is faster than the reference engine", f"{reference / trace:.2f} ×"),
        ],
    )
