"""Named queries over the tables: ``wirekit sql lag trace.pcap``.

Each query is a file of this package, ``<name>.sql``, that runs unchanged on DuckDB and Spark SQL. The comment at its
beginning describes it: the first line in one sentence, further lines in detail. ``make pages`` writes all of them to
docs/lake.md.
"""

from __future__ import annotations

import difflib
from importlib.resources import files

from wirekit.errors import Misuse
from wirekit.values import quoted

SUBJECTS = {
    "Clients and versions": ("clients", "topic_clients", "old_versions", "client_libraries"),
    "Latency": ("latency", "slow_calls"),
    "Errors": ("topic_errors", "failed_calls", "undecoded", "retransmissions"),
    "Messages": ("throughput", "topic_sizes", "undelivered", "on_disk", "wrong_checksums"),
    "Groups": ("groups", "members", "lag", "lag_over_time", "rebalances", "group_errors", "stored_commits"),
}
"""{subject: the names of its queries}."""
NAMES = tuple(name for names in SUBJECTS.values() for name in names)
"""The names of all queries, by subject."""


def query(name: str) -> str:
    """The text of a named query, for DuckDB or Spark SQL over views of the tables (docs/lake.md).

    Args:
        name: one of ``NAMES``, such as ``"lag"``.

    Raises:
        Misuse: no query has this name; the text names similar ones.

    >>> from wirekit.tables.queries import query
    >>> print(query("client_libraries"))
    -- Client libraries and server software with versions.
    -- Kafka clients name theirs in ApiVersions requests of version 3 and later, which they send to old brokers, too.
    SELECT protocol, client_software, client_version, server_software, count(*) AS connections
    FROM connections
    WHERE client_software IS NOT NULL OR server_software IS NOT NULL
    GROUP BY protocol, client_software, client_version, server_software
    ORDER BY connections DESC, protocol, client_software, client_version
    """
    if name not in NAMES:
        word = str(name).lower()
        near = difflib.get_close_matches(word, NAMES) or [each for each in NAMES if word and word in each]
        advice = f"did you mean {', '.join(near)}?" if near else "`wirekit sql --list` lists the names"
        raise Misuse(f"no query has the name {quoted(name)}; {advice}")
    return files(__name__).joinpath(f"{name}.sql").read_text("utf-8").rstrip()


def description(name: str) -> list[str]:
    """The lines of the comment on a named query; the first one is a sentence that describes it.

    Raises:
        Misuse: no query has this name.

    >>> description("slow_calls")
    ['The slowest calls, with their connection.', 'Fetches of messages are left out: they wait by design.']
    """
    return [line.removeprefix("-- ") for line in query(name).splitlines() if line.startswith("--")]
